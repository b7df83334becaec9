"""Which archives of images are brought to which node, from the folder `images` of the release files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import downloads
from sparkloom.render.k3s import options as given
from sparkloom.render.k3s.machines import ARCHITECTURES
from sparkloom.site import ansible, image_archives, images
from sparkloom.site.ansible import Context, Data
from sparkloom.site.groups import observed
from sparkloom.site.k3s import judge


def plan(
    context: Context,
    options: Mapping[str, Any],  # the variables of role k3s
    multus: str = "",  # Multus' image
    gpu: str = "",  # the device plugin's
    router: str = "",  # the router's, where the site has one
    profile: str = "",  # whose engine's image; of a site with a list that of each group
    nodes: Sequence[str] = (),  # who serves it; the first Sparks unless told
    take: str = "",  # a digest instead of the locked one
) -> Data:
    """Which images nodes need that no registry of the site gives, and what to ask each node."""
    ours = {"multus_image": multus, "gpu_runtime_image": gpu, "gateway_router_image": router}
    lock = ansible.lock_file(context.vars)
    engines = [judge.engine(loaded, on, take, lock) for loaded, on in _engines(context, profile, nodes)]
    needed = judge.every(given.options(options), context.cluster, ours, engines)
    names = list(dict.fromkeys(need.image for need in needed))
    asks = {"images": names, "places": list(images.PLACES)}
    return {"asked": asks, "needed": [asdict(need) for need in needed]}


def decide(
    context: Context,
    options: Mapping[str, Any],  # the variables of role k3s
    needed: Sequence[Data],  # what `plan` gave
    answers: str,  # variable that the nodes registered from a look
) -> Data:
    """Refuses images that are neither on the nodes nor in an archive."""
    # What a machine answered in an earlier play is of before its import.
    here = ansible.asked(context.vars)
    registered = ansible.registered(context.vars, answers, GROUP, SERVERS)
    looked = {host: told["answer"] for host, told in registered.items() if "answer" in told and host in here}
    held = {host: told["images"] for host, told in looked.items()}
    machines = {host: ARCHITECTURES.get(told["machine"], told["machine"]) for host, told in looked.items()}
    folder = Path(given.options(options).artifacts).expanduser() / image_archives.FOLDER
    wanted = [image_archives.Need(**need) for need in needed]
    rows, brought = image_archives.decide(folder, image_archives.lacking(wanted, held), machines)
    return ansible.verdict(rows, "") | {"brought": brought}


def _engines(context: Context, profile: str, nodes: Sequence[str]) -> list[tuple[LoadedProfile, Sequence[str]]]:
    """One profile, with `nodes` on those; else every group of the list."""
    cluster, listed = context.cluster, ansible.listed(context.vars)
    if nodes or listed is None:
        loaded = profiles.load(profile) if profile else None
        return [(loaded, list(nodes) or downloads.nodes(loaded, cluster))] if loaded else []
    grouped = case.fleet(listed, runs=observed.known(cluster)).grouped
    return [(one.need.loaded, one.group.nodes) for one in grouped]
