"""Weights on every node: what is wanted, who gets it from whom, and the programs that travel there."""
