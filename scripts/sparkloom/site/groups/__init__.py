"""Groups: what runs, what a plan makes of it, and the steps from the one to the other."""
