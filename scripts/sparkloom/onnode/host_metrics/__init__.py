"""What a node knows and no exporter tells, as a file for one: its GPU, the memory guard, when certificates end."""

FOLDER, FILE = "/run/sparkloom/metrics", "sparkloom.prom"  # on a node; in memory: what a boot made old is gone
