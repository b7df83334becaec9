"""What each engine release accepts, from its own parser; and what is wrong with a command line."""
