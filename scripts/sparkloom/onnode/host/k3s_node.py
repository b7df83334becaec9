"""A node of K3s, asked on its own machine: does it live in its cluster, since when does its unit run, what it said."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from sparkloom.base import json_text
from sparkloom.onnode.host.read import completed
from sparkloom.onnode.task import Data

run = partial(completed, timeout=30)
# Kubelets renew their lease every 10 s; after 40 s without, the cluster no longer calls the node Ready.
ALIVE = 60.0
TOKENS = re.compile(r"K10[0-9a-f]{8,}::\S+|\b[0-9a-f]{64}\b")
# What differs between two lines that say the same: K3s' time, and klog's with its process and source line.
WHEN = re.compile(r'^time="[^"]*" |^(?P<level>[IWEF])\d{4} [\d:.]+\s+\d+ ')
ENDING = re.compile(r"level=(fatal|error)|^[EF]\d{4} |Incorrect Usage|not defined|refused")


class Node:
    def __init__(self, service: str, name: str, binary: str, kubeconfig: str) -> None:
        self.service, self.name = service, name
        self.unit = f"{service}.service"
        self.kubectl = (binary, "kubectl", f"--kubeconfig={kubeconfig}", "--request-timeout=10s")

    def get(self, *words: str) -> Data:
        done = run(*self.kubectl, "get", *words, "-o", "json")
        return json_text.mapping(done.stdout) if done.returncode == 0 else {}

    def waits(self, since: float) -> str:
        """Nothing when the node has lived in its cluster since then, else what is missing."""
        lease = self.get("lease", "-n", "kube-node-lease", self.name)
        renewed = lease.get("spec", {}).get("renewTime", "")
        if not renewed or moment(renewed) < since:
            return "a fresh sign of life of its kubelet"
        conditions = self.get("node", self.name).get("status", {}).get("conditions", [])
        state: Data = next((c for c in conditions if c["type"] == "Ready"), {})
        if state.get("status") != "True":
            return f"the node to be Ready ({state.get('message') or 'no word of it yet'})"
        if self.service == "k3s" and run(*self.kubectl, "get", "--raw=/readyz").stdout.strip() != "ok":
            return "the API server's /readyz"
        return ""

    def waits_now(self) -> str:
        """As `waits`, of a node whose unit may have run for long: what it did before its start does not count."""
        return self.waits(max(self.started(), time.time() - ALIVE))

    def started(self) -> float:
        """When its unit began to run; 0 when it does not."""
        micros = self._number("ActiveEnterTimestampMonotonic")
        return time.time() - time.monotonic() + micros / 1e6 if micros else 0.0

    def ended(self) -> int:
        return self._number("NRestarts")

    def _number(self, name: str) -> int:
        shown = run("systemctl", "show", "-p", name, "--value", self.unit).stdout.strip()
        return int(shown) if shown.isdigit() else 0

    def log(self, since: float) -> list[Any]:
        words = ("journalctl", "--no-pager", "-o", "cat", "-n", "400", "-u", self.unit, f"--since=@{int(since)}")
        return [TOKENS.sub("(secret)", line) for line in run(*words).stdout.splitlines() if line.strip()]


def moment(stamp: str) -> float:
    """As Kubernetes writes it, 2026-11-21T20:50:20.123456Z."""
    whole, _, rest = stamp.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{rest or 0}")


def named(lines: list[Any], causes: Sequence[Any]) -> list[Any]:
    """[(cause, how often it was said, its last line)], the most frequent first; each line counts for one cause."""
    found: dict[str, tuple[int, str]] = {}
    for line in lines:
        for cause in causes:
            if re.search(cause["pattern"], line):
                times, _ = found.get(cause["id"], (0, ""))
                found[cause["id"]] = (times + 1, line)
                break
    by_id = {cause["id"]: cause for cause in causes}
    return sorted(((by_id[key], *said) for key, said in found.items()), key=lambda row: -row[1])


def last_words(lines: list[Any], causes: Sequence[Any]) -> list[Any]:
    """What tells most, each thing once: lines with a known cause, whatever their level, then errors, else the last."""
    known = [line for _, _, line in named(lines, causes)]
    ending = [line for line in lines if ENDING.search(line) and line not in known]
    said = known + ending[-8:]
    unique = {WHEN.sub(r"\g<level>", line, count=1): line for line in said or lines[-12:]}
    return list(unique.values())
