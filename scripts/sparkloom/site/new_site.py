"""An inventory of one's own, written from what the machines said, and read back before anybody uses it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

from sparkloom.base.errors import InputError, Problem
from sparkloom.inputs import inventory, known_hosts
from sparkloom.inputs.cluster import Cluster
from sparkloom.site.sparks import Spark

WRITTEN = "# Written by `sparkloom init` from what the machines said; inventories/gb10/README.md explains each value."
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


def require_free(folder: Path) -> None:
    """Refused before anything is asked: a name that files and clusters cannot have, a folder that is somebody's."""
    if not NAME.fullmatch(folder.name):
        message = "expected a short name of a-z, 0-9 and -, as home or my-rack"
        raise InputError.single(folder.name, message, rule="site-name")
    if folder.exists():
        raise InputError.single(str(folder), "is there already; take another name, or edit it", rule="site-exists")


def judge(found: Sequence[Spark]) -> None:
    """All that is wrong, at once."""
    problems = [(spark.reached, spark.trouble) for spark in found if spark.trouble]
    for key in ("name", "address"):
        told = [getattr(spark, key) for spark in found if not spark.trouble]
        twice = sorted({value for value in told if told.count(value) > 1})
        problems += [(value, f"two machines have the {key} {value}; give one another") for value in twice]
    ports = {spark.interface for spark in found if not spark.trouble}
    if len(ports) > 1:
        problems.append((", ".join(sorted(ports)), "default routes lie on different ports; expected the same on all"))
    if problems:
        raise InputError(Problem(where, 0, 0, text, "spark") for where, text in problems)


def write(folder: Path, found: Sequence[Spark], user: str, profile: str, *, hotplug: bool = True) -> Cluster:
    """The shipped example with these machines in it; nothing stays when it cannot be read back."""
    judge(found)
    shutil.copytree(inventory.DEFAULT_INVENTORY, folder)
    try:
        (folder / "hosts.yml").write_text(hosts(found, user), encoding="utf-8")
        cluster = folder / "group_vars" / "all" / "cluster.yml"
        cluster.write_text(_cluster(cluster.read_text(encoding="utf-8"), folder.name, found, profile), encoding="utf-8")
        fabric = cluster.with_name("fabric.yml")
        stays = "  hotplug: true", f"  hotplug: {str(hotplug).lower()}"
        fabric.write_text(fabric.read_text(encoding="utf-8").replace(*stays), encoding="utf-8")
        known_hosts.keep(folder, {spark.name: spark.machine for spark in found if spark.machine.key})
        return inventory.load(folder)
    except BaseException:
        shutil.rmtree(folder)
        raise


def hosts(found: Sequence[Spark], user: str) -> str:
    sparks = {
        spark.name: {"ansible_host": spark.reached, "management_address": spark.address, "fabric_index": index}
        for index, spark in enumerate(found, 1)
    }
    groups = {"sparks": {"hosts": sparks}, "k3s_servers": {"hosts": {found[0].name: {}}}}
    content = {"all": {"vars": {"ansible_user": user}, "children": groups}}
    return f"---\n{WRITTEN}\n{yaml.safe_dump(content, sort_keys=False, width=200)}"


def _cluster(text: str, name: str, found: Sequence[Spark], profile: str) -> str:
    """The example's file with its comments and four values of this site, no example any more."""
    text = re.sub(r"^example: .*\n", "", text, flags=re.MULTILINE)
    for key, value in {
        "profile": profile,
        "  name": name,
        "    kubeconfig": f"~/.kube/sparkloom-{name}",
        "  management_interface": found[0].interface,
    }.items():
        line = f"{key}: {yaml.safe_dump(value).splitlines()[0]}"
        text, times = re.subn(rf"^{re.escape(key)}: \S+", lambda _: line, text, count=1, flags=re.MULTILINE)  # noqa: B023
        assert times == 1, key
    return text
