"""What a node knows and no exporter tells, as a file for one: its GPU, the memory guard, when certificates end."""
