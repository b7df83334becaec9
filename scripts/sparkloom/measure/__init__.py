"""Is it fast, and is it text."""
