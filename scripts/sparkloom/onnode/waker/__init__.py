"""Groups on demand: a pod that starts a group when somebody asks for it, and stops it when nobody has for a while.

The router leads a request here only while the group's engine is not up (docs/fleet.md).
"""
