"""A machine with an NVIDIA GPU as a rendered rank's node: NVIDIA's own runtime, our pod, nothing else of a cluster.

Runs with the machine's own Python from the folder of `make gpu-pack`; needs of the test bed the stand-in hub alone.
"""
