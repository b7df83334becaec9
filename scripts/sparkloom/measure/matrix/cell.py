"""One cell at work: its profile is written, the served one is switched to it, measured, judged.

Both steps are commands, so that what hangs or dies in them takes nothing else with it.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from sparkloom.base import json_text
from sparkloom.base.errors import InputError
from sparkloom.base.repository import REPO
from sparkloom.inputs import profile
from sparkloom.judge import diagnose
from sparkloom.measure.bench import target
from sparkloom.measure.bench.http1 import Garbled
from sparkloom.measure.matrix import child, verdict
from sparkloom.measure.matrix.spec import Cell, Spec
from sparkloom.measure.matrix.verdict import CellVerdict
from sparkloom.onnode import loglines

TAIL_LINES, MOST_LOG = 40, 4_000_000
UNREACHABLE = 4  # ansible-playbook's word for machines that do not answer: no fault of a cell
FORCED = {"preflight_force": True, "model_serving_force": True}  # what the rules speak against is asked for


class SiteTrouble(Exception):
    """The machines, not the configuration."""


class Seams(NamedTuple):
    """The commands that a cell is made of. `switch` gets `-i INVENTORY -e profile=NAME` behind it, and `-e group=NAME`
    where a site serves several.
    """

    switch: list[str]
    bench: list[str]
    logs: list[list[str]]
    url: str
    ca: Path | None = None
    key_file: Path | None = None


Tick = Callable[[str, float], bool]  # what is being done, for how many seconds; true: stop


def write_profile(spec: Spec, cell: Cell, folder: Path) -> str:
    """The cell as a profile of its own; its name. People can serve it by this file again."""
    data = profile.load(spec.profile, overrides=cell.overrides).document.data
    kept = {key: value for key, value in data.items() if key not in ("extends", "evidence")}
    kept["summary"] = f"cell {cell.id} of {spec.name}, made from {Path(spec.profile).stem}: {', '.join(cell.overrides)}"
    name = f"{spec.name}-{cell.id}"
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(kept, sort_keys=False, allow_unicode=True, width=120)
    (folder / f"{name}.yml").write_text(text, encoding="utf-8")
    return name


class Work:
    """`run` gives the cell's result; Stopped and SiteTrouble leave none."""

    def __init__(
        self, spec: Spec, cell: Cell, folder: Path, seams: Seams, tick: Tick, lock: int, *, forced: bool
    ) -> None:
        self._spec, self._cell, self._seams, self._tick, self._lock = spec, cell, seams, tick, lock
        self._forced = forced
        self._folder = folder / cell.id
        self._profiles = folder / "profiles"
        self._inventory = str(Path(spec.inventory or REPO / "inventories" / "gb10").resolve())
        self._name = ""

    def run(self) -> dict[str, Any]:
        began, started = time.time(), time.monotonic()
        self._folder.mkdir(parents=True, exist_ok=True)
        for old in self._folder.iterdir():  # of a try that was killed
            old.unlink()
        self._name = write_profile(self._spec, self._cell, self._profiles)
        judged, document = self._switch(), None
        switched = time.monotonic() - started
        if judged is None:
            judged, document = self._measure()
        explained = self._explain() if judged.status not in ("ok", "garbage") else {}
        return {
            "id": self._cell.id,
            "profile": self._spec.profile,
            "settings": self._cell.settings,
            "status": judged.status,
            "note": judged.note,
            "levels": [_without(level, "per_request") for level in (document or {}).get("levels", [])],
            **explained,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
            "seconds": round(time.monotonic() - started, 1),
            "switch_seconds": round(switched, 1),
            "provenance": (document or {}).get("provenance", {}),
        }

    def _child(self, what: str, argv: list[str], *, log: Path, **more: Any) -> child.Outcome:
        env = {**os.environ, profile.OWN: str(self._profiles.resolve()), "ANSIBLE_FORCE_COLOR": "0", "NO_COLOR": "1"}

        def tick(spent: float) -> bool:
            return self._tick(f"{what}: {_last_line(log)}", spent)

        return child.run(argv, log=log, tick=tick, env=env, lock=self._lock, **more)

    def _switch(self) -> CellVerdict | None:
        log = self._folder / "switch.log"
        forced = ["-e", json.dumps(FORCED)] if self._forced else []
        group = ["-e", f"group={self._spec.group}"] if self._spec.group else []
        argv = [*self._seams.switch, "-i", self._inventory, *forced, *group, "-e", f"profile={self._name}"]
        done = self._child("switching", argv, log=log, limit_s=self._spec.limits.switch_seconds, cwd=REPO)
        log_text = _text(log)
        if done.code == UNREACHABLE or (done.code and verdict.at_fault(log_text) == "site"):
            raise SiteTrouble(f"the site is not ready to serve anything, {log} says why")
        return verdict.start(done.code, done.seconds, log_text)

    def _measure(self) -> tuple[CellVerdict, dict[str, Any] | None]:
        out = self._folder / "bench.json"
        done = self._child(
            "measuring",
            self._bench(),
            log=self._folder / "bench.log",
            out=out,
            limit_s=self._spec.limits.bench_seconds,
            end=signal.SIGINT,
        )
        document = json_text.kept(out) or None
        bench_log = _text(self._folder / "bench.log")
        if done.code == 2 and "[no-answer]" not in bench_log:
            raise InputError.single("sparkloom bench", bench_log.strip()[-600:], rule="bench")
        judged = verdict.measured(document, done.code, alive=self._alive(), bounds=self._cell.bounds)
        return judged, document

    def _bench(self) -> list[str]:
        bench, limits, seams = self._spec.bench, self._spec.limits, self._seams
        argv = [
            *seams.bench, "--url", seams.url, "-i", self._inventory, "--profile", self._name, "--json",
            "-n", ",".join(map(str, bench.concurrency)), "--max-tokens", str(bench.max_tokens),
            "--seed", str(bench.seed), "--warmup", str(bench.warmup_tokens),
            "--first-timeout", str(limits.first_token_seconds), "--stall-timeout", str(limits.stall_seconds),
        ]  # fmt: skip
        if self._spec.group:
            argv += ["--group", self._spec.group]
        if bench.requests:
            argv += ["--requests", str(bench.requests)]
        if bench.thinking is not None:
            argv += ["--thinking" if bench.thinking else "--no-thinking"]
        if seams.ca:
            argv += ["--ca", str(seams.ca)]
        return argv + (["--api-key-file", str(seams.key_file)] if seams.key_file else [])

    def _alive(self) -> bool:
        """Whatever it answers, somebody is there."""
        try:
            return target.parse(self._seams.url, ca=self._seams.ca).get("/v1/models", 5.0)[0] < 500
        except (OSError, Garbled, InputError):
            return False

    def _explain(self) -> dict[str, Any]:
        """The engine's own words where it has any, else the playbook's; which rules know them; the lines at the end."""
        logs = []
        for number, argv in enumerate(self._seams.logs):
            file = self._folder / f"engine{number}.log"
            self._child("reading logs", argv, log=self._folder / "logs.log", out=file, limit_s=60)
            logs.append(_text(file))
        logs.append(_text(self._folder / "switch.log"))
        diagnosis = diagnose.diagnose("\n".join(logs))
        text = next((loglines.last_epoch(text) for text in logs if text.strip()), "")
        tail = [line for line in loglines.clean(text) if line.strip()][-TAIL_LINES:]
        return {
            "matched_rules": [match["rule"] for match in diagnosis["matches"] if match["severity"] == "error"],
            "telling": diagnosis["lines"],
            "trace_tail": "\n".join(line[:400] for line in tail),
        }


def _without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in names}


def _last_line(file: Path) -> str:
    """What a command said last; a playbook's task without its row of stars."""
    try:
        with file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 2000))
            lines = log.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip(" *") for line in reversed(lines) if line.strip(" *")), "")


def _text(file: Path) -> str:
    try:
        return file.read_bytes()[-MOST_LOG:].decode(errors="replace")
    except OSError:
        return ""
