"""Does it start, does it fit, how fast: traps, capacity, measured runs."""
