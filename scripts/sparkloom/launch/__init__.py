"""From inputs to a launch: what each node runs, every value with its origin."""
