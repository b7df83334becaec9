"""Enable, start, stop or restart several units in one run.

A unit that should run is enabled and active; one that should not is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NotRequired, TypedDict

from sparkloom.onnode.host import networkd
from sparkloom.onnode.host.read import completed
from sparkloom.onnode.task import Task


class Unit(TypedDict):
    name: str  # With its suffix.
    run: bool  # Whether it should run, now and after a boot.
    now: NotRequired[bool]  # False: wanted at boot, and neither started nor restarted; default True


systemctl = partial(completed, "systemctl", timeout=120)


def is_(word: str, unit: str) -> bool:
    return systemctl(f"is-{word}", "--quiet", unit).returncode == 0


def steps(unit: Unit, written: bool) -> list[tuple[str, ...]]:
    """What systemctl has to be told, in order."""
    name, enabled, active = unit["name"], is_("enabled", unit["name"]), is_("active", unit["name"])
    if not unit["run"]:
        return [(word, name) for word, is_now in (("stop", active), ("disable", enabled)) if is_now]
    words: list[tuple[str, ...]] = [] if enabled else [("enable", name)]
    if not unit.get("now", True):
        return words
    if active and written:
        words.append(("restart", name))
    return words if active else [*words, ("start", name)]


def main(
    task: Task,
    units: Sequence[Unit],  # which units
    written: bool = False,  # their files were just written; systemd reads them again and what runs is restarted
) -> None:
    if not task.check_mode:
        networkd.hold(task)
    if written and not task.check_mode:
        systemctl("daemon-reload")
    done: list[str] = []
    for unit in units:
        for words in steps(unit, written):
            done.append(" ".join(words))
            if task.check_mode:
                continue
            answer = systemctl(*words)
            if answer.returncode:
                name = unit["name"]
                why = " ".join((answer.stderr or answer.stdout).split())
                task.fail_json(msg=f"systemctl {done[-1]}: {why}; see journalctl -u {name} on the node", done=done)
    task.exit_json(changed=bool(done), done=done)
