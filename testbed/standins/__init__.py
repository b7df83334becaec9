"""What stands in for parts that cannot run here: an engine, a model hub, K3s' program, a paced server."""
