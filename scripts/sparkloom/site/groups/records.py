"""What is served: written beside the pods when a start was proved, read by the next start, by `status` and by a switch.

The pods say what runs; this says since when, from which configuration, and what the nodes had before it was loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkloom.base import json_text
from sparkloom.base.finding import Finding
from sparkloom.judge import diagnose
from sparkloom.onnode.now.labels import ONLY_SERVED
from sparkloom.onnode.now.pods import since as since
from sparkloom.onnode.now.pods import state
from sparkloom.site.checks import report
from sparkloom.site.client import Client

KEY = "served.json"
Record = dict[str, Any]


def read(client: Client, name: str = ONLY_SERVED) -> Record:
    """Of the group whose record has that name; `served` is that of a site with one profile."""
    return _record(client.config_map(name))


def _record(data: dict[str, str] | None) -> Record:
    return json_text.mapping((data or {}).get(KEY))


def memory(client: Client) -> dict[str, float]:
    """GiB that each node had before a load, by all records that there are: the most of them was without neighbours."""
    found: dict[str, float] = {}
    for data in client.config_maps():
        for node, gib in _record(data).get("memory_gib", {}).items():
            found[node] = max(gib, found.get(node, 0.0))
    return found


def judged(record: Record, asked: str, inventory: str) -> Record:
    """By which profile a site is judged: the one that is asked for, else the one that was proved, else the inventory's.

    What serves is the truth; that the inventory says something else is a remark. `words` is what a cure's command
    needs to mean this profile.
    """
    profile = asked or str(record.get("profile") or "") or inventory
    rows = []
    if profile != inventory and not asked:
        change = f"playbooks/switch.yml -e profile={inventory} changes to the inventory's"
        fix = f"profile: {profile} in group_vars/all/cluster.yml keeps it; {change}"
        rows = [report.as_dict(Finding("cluster", "profile", f"{profile} serves", inventory, fix, "info"))]
    if record.get("failed"):
        lost = record["failed"]
        found = f"{lost['profile']} did not start at {lost['at']}: {lost['cause'].splitlines()[0]}"
        rows.append(report.as_dict(Finding("cluster", "last start", found, "a token", "sparkloom status -i", "info")))
    words = f"-e profile={profile}" if asked or profile != inventory else ""
    return {"profile": profile, "words": words, "rows": rows}


def write(client: Client, record: Record, name: str = ONLY_SERVED, labels: Mapping[str, str] | None = None) -> bool:
    """That of a site with one profile has no group's label: it outlives the group."""
    data = {KEY: json.dumps(record, indent=1, sort_keys=True) + "\n"}
    return client.put_config_map(name, data, labels=None if name == ONLY_SERVED else labels)


def good(plan: Record, pods: list[Any], memory: dict[str, float], before: Record) -> Record:
    """The record of a start that was proved, of ranks that run one image; another profile's failure stays known."""
    same = before.get("config_hash") == plan["config_hash"] and before.get("profile") == plan["profile"]
    lost = before.get("failed")
    return {
        **plan,
        **({"failed": lost} if lost and lost.get("profile") != plan["profile"] else {}),
        "digest": next((state(pod).image for pod in pods), ""),
        "since": since(pods),
        "memory_gib": memory or (before.get("memory_gib", {}) if before else {}),
        "previous": before.get("previous", "") if same else before.get("profile", ""),
    }


def failed(before: Record, profile: str, cause: str) -> Record:
    """What was good stays known; beside it stands what did not start, and why."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {**before, "failed": {"profile": profile, "cause": cause[:2000], "at": at}}


def keep_logs(client: Client, labels: dict[str, str], folder: Path) -> tuple[list[Path], dict[str, Any]]:
    """Every rank's log, and the one before its last restart, as files; and what they say about the cause."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for pod in client.pods(labels):
        rank = state(pod).rank
        for name, previous in ((f"rank{rank}.log", False), (f"rank{rank}.previous.log", True)):
            if text := client.whole(pod.metadata.name, previous=previous):
                (folder / name).write_text(text)
                written.append(folder / name)
    return written, diagnose.diagnose_files(written) if written else {"matches": [], "lines": []}


def explained(diagnosis: dict[str, Any]) -> str:
    """A diagnosis as a few lines."""
    if diagnosis["matches"]:
        return "\n".join(f"{m['rule']}: {m['why']}\n  -> {m['fix']}" for m in diagnosis["matches"][:3])
    return "\n".join(f"  {line}" for line in diagnosis["lines"])
