"""K3s' files and programs for each machine."""
