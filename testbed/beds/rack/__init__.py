"""The virtual rack: four GB10-shaped Kubernetes nodes in containers. Start with `python -m testbed rack --help`."""
