"""Holds the site for one run: a Lease in the cluster names who works on it, until this run of Ansible ends."""

from __future__ import annotations

import os
from typing import Literal

from sparkloom.site import ansible, holding
from sparkloom.site.ansible import Context, Data


def hold(
    context: Context,
    wait_seconds: float,  # how long another operation is waited for
    take_over: str,  # whose operation is ended in favour of this one: its name
    limit: Literal["part", "whole"],  # whether a run may be for some of the Sparks alone
    leave_out: bool = False,  # consent to leave the others out all the same
    ends: bool = False,  # a run for some passes over this playbook and goes on behind it
) -> Data:
    """Without a cluster that answers there is nothing to hold."""
    left = [node.name for node in context.cluster.nodes if node.name not in ansible.asked(context.vars)]
    if left and limit == "whole" and not leave_out:
        if ends:
            return {"rest": holding.rest(left, os.getppid())}
        return {"failed": True, "msg": holding.limited(left, os.getppid())}
    if context.dry:
        return {}
    return holding.held(context.cluster, os.getppid(), context.say, wait_seconds, take_over)
