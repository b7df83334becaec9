"""A group stopped until somebody starts it, for playbooks; `sparkloom stop` and `start` do the same without Ansible."""

from __future__ import annotations

from sparkloom.site import ansible, holding, now, stopping
from sparkloom.site.ansible import Context, Data


def stop(context: Context, group: str) -> Data:
    """The one of that name, `all`, or the only one."""
    site = _site(context)
    chosen = stopping.meant(site, group, "stop")
    if not context.dry:
        stopping.stop(site, chosen, holding.person(), context.say)
    return {"changed": any(not one.stopped for one in chosen)}


def start(context: Context, group: str) -> Data:
    """Fails by what is missing."""
    site = _site(context)
    chosen = stopping.meant(site, group, "start")
    missing = [] if context.dry else stopping.start(site, chosen, context.say)
    return {"changed": any(one.stopped for one in chosen), "failed": bool(missing), "msg": "\n".join(missing)}


def _site(context: Context) -> now.Site:
    """What `group` says is none of the list's profiles."""
    return now.read(ansible.listed({**context.vars, "group": None}) or context.cluster)
