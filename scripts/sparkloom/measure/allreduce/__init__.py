"""What the engine's own collective costs between the pods: an all-reduce sweep in the serving pods' network shape.

`onnode/allreduce.py` runs inside the pods and needs torch alone; `jobs` makes the objects; `verdict` judges what the
ranks said.
"""
