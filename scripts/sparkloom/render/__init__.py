"""A launch as objects and files."""
