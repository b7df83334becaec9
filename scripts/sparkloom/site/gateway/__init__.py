"""How the endpoint is reached, and the proof that it answers as it should."""
