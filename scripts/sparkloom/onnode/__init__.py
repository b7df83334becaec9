"""What runs on nodes and in pods: the standard library only."""
