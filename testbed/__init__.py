"""Everything that makes virtual GB10 nodes out of one laptop. Product code never imports it."""
