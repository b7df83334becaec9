"""A stand-in for K3s' program, and the folder of release files that the role installs from in tests."""
