"""The proof that a group serves: every rank ready, the rails taken, one streamed answer. Then its record is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom.base import files
from sparkloom.base.errors import InputError
from sparkloom.onnode import loglines, smoke
from sparkloom.onnode.nccl import log as nccl_log
from sparkloom.render import keys, manifests
from sparkloom.site import patience
from sparkloom.site.client import Client
from sparkloom.site.groups import leftovers, records, waiting
from sparkloom.site.groups.group import RenderedGroup

LOG_BYTES = 4_000_000  # NCCL speaks while the ranks meet, long before this
NO_RAILS = "no network between ranks was planned"


class NotProved(Exception):
    """In words."""


FAILURES = (NotProved, smoke.NoAnswer, InputError, ApiException, HTTPError, OSError)


class Options(TypedDict):
    """What every step of a run goes by, as role model_serving has it."""

    force: bool  # serve although rules have error findings
    transport: Literal["refuse", "warn"]  # without all rails
    timeout: float  # seconds from applied to ready; 0 as the profile says
    restarts: int  # a rank that ended this often is given up
    smoke_tokens: int  # limit of the answer that proves it
    smoke_timeout: float  # seconds that one token may take
    memory_slack: float  # GiB that may be gone for other reasons
    rollback: bool  # start what served before where a start fails


@dataclass(slots=True)
class Proof:
    reached: Client
    group: RenderedGroup
    options: Options
    say: Callable[[str], None]
    streams: Callable[[str], None]  # the answer, as it comes

    def prove(self, record: str, memory: Mapping[str, float], keep: Collection[str]) -> dict[str, Any]:
        """What is said of what serves. `keep`: labels of the other groups that stay."""
        options, group = self.options, self.group
        ready = waiting.wait(self.reached, group.pods(options["timeout"], options["restarts"]), self.say)
        if not ready.ready:
            raise NotProved(ready.message)
        pods = {state.rank: state.pod for state in ready.states}
        transport, report = self._transport(pods)
        answer = self._answer(pods["0"])
        self._record(record, transport, ready.seconds, memory, keep)
        self._keep(answer, report)
        told = f"transport: {transport or NO_RAILS}\n{ready.message}; applied manifests and the answer: {group.folder}"
        self.say(f"\n{answer.model}: {answer.figures()}\n{told}")
        return {"ranks": len(pods), "transport": transport, "seconds": ready.seconds}

    def _transport(self, pods: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """From every rank's log."""
        rails = len(self.group.launch.fabric)
        if not rails:
            return "", {}
        said = [loglines.last_epoch(self.reached.head(pods[rank], LOG_BYTES)) for rank in sorted(pods, key=int)]
        report = nccl_log.read_text("\n".join(said), rails=rails, nodes=len(pods))
        words = f"{report.verdict}: {report.why}"
        if not report.good and self.group.policy == "refuse":
            raise NotProved(words)
        return words, report.as_dict()

    def _answer(self, pod: str) -> smoke.Answer:
        """Through the API server, with the engine's own key: no route is needed."""
        port, limit = self.group.launch.port, self.options["smoke_timeout"]
        key = (self.reached.secret(self.group.engine_key) or {}).get(keys.BARE_FILE)
        return smoke.ask(
            lambda: self.reached.connect(pod, port, limit),
            self.streams,
            max_tokens=self.options["smoke_tokens"],
            key=key,
        )

    def _record(
        self, name: str, transport: str, seconds: float, memory: Mapping[str, float], keep: Collection[str]
    ) -> None:
        group, before = self.group, records.read(self.reached, name)
        plan = {
            **group.record(),
            "config_hash": group.rendered.digest,
            "policy": group.policy,
            "ready_seconds": round(seconds, 1),
            "transport": transport,
        }
        if before.get("config_hash") == plan["config_hash"] and seconds < 1:  # it was ready before anybody waited
            plan["ready_seconds"] = before.get("ready_seconds", plan["ready_seconds"])
        record = records.good(plan, self.reached.pods(group.labels), dict(memory), before)
        records.write(self.reached, record, name, group.labels)
        with suppress(ApiException, HTTPError):  # what serves was proved; the doctor names what is still there
            leftovers.take(self.reached, {group.label, *keep})

    def _keep(self, answer: smoke.Answer, transport: Mapping[str, Any]) -> None:
        kept = {
            "yaml": manifests.to_yaml(self.group.rendered.objects),
            "answer.json": json.dumps(answer.as_dict(), indent=4) + "\n",
            "transport.json": json.dumps(transport, indent=4) + "\n",
        }
        for ending, text in kept.items():
            files.write(self.group.folder / f"{self.group.name}.{ending}", text)


def one_line(error: Exception) -> str:
    """One line for a person."""
    return patience.trouble(error) or str(error)


def failed(reached: Client, group: RenderedGroup, record: str, why: str) -> str:
    """Keeps every rank's log and says what they say; the record keeps the last good profile."""
    folder = group.folder / "logs" / group.name
    try:
        logs, diagnosis = records.keep_logs(reached, group.labels, folder)
        cause = records.explained(diagnosis) or why
        told = records.failed(records.read(reached, record), group.profile, f"{why}\n{cause}")
        records.write(reached, told, record, group.labels)
    except (ApiException, HTTPError) as error:
        logs, cause = [], f"and its logs cannot be read: {one_line(error)}"
    where = f"{len(logs)} logs: {folder}" if logs else "no rank had a log"
    return "\n".join(dict.fromkeys([f"{group.profile} did not start", why, cause, where]))
