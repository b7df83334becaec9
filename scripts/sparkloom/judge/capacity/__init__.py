"""Capacity: does a launch fit, for how many requests, and how fast can it be; from facts, each number explained.

`plan(launch, cluster)` is what `sparkloom plan` and the preflight call; `Speed(view).bound(n)` and
`impossible(measured, bound)` (`judge.beyond`) judge a benchmarked figure.
"""

from sparkloom.judge.beyond import impossible
from sparkloom.judge.capacity.ranking import Candidate, ranking
from sparkloom.judge.capacity.sessions import sessions
from sparkloom.judge.capacity.speed import Speed
from sparkloom.judge.capacity.verdict import Plan, plan
from sparkloom.launch.memory.figure import Figure

__all__ = ["Candidate", "Figure", "Plan", "Speed", "impossible", "plan", "ranking", "sessions"]
