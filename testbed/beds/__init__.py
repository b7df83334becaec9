"""Machines for the product to run on: a rack of containers, virtual machines, bare containers."""
