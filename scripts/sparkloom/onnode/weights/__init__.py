"""What runs on a node to fill its model store. Python's standard library only: a bare node has nothing else."""
