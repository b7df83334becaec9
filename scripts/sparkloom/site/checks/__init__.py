"""What a node should be, judged from what a probe read on it: findings about all nodes, for one report.

A probe (onnode/tasks/probe.py) only reads; every judgement and every piece of advice stands here,
so that preflight, the fabric role's read-back and doctor say the same about the same thing.
"""
