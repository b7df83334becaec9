"""An engine's words read backwards: what is the model, the placement, a flag, the author's machine, a fork's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.base.finding import Finding
from sparkloom.inputs.catalogs import argv, releases
from sparkloom.inputs.catalogs.argv import Stray, Use
from sparkloom.inputs.catalogs.catalog import Catalog, Flag
from sparkloom.inputs.importers.expansion import OPEN
from sparkloom.inputs.importers.found import Found, Leftovers, Started, as_text, short
from sparkloom.inputs.importers.starts import plain
from sparkloom.launch.engines.base import Adapter
from sparkloom.launch.imported import readings

LEAVE_OUT = "leave it out"
FORKED = ("choice", "unregistered", "type")  # what a fork may take otherwise
NO_JSON = "expected valid JSON"  # what none takes
NEAR = 0.9  # a name as like as this to one that is known is a slip of the pen, and no fork's
MOST = 8  # Sparks of one launch


def home(text: str) -> str:
    """A path in the author's home is one, whoever that is."""
    return text.replace("${HOME}/", "~/")


@dataclass(slots=True)
class Said:
    """What one command line says, in a profile's words."""

    model: str = ""
    file: str = ""
    revision: str = ""
    draft: str = ""
    parts: dict[str, int] = field(default_factory=dict)  # tp, pp, dp, ep, nodes
    experts: bool = False  # expert parallelism over all that there is
    backend: str = ""  # how vLLM's ranks are started
    flags: dict[str, Any] = field(default_factory=dict)
    fork: dict[str, Any] = field(default_factory=dict)  # launch key -> form of its values
    leftover: Leftovers = field(default_factory=Leftovers)
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class Reading:
    catalog: Catalog
    start: Started
    adapter: Adapter
    forked: bool  # whether the image may take more than its release
    given: Mapping[str, str] = field(default_factory=dict)  # flags that sparkloom itself wrote into an export, as text

    def read(self) -> Said:
        said = Said()
        self._words(list(map(home, self.start.words)), said)
        return said

    def _words(self, words: Sequence[str], said: Said) -> None:
        for part in argv.parts(self.catalog, words):
            if isinstance(part, Stray):
                self._stray(part, said)
            else:
                self._use(part, said)

    def _stray(self, stray: Stray, said: Said) -> None:
        text = " ".join(stray.words)
        if stray.seat:
            self._model(stray.words[0], said)
        elif OPEN.search(text):
            said.leftover.add(short(text), "words that do not follow from this file")
        elif not stray.words[0].startswith("-"):
            self._refused(text, stray.problems[0].message if stray.problems else "is no flag's", LEAVE_OUT, said)
        else:
            self._unknown(stray, said)

    def _unknown(self, stray: Stray, said: Said) -> None:
        """A flag that this release has not: another's, a fork's, or a slip of the pen."""
        name, equals, attached = stray.words[0].partition("=")
        values = [attached] if equals else stray.words[1:]
        key = name.lstrip("-").replace("-", "_")
        others = (self.catalog.of(release) for release in reversed(releases.known(self.catalog.engine)))
        if having := next(((flag, other) for other in others if (flag := other.flag(name))), None):
            key = key_of(having[0], name, having[1], self.adapter.called.values())
            said.flags[key] = readings.of(having[0], values)
            return
        near = [
            known
            for known in difflib.get_close_matches(name, list(self.catalog.spellings), n=3, cutoff=NEAR)
            if abs(len(known) - len(name)) <= 1  # a longer name is a flag of its own
        ]
        if self.forked and not near and name.startswith("--") and re.fullmatch(r"\w+", key):
            said.flags[key] = readings.plain(values)
            said.fork[key] = readings.form(said.flags[key])
            return
        message = stray.problems[0].message if stray.problems else f"{name} is not known"
        fix = f"write {near[0]}" if near else f"{LEAVE_OUT}, or name the fork that has it in engine.fork"
        self._refused(" ".join(stray.words), message, fix, said, "flag-unknown")

    def _refused(self, text: str, message: str, fix: str, said: Said, rule: str = "flag-extra-value") -> None:
        said.leftover.add(short(text), message)
        said.findings.append(Finding(self.start.where, rule, message, expected="", fix=fix))

    def _use(self, use: Use, said: Said) -> None:
        key = key_of(use.flag, use.spelled, self.catalog, self.adapter.called.values())
        written = " ".join([use.spelled, *use.values])
        names = {name.lstrip("-").replace("-", "_") for name in use.flag.names} | {use.flag.dest}
        placed = next((part for name, part in self.adapter.placed.items() if name in names), "")
        if not placed and any(self.given.get(name) == readings.text_of(use) for name in names):
            return  # sparkloom's own, and as it wrote it
        sited = next((why for name, why in self.adapter.sited.items() if name in names), "")
        lost = next((why for name, why in self.adapter.lost.items() if name in names), "")
        if lost:
            said.leftover.add(short(written), lost)
            fix = f"{LEAVE_OUT}; launch.parallel places the ranks"
            message = f"{short(written)} has no counterpart here: {lost}"
            said.findings.append(Finding(self.start.where, "no-counterpart", message, expected="", fix=fix))
        elif sited:
            shown = use.spelled if "secret" in sited else written
            said.leftover.add(short(shown), sited)
        elif any(OPEN.search(value) or re.fullmatch(r"\{+\w+\}+", value) for value in use.values):
            said.leftover.add(short(written), "its value does not follow from this file")
        elif use.values and not use.flag.takes_value:
            message = f"{use.spelled} takes no value, found '{use.values[0]}'"
            self._refused(f"{use.spelled}={use.values[0]}", message, f"write it without, or {LEAVE_OUT}", said)
        elif placed and not (placed == "dp" and use.values == ["1"] and key not in self.adapter.reserved):
            self._placed(placed, use, said)
        elif (filed := next((to for name, to in self.adapter.filed.items() if name in names), "")) and use.values:
            self._filed(filed, written, use.values[0], said)
        elif key == "config" and (words := self._configured(use.values, said)):
            self._words(words, said)
        elif key == "revision":
            said.revision = use.values[0] if use.values else ""
        else:
            self._flag(key, use, said)

    def _filed(self, key: str, written: str, path: str, said: Said) -> None:
        """A file that the source writes itself is read; another one is not here."""
        content = self._content(path)
        if content is not None and readings.same(content, self.given.get(key)):
            return  # sparkloom's own, and as it wrote it
        if content is not None:
            said.flags[key] = content
        elif path == self.given.get(key):
            said.flags[key] = path
        else:
            said.leftover.add(written, "a file that is not in the source; write its text as a mapping")

    def _configured(self, values: Sequence[str], said: Said) -> list[str]:
        """The words that a YAML file of flags stands for, where the source writes that file; the line's own win."""
        content = self._content(values[0] if values else "") or {}
        own = {"config", *said.flags, *(["model"] if said.model else [])}
        told = {str(key): item for key, item in content.items() if item and str(key).replace("-", "_") not in own}
        listed = [[f"--{key}", *(item if isinstance(item, list) else [item])] for key, item in told.items()]
        return [as_text(word) for words in listed for word in words if word is not True]

    def _content(self, path: str) -> dict[str, Any] | None:
        """What a file says that the source writes."""
        text = self.start.files.get(plain(path))
        with suppress(InputError):
            return dict(document.parse(text, path).data) if text else None
        return None

    def _placed(self, part: str, use: Use, said: Said) -> None:
        value = use.values[0] if use.values else ""
        if part == "model":
            self._model(value, said)
        elif part == "file":
            said.file = value
        elif part == "experts":
            said.experts = use.spelled not in use.flag.off
        elif part == "backend":
            said.backend = value
        elif part == "rpc_servers":
            said.parts["pp"] = 1 + len([item for item in value.split(",") if item])
        elif re.fullmatch("[0-9]{1,9}", value) and int(value) > 0:
            said.parts[part] = int(value)
        else:
            said.leftover.add(f"{use.spelled} {value}", "is no number of ranks")

    def _flag(self, key: str, use: Use, said: Said) -> None:
        value = readings.of(use.flag, use.values)
        if key in said.flags and said.flags[key] != value:
            first = f"{use.spelled} {short(argv.as_word(said.flags[key]))}"
            said.leftover.add(first, "given again later in the line: the engine takes the last")
        said.flags[key] = value
        problems = [p for p in argv.refused(use, self.catalog) if p.kind in FORKED and NO_JSON not in p.message]
        if problems and self.forked and key not in said.fork:
            said.fork[key] = readings.form(value, further=True)
        draft = value.get("model") if isinstance(value, dict) and key == "speculative_config" else None
        if key == "speculative_draft_model_path":
            draft = value
        if isinstance(draft, str) and "/" in draft and not OPEN.search(draft):
            said.draft = draft

    def _model(self, text: str, said: Said) -> None:
        if OPEN.search(text) or not text:
            said.leftover.add(short(f"model {text}"), "its name does not follow from this file")
            return
        repository, _, kind = text.partition(":") if self.adapter.one_file else (text, "", "")
        if kind:
            why = f"which file of the repository {kind} is, is not known here; write it as model.file"
            said.leftover.add(f"-hf {text}", why)
        said.model = repository


def key_of(flag: Flag, spelled: str, catalog: Catalog, called: Iterable[str] = ()) -> str:
    """A profile's key for a flag: its name, or that of what turns it off; llama.cpp's --parallel is `np` there.
    `called`: names that profiles, rules and the plan have for it, whichever a release writes first."""
    names = {name.lstrip("-").replace("-", "_") for name in flag.names}
    if spelled not in flag.off and (usual := next((name for name in called if name in names), "")):
        return usual
    key = (spelled if spelled in flag.off else flag.name).lstrip("-").replace("-", "_")
    if key == "parallel" and catalog.short_keys:
        return next(n.lstrip("-") for n in flag.names if not n.startswith("--"))
    return key


def parallel(said: Said, found: Found, adapter: Adapter, leftover: Leftovers) -> dict[str, int]:
    """Where the ranks go: a Spark has one GPU, so tensor, pipeline and data parallelism count Sparks."""
    sizes = {part: said.parts.get(part, 1) for part in ("tp", "pp", "dp")}
    if adapter.lends and "pp" not in said.parts and found.least_nodes > 1:
        sizes["pp"] = found.least_nodes  # who lends memory is added by whoever runs it
    nodes = sizes["tp"] * sizes["pp"] * sizes["dp"]
    ep = sizes["tp"] * sizes["dp"] if said.experts else said.parts.get("ep", 1)
    if said.parts.get("nodes", nodes) != nodes:
        leftover.add(f"nnodes {said.parts['nodes']}", f"a Spark has one GPU: these ranks are {nodes} Sparks here")
    if found.least_nodes > nodes:
        leftover.add(f"at least {found.least_nodes} nodes", f"the command's ranks (tp x pp x dp) fill {nodes}")
    if found.most_nodes is not None and found.most_nodes < nodes:
        leftover.add(f"at most {found.most_nodes} nodes", f"the command's ranks (tp x pp x dp) fill {nodes}")
    placed = {"nodes": nodes, "tp": sizes["tp"], "pp": sizes["pp"]}
    return placed | ({"dp": sizes["dp"]} if sizes["dp"] > 1 else {}) | {"ep": ep}


def backend(said: Said, placed: Mapping[str, int], leftover: Leftovers) -> None:
    if not said.backend:
        return
    many = placed["nodes"] > 1
    if said.backend == "ray":
        how = "translated: ranks meet by vLLM's own --nnodes, --node-rank and --headless"
        leftover.add("--distributed-executor-backend ray", how if many else "one Spark needs no Ray")
    elif said.backend != "mp" or not many:
        said.flags["distributed_executor_backend"] = said.backend


def too_many(placed: Mapping[str, int], start: Started) -> list[Finding]:
    if placed["nodes"] <= MOST:
        return []
    message = f"tp x pp x dp = {placed['nodes']} ranks; a Spark has one GPU and a launch has up to {MOST} Sparks"
    fix = "this was written for larger machines: `sparkloom profile new MODEL --nodes N` places it on Sparks"
    return [Finding(start.where, "too-many-nodes", message, expected="", fix=fix)]
