"""The real Traefik of K3s' release, built from its Go module, installed the way K3s has it."""
