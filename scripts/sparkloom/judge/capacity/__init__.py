"""Capacity: does a launch fit, for how many requests, and how fast can it be; from facts, each number explained.

`verdict.plan(launch, cluster)` is what `sparkloom plan` and the preflight call; `speed.Speed(view).bound(n)` and
`impossible(measured, bound)` (`judge.beyond`) judge a benchmarked figure.
"""
