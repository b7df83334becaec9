"""Runs playbooks/cabling.yml and writes the fabric.yml of what it found."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base import repository
from sparkloom.base.errors import InputError
from sparkloom.inputs.cluster import Cluster
from sparkloom.site import play
from sparkloom.site.cabling import declare, look
from sparkloom.site.cabling.shape import Found

KEPT_LINES = 8


def discover(
    inventory: Path, extra: Iterable[str], say: Callable[[str], object], *, dry: bool
) -> tuple[Found, dict[str, Any]]:
    """What was found, and what became of fabric.yml: its path, and whether it was changed."""
    cluster = case.cluster(inventory)
    facts = ask(cluster, inventory, extra, say)
    found = look.judge(cluster, facts)
    path = declare.path_of(inventory)
    changed = bool(found.used) and declare.write(found, path, dry=dry)
    return found, {"path": str(path), "changed": changed, "written": changed and not dry}


def ask(cluster: Cluster, inventory: Path, extra: Iterable[str], say: Callable[[str], object]) -> dict[str, Any]:
    """The facts of all nodes; InputError when Ansible could not even begin."""
    kept = repository.kept(cluster.name) / look.FILE
    kept.unlink(missing_ok=True)
    play.require_collections()
    command = play.command(repository.REPO / "playbooks" / "cabling.yml", inventory, extra)
    say(f"listening on the ports of {len(cluster.nodes)} node(s); a switch needs half a minute to say its name\n")
    done = subprocess.run(
        command, cwd=repository.WORK, env=play.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    if not kept.exists():
        words = " ".join([line.strip() for line in done.stdout.splitlines() if line.strip()][-KEPT_LINES:])
        raise InputError.single("playbooks/cabling.yml", f"ansible-playbook ended before: {words}", rule="ansible")
    return dict(json.loads(kept.read_text())["nodes"])
