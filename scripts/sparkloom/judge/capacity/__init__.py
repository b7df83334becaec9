"""Capacity: does a launch fit, for how many requests, and how fast can it be; from facts, each number explained.

`plan(launch, cluster)` is what `sparkloom plan` and the preflight call; `Speed(subject).bound(n)` and
`impossible(measured, bound)` judge a benchmarked figure.
"""

from sparkloom.judge.capacity.figure import Figure
from sparkloom.judge.capacity.speed import Speed, impossible
from sparkloom.judge.capacity.verdict import Plan, plan
from sparkloom.judge.capacity.view import Subject
from sparkloom.judge.capacity.view import of as subject_of

__all__ = ["Figure", "Plan", "Speed", "Subject", "impossible", "plan", "subject_of"]
