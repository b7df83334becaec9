"""Keeps the rails' virtual functions as planned: at boot before the network, and whenever the fabric role runs."""
