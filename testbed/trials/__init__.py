"""What is done to a rack, and what it says to that: kills, refusals, searches for leaks."""
