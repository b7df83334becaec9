"""What runs as process 1 of every rank, in front of the engine: waits, starts, watches, restarts the group as one.

It is mounted into an unmodified engine image, so everything that it imports is Python's standard library (3.10 and
later) or a module of ours that `render/pack.py` finds by its imports and packs with it.
"""
