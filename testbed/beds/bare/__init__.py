"""Bare machines: systemd containers before any Kubernetes. Start with `python -m testbed bare --help`."""
