"""The arithmetic of memory that engines share: what weights, caches and states take on one rank."""
