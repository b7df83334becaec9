"""The site's own choices, and what its machines must be before anything is changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from sparkloom import case
from sparkloom.base.repository import kept
from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.site import ansible
from sparkloom.site import preflight as checks
from sparkloom.site.ansible import Context, Data


class Settings(TypedDict):
    """What is expected of a node."""

    profile: str  # what is to be served; empty for nothing
    groups: NotRequired[Sequence[Data]]  # of the site's list; none of a site with one profile
    disk_path: str  # folder that will hold images and logs
    free_gib: float  # room that it needs
    image_gib: float  # room for each engine's image
    server_free_gib: float  # room on a server beside the Sparks
    count_weights: bool  # whether the profile's weights count too
    endpoint_ports: Sequence[int]  # where every Spark takes clients' requests
    driver: str  # the driver that the measured figures were made with
    clock_seconds: float  # how far a clock may be from the others
    kernels_allowed: Sequence[str]  # kernels that the site knows to work
    memory_gib: float  # less than this available is a warning
    cuda: bool  # whether an idle GPU is asked for its free memory and its clock
    gpu_mhz: float  # a GPU under load below this is in its slow state
    cgroup_v1: bool  # the site lets its kubelets run with cgroup version 1
    k3s_adopt: bool  # consent to take over a K3s that is there
    adopt: bool  # consent to take over what defines the rails now


def read(context: Context) -> Data:
    """From the inventory's cluster.yml, with its defaults."""
    return {"site": context.cluster.model_dump(exclude={"nodes", "servers", "fabric"})}


def plan(
    context: Context,
    profile: str,  # a name from model_profiles/, or a path to a file
    force: bool = False,  # go on in spite of error findings
) -> Data:
    """A profile judged against this site; fails on error findings."""
    inventory = ansible.inventory(context.vars)
    judged = case.judge(profile, inventory)
    if judged.errors and not force:
        raise case.Refused(judged.errors)
    told = ansible.findings_text(judged.findings) or "no findings"
    return {"plan": case.plan(profile, inventory), "msg": told}


def preflight_reads(context: Context, settings: Settings) -> Data:
    """What to read of every machine."""
    return {"reads": checks.reads(context.cluster, dict(settings))}


def preflight(
    context: Context,
    probe: str,  # variable that every machine registered from `machine`
    settings: Settings,
) -> Data:
    """What was read of every machine; the facts are kept in build/<site>/preflight.json."""
    cluster = context.cluster
    probes = ansible.registered(context.vars, probe, GROUP, SERVERS)
    only = [str(host) for host in context.vars["ansible_play_hosts_all"]]
    judged = checks.judge(cluster, probes, dict(settings), only=only)
    path = judged.keep(kept(cluster.name))
    text = f"{judged.report}\nevery word: preflight.txt; every fact: {path}"
    return {"failed": judged.failed, "msg": text, "rows": judged.rows, "screen": judged.screen}
