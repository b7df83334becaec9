"""Sparkloom: what a profile, a rack and an engine say, turned into proven launches."""
