"""How fast does it really serve? A load generator for a handful of streams, small enough to run beside the server.

It is our own because existing ones take a gigabyte, half a minute of start-up and 10 to 90 times the CPU time, and
several count chunks where engines send several tokens in one; docs/bench.md has the table.
"""
