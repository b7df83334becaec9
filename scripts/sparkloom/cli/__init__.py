"""Words in and out: the command line."""
