"""What K3s needs on every machine. The files that are written here are on the controller alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.render.k3s import options as given
from sparkloom.site import ansible
from sparkloom.site.ansible import Context, Data
from sparkloom.site.k3s import steps


def plan(context: Context, options: Mapping[str, Any]) -> Data:
    """What every machine should have, by the role's variables."""
    return steps.plan(context.cluster, given.options(options))


def decide(
    context: Context,
    options: Mapping[str, Any],  # the role's variables
    plan: Mapping[str, Any],  # what `plan` gave
    state: str,  # variable that every machine registered
    secrets: str,  # variable that holds the cluster's secrets: named, since a task's arguments may be shown
    images: Sequence[str] = (),  # what nodes pull beside K3s' own
) -> Data:
    """What to do on each machine."""
    states = ansible.registered(context.vars, state, GROUP, SERVERS)
    held = ansible.plain(context.vars[secrets])
    rows, decision = steps.decide(given.options(options), plan, states, held, images)
    return ansible.verdict(rows, "") | decision


def token_files(context: Context, plan: Mapping[str, Any], secrets: str) -> Data:
    """The token files of machines that join; `secrets` names the variable with the cluster's secrets."""
    return steps.joining(plan, ansible.plain(context.vars[secrets]))


def kubeconfig(context: Context, plan: Mapping[str, Any], secrets: str) -> Data:
    """Keep the administrator's access here."""
    return steps.keep_access(context.cluster, plan, ansible.plain(context.vars[secrets]), dry=context.dry)


def leftovers(context: Context) -> Data:
    """What to take away."""
    return steps.leftovers(context.cluster)
