"""What a run of Ansible says to a person: a task's own words, once, and a last line that tells what came of it all."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base import amount

STREAMS = ("stderr", "stdout", "module_stderr", "module_stdout")  # what a program said beside a task's message
# Keys of a result that tell a person nothing, or that Ansible shows by itself.
STATE = {
    "changed", "deprecations", "diff", "exception", "failed", "failed_when_result", "invocation", "skipped",
    "unreachable", "warnings",
}  # fmt: skip
# Ansible's own messages that say nothing without another key.
EXACT = {"Assertion failed": "assertion", "non-zero return code": "cmd"}
FRAMES = {"Task failed.", "Module failed.", "Action failed."}
KEPT = 20  # lines of each
OURS = ("sparkloom", "sparkloom_node")  # our action plugins
TRACEBACK = "Traceback (most recent call last)"


def shown(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if not key.startswith("_ansible") and key not in STATE}


def words(result: Mapping[str, Any], causes: Iterable[str] = ()) -> str:
    """A task's words as they are meant, not as YAML or JSON; empty where its result is data and no words.

    `causes`: what an error came from, which Ansible keeps apart and a message need not tell. Data beside the words
    (`problems`, `rows`, ...) is for plays: it says the same again.
    """
    told = shown(result)
    message = told.get("msg", next(iter(told.values())) if len(told) == 1 else None)  # `debug: {var: ...}` names no msg
    if isinstance(message, list) and all(isinstance(line, str) for line in message):
        message = "\n".join(message)
    if not isinstance(message, str) or not message.strip():
        return ""
    parts = [message.rstrip()]
    if exact := told.get(EXACT.get(message, "")):
        parts = [f"{message}: {shlex.join(exact) if isinstance(exact, list) else exact}"]
    parts += [cause for cause in causes if cause not in FRAMES and cause.rstrip(".") not in message]
    for stream in STREAMS:
        said = _last(str(told.get(stream) or ""))
        if said and said not in message:
            parts.append(f"{stream}:\n{said}")
    return "\n".join(parts)


def causes(result: Any) -> Iterator[str]:
    """Of a failed task as callbacks get it: message by message, what the error came from."""
    event = getattr(getattr(result, "exception", None), "event", None)
    while event is not None:
        yield event.msg
        event = event.chain and event.chain.event


def _last(text: str) -> str:
    """The end of it; of a traceback only what it says."""
    before, found, trace = text.strip().partition(TRACEBACK)
    lines = [*before.rstrip().splitlines(), *(trace.splitlines()[-1:] if found else ())]
    return "\n".join(lines[-KEPT:])


def does(task: Any) -> str:
    """What a task of Ansible's asks for; one of ours tells it by `do`."""
    return str(task.args.get("do", "")) if task.action in OURS else str(task.action)


@dataclass(slots=True)
class Ending:
    """Follows a run, for its last line."""

    proved: dict[str, str] = field(default_factory=dict)  # by group, what is to be said of it
    url: str = ""
    begun: bool = False  # a part of ours that changes something was there
    failed: str = ""  # the task that failed last
    measured: dict[str, float] = field(default_factory=dict)  # as `site.expected` keeps it
    asleep: list[str] = field(default_factory=list)  # on demand: proved or not, the next request wakes them
    stopped: list[str] = field(default_factory=list)  # ... and by whom
    rest: str = ""  # what a run for some of the Sparks passed over

    def take(self, done: str, result: Mapping[str, Any]) -> None:
        """A task's good result."""
        self.measured |= result.get("measured", {})
        self.rest = result.get("rest", self.rest)
        if done.startswith("groups.") and "run" in result:
            run = result["run"]
            self.proved = {name: _about(**told) for name, told in run["proved"].items()}
            self.asleep = [str(name) for name in run["asleep"]]
            self.stopped = [f"{one['name']} (by {one['stopped']})" for one in run["groups"] if one["stopped"]]
        elif done == "gateway.prove":
            self.url = str(result["url"])

    def serves(self) -> str:
        """What serves, where this run has proved it."""
        at = f" at {self.url}" if self.url else ""
        up = {name: about for name, about in self.proved.items() if name not in self.asleep}
        rest = [f"asleep, wakes with a request: {', '.join(self.asleep)}"] if self.asleep else []
        rest += [self.rest] if self.rest else []
        rest += [f"stays stopped: {', '.join(self.stopped)}"] if self.stopped else []
        if len(up) > 1:
            told = ", ".join(f"{name}{about}" for name, about in up.items())
            return "; ".join([f"{len(up)} groups serve{at}: {told}", *rest])
        return "; ".join([*(f"{name} serves{at}{about}" for name, about in up.items()), *rest])


def _about(ranks: int, transport: str) -> str:
    told = ", ".join(part for part in (amount.of(ranks, "rank"), transport) if part)
    return f" ({told})"


def changes_of(count: int) -> str:
    return f"{count} change{'' if count == 1 else 's'}"


def outcome(
    seconds: float,
    changes: Mapping[str, int],
    lost: Collection[str] = (),
    *,
    dry: bool = False,
    serves: str = "",
    failed: str = "",
) -> str:
    """The last line."""
    changed = {host: count for host, count in sorted(changes.items()) if count}
    took = f"{seconds:.0f} s"
    if lost:
        where = f" at '{failed}'" if failed else ""
        return f"failed on {', '.join(sorted(lost))}{where} after {took}; mend it, then the same command again"
    count, total = ", ".join(f"{host} {count}" for host, count in changed.items()), sum(changed.values())
    made = f"{changes_of(total)} ({count})"
    if dry:
        done = f"dry run: {made} would be made ({took})" if total else f"dry run: nothing would change ({took})"
    else:
        done = f"done: {made} in {took}" if total else f"nothing changed ({took})"
    return f"{done}; {serves}" if serves else done
