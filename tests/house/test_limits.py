"""What `--limit` means for each playbook, as docs/reference/limits.md has it: its nodes' part, or a refusal.

A task with `run_once` is done for all, whichever node asks. Each one is known here: it reads, or belongs to the site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.places import REPO

PLAYBOOKS = sorted(path.stem for path in (REPO / "playbooks").glob("*.yml"))
PAGE = REPO / "docs/reference/limits.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.*?) ?\|$", re.M)
# What plans, judges, waits or says; a Secret of one run, and files below build/ and beside the inventory.
READS = re.compile(
    r"ansible\.builtin\.(debug|assert|pause)|operation\.hold|identity\.\w+|site\.\w+|(fabric|archives|doctor)\.\w+|k3s_others"
    r"|k3s\.(plan|decide|token_files|leftovers)|weights\.\w+|images\.\w+|image_build\.\w+|groups\.(listed|plan)"
    r"|cluster\.(gpus|multus_objects|multus_absent|networks|page|metrics|wait)|gateway\.prove|teardown\.(plan|others)"
)
# What changes something that is no single node's, in a playbook that may be limited.
OF_THE_SITE = {
    "cluster": {
        "k3s_secrets": "reads the tokens on the first server",
        "k3s_start": "starts K3s on these nodes, one after the other",
        "k3s.renew_access": "renews the administrator's access here",
    },
    "fabric": {"ansible.builtin.command": "as `verify`"},
    "gpu": {"kubernetes.core.k8s": "applies the device plugin"},
    "metrics": {
        "kubernetes.core.k8s": "applies exporters, alerts, dashboards",
        "cluster.forget_metrics": "takes away what an earlier choice made",
    },
    "network": {"kubernetes.core.k8s": "applies Multus and the attachments"},
    "benchmark": {"ansible.builtin.command": "asks the endpoint"},
    "verify": {"ansible.builtin.command": "with `fabric_check_between=pods`: measures in pods on all nodes"},
}
MEANS = {
    "part": "its nodes' part",
    "whole": "refused",
    "": "changes nothing",
    "some": "its nodes' part; refused with `teardown_serving`, `teardown_group`, `teardown_cluster`",
}
CONSENTS = ("teardown_serving", "teardown_cluster", "teardown_group")


@dataclass(frozen=True)
class Once:
    """A task that one node does for all."""

    where: str
    does: str
    others: bool  # on machines that need not be in the run


@cache
def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def of_file(role: str, file: str, once: bool) -> Iterator[Once]:
    for entry in read(REPO / f"roles/{role}/tasks/{file}.yml"):
        yield from of_task(role, file, entry, once)


def of_task(role: str, file: str, entry: dict[str, Any], once: bool) -> Iterator[Once]:
    once = once or entry.get("run_once", False)
    for part in ("block", "rescue", "always"):
        for inner in entry.get(part, ()):
            yield from of_task(role, file, inner, once)
    module = next((key for key in entry if "." in key or key in ("sparkloom", "sparkloom_node")), "")
    args = entry.get(module)
    if f"{role}_part" in str(entry.get("when")):
        return  # which its playbook names
    if module in ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks"):
        named = args["file"] if isinstance(args, dict) else args
        yield from of_file(role, named.removesuffix(".yml"), once)
    elif module == "ansible.builtin.include_role":
        wanted = args.get("tasks_from", "main")
        for one in entry["loop"] if "{{" in wanted else [wanted]:
            yield from of_file(args["name"], one, once)
    elif once and module:
        does = args["do"] if module.startswith("sparkloom") else module
        yield Once(f"{role}/{file}: {entry['name']}", does, "{{" in entry.get("delegate_to", ""))


@cache
def tasks(playbook: str) -> tuple[Once, ...]:
    found: list[Once] = []
    for play in read(REPO / f"playbooks/{playbook}.yml"):
        for role in play["roles"]:
            part = role.get("vars", {}).get(f"{role['role']}_part", "main")
            found += of_file(role["role"], part, once=False)
    return tuple(found)


def declared(playbook: str) -> str:
    """`part` or `whole`, as it tells role operation; `some` where its consents decide; nothing without that role."""
    plays = read(REPO / f"playbooks/{playbook}.yml")
    said = [role["vars"]["operation_limit"] for role in plays[0]["roles"] if role["role"] == "operation"]
    return said[0] if said and said[0] in ("part", "whole") else "some" if said else ""


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_what_is_done_once_is_known_and_reaches_no_node_that_a_limit_leaves_out(playbook: str) -> None:
    limit, known = declared(playbook), OF_THE_SITE.get(playbook, {})
    once = tasks(playbook)
    if limit in ("part", ""):
        strange = [one for one in once if not READS.fullmatch(one.does) and one.does not in known]
        assert strange == [], "classify it here, or have the playbook refuse a limit"
        assert {one.does for one in once if one.others} <= known.keys()
        assert known.keys() <= {one.does for one in once}


def test_teardown_refuses_what_ends_on_every_node() -> None:
    """What is done once there belongs to one of the consents with which a limit is refused."""
    roles = read(REPO / "playbooks/teardown.yml")[0]["roles"]
    rule = next(role["vars"]["operation_limit"] for role in roles if role["role"] == "operation")
    assert all(consent in rule for consent in CONSENTS)
    parts = {"serving": "serving", "cluster": "cluster", "others": "cluster", "undo": "cluster"}
    changes = [one.where for one in tasks("teardown") if not READS.fullmatch(one.does)]
    files = {where.partition(":")[0] for where in changes}
    assert files == {"teardown/serving", "teardown/cluster", "k3s/undo"}
    assert all(f"teardown_{parts[file.split('/')[1]]}" in CONSENTS for file in files)


def test_site_yml_passes_over_what_is_refused_alone() -> None:
    for entry in read(REPO / "site.yml"):
        whole = declared(entry["tags"][0]) == "whole"
        assert entry.get("vars") == ({"operation_limit_ends": True} if whole else None), entry["name"]


def test_the_page_says_so_for_every_playbook() -> None:
    rows = {name: (means, site) for name, means, site in ROW.findall(PAGE.read_text())}
    wanted = {name: (MEANS[declared(name)], "; ".join(OF_THE_SITE.get(name, {}).values())) for name in PLAYBOOKS}
    assert rows == wanted
