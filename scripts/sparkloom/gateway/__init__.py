"""The way in from outside: a certificate, a route, and the proof that both and the key work."""
