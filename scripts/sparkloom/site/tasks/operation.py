"""Holds the site for one run: a Lease in the cluster names who works on it, until this run of Ansible ends."""

from __future__ import annotations

import os

from sparkloom.site import holding
from sparkloom.site.ansible import Context, Data


def hold(
    context: Context,
    wait_seconds: float,  # how long another operation is waited for
    take_over: str,  # whose operation is ended in favour of this one: its name
) -> Data:
    """Without a cluster that answers there is nothing to hold."""
    return holding.held(context.cluster, os.getppid(), context.say, wait_seconds, take_over)
