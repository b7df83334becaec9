"""A profile drafted from what an importer found. Whatever of the source is not in it is in the remainder, with why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs.catalogs import environment as catalogued
from sparkloom.inputs.importers import vocabulary
from sparkloom.inputs.importers.expansion import OPEN
from sparkloom.inputs.importers.found import Found, Leftover, Leftovers, Started, by_flag, short
from sparkloom.inputs.known_models import Facts
from sparkloom.inputs.profile import UNNAMED, Fork
from sparkloom.launch import engines, reading
from sparkloom.launch.engines import base
from sparkloom.launch.imported import command, spoken
from sparkloom.launch.imported.command import Said, home

CONSENT = "runs_unpinned_code_of"  # in a profile's model: who may run what a publisher has there
NOT_YOURS = f"its author's consent, not yours: write model.revision, a commit that you have read, or model.{CONSENT}"
HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*")
_CACHED = re.compile(r"models--([\w.-]+?)--([\w.-]+)")
_FOLDER = re.compile(r"/([\w.-]+)/([\w.-]+?)/*$")
_QUANT = r"(?:UD-)?I?Q\d\w*|BF16|F16|MXFP4\w*"  # folders of a repository of GGUF files
_GGUF = re.compile(rf"(?:/(?:{_QUANT}))?/[^/]+\.gguf$")
# Folders that no publisher is called after.
_PLACES = re.compile(
    r"models?\d*|root|workspace|data|mnt|cache|path|to|home|opt|srv|tmp|var|weights|llms?|gguf|snapshots|hub|hf", re.I
)


@dataclass(slots=True)
class Draft:
    name: str
    data: dict[str, Any]  # as a profile's file has it; `model` may hold the id alone
    start: Started
    leftover: Leftovers = field(default_factory=Leftovers)
    findings: list[Finding] = field(default_factory=list)
    spoken: spoken.Spoken | None = None
    form: str = ""

    @property
    def nodes(self) -> int:
        return int(self.data.get("launch", {}).get("parallel", {}).get("nodes", 1))

    @property
    def engine(self) -> str:
        return str(self.data["engine"]["name"])

    @property
    def model(self) -> str:
        return str(self.data["model"]["id"])

    def know(self, facts: Facts | None) -> None:
        """Joins the model's facts. What the command says of the model goes before; a consent to run a publisher's code
        is a person's, and a draft model is the command's: neither is a fact.
        """
        if facts is not None:
            own = self.data["model"]
            known = {k: v for k, v in facts.model.items() if k not in ("id", "draft", CONSENT)}
            self.data["model"] = {"id": own["id"], **known, **own}


def draft(found: Found, stem: str, release: str | None = None) -> Draft:
    """`release`: of the engine, where a person names it."""
    start, kept = found.starts[0], found.kept
    leftover = Leftovers([*found.leftover, *start.leftover, *_others(found)])
    if OPEN.search(start.image):
        leftover.add(f"image {start.image}", "is named outside of this file")
        start.image = ""
    if start.engine not in engines.names():
        return _foreign(found, stem, leftover)
    adapter = engines.get(start.engine)
    engine = dict(kept.get("engine") or {})
    named = release or str(engine.get("release") or "")
    by, beside = spoken.GIVEN if release else spoken.WRITTEN, _installed(found, start.engine)
    told = spoken.of(start.engine, start.words, start.image, named, by, beside)
    if told.catalog is None:
        return _foreign(found, stem, leftover)
    own, fork = kept.get("derived") or {}, engine.get("fork")
    official = told.catalog
    catalog = reading.extended(official, Fork.model_validate(fork)) if fork else official
    forked = not spoken.official(start.image)
    words = command.Reading(catalog, start, adapter, forked, own.get("flags") or {})
    said = words.read()
    leftover += said.leftover
    model = _model(said, found, leftover)
    parallel = command.parallel(said, found, adapter, leftover)
    env, foreign = _environment(start, told, forked, own.get("env") or {}, bool(kept), leftover)
    command.backend(said, parallel, leftover)
    leftover = Leftovers(_explained(left, adapter) for left in leftover)
    data: dict[str, Any] = {
        "summary": str(kept.get("summary") or found.summary or f"{model['id']} with {start.engine}, imported"),
        "model": {**_kept_model(kept, leftover), **model},
        "engine": _engine(start, told, engine, said, foreign, leftover),
        "launch": {"parallel": parallel, **_as_written(said.flags, kept.get("launch") or {}, model["id"])},
        "env": env,
    }
    for section in ("requests", "evidence"):
        if kept.get(section):
            data[section] = kept[section]
    if not kept:
        data["evidence"] = [_evidence(found)]
    findings = [*said.findings, *command.too_many(parallel, start)]
    name = str(kept.get("name") or "") or f"{model['id'].lower().replace('/', '--')}--{_slug(stem)}"
    return Draft(name, {k: v for k, v in data.items() if v}, start, leftover, findings, told, found.form)


def _model(said: Said, found: Found, leftover: Leftovers) -> dict[str, Any]:
    """Which one a command means: the hub's name, commit and file for what the author's machine calls by a path."""
    named: dict[str, Any] = {"id": _hub_id(said.model, found, leftover)}
    snapshot = re.search(r"/snapshots/([0-9a-f]{40})(/|$)", said.model)
    if revision := said.revision or found.revision or (snapshot[1] if snapshot else ""):
        named["revision"] = revision
    file = said.file or _gguf(said.model)
    if file:
        named["file"] = file
    if said.draft and said.draft not in (named["id"], said.model) and not found.kept:
        named["draft"] = {"id": _draft_id(said, found, leftover)}
    return named


def _draft_id(said: Said, found: Found, leftover: Leftovers) -> str:
    """The hub's name for the draft model; the flag that named a folder names it so, too."""
    if HUB_ID.fullmatch(said.draft):
        return said.draft
    place = _outside(said.draft, found.starts[0].mounts)
    name = _fetched(place, found) or _after_folder(said.draft, place, "model.draft", leftover)
    for key, value in said.flags.items():
        if value == said.draft:
            said.flags[key] = name
        elif isinstance(value, dict) and value.get("model") == said.draft:
            said.flags[key] = {**value, "model": name}
    return name


def _installed(found: Found, engine: str) -> str:
    """The release that the source installs beside the engine's start, or that a log pasted with it names."""
    said = re.compile(rf"\b{engine}(?:(?:\[[\w,-]*\])?==| API server version )v?(\d+\.\d[\w.]*)", re.IGNORECASE)
    return next((match[1] for left in found.leftover if (match := said.search(left.what))), "")


def _outside(path: str, mounts: Mapping[str, str]) -> str:
    """Where the author's machine has what a container has at this path."""
    for inside, outside in sorted(mounts.items(), reverse=True):  # the innermost first
        below, place = path == inside or path.startswith(f"{inside.rstrip('/')}/"), home(outside)
        if below and not OPEN.search(place):
            return place + path.removeprefix(inside.rstrip("/"))
    return path


def _fetched(place: str, found: Found) -> str:
    """What the source downloads into this folder, or into one above it."""
    for left in found.leftover:
        match = re.search(r"\bdownload (\S+/\S+) .*--local-dir[ =](\S*[^\s/])", home(left.what))
        if match and f"{place}/".startswith(f"{match[2]}/"):
            return match[1]
    return ""


def _hub_id(text: str, found: Found, leftover: Leftovers) -> str:
    """The hub's name for what the command calls the model: itself, or what its folder is called after."""
    if HUB_ID.fullmatch(text):
        return text
    place = _outside(text, found.starts[0].mounts)
    beside = found.model.partition(":")[0] or _fetched(place, found)
    kept = str((found.kept.get("model") or {}).get("id") or "")
    if HUB_ID.fullmatch(kept or beside):
        if text and not kept and text != found.model:
            leftover.add(f"model {text}", f"a path of the author's; the file names {beside} beside it")
        return kept or beside
    return _after_folder(text, place, "model", leftover)


def _after_folder(text: str, place: str, key: str, leftover: Leftovers) -> str:
    """A folder of the hub's cache tells its owner; any other one on somebody's machine may be called after him."""
    match = _CACHED.search(place) or _FOLDER.search(_GGUF.sub("", text))
    guess = f"{match[1]}/{match[2]}" if match else ""
    if HUB_ID.fullmatch(guess) and not _PLACES.fullmatch(guess.partition("/")[0]):
        leftover.add(f"{key} {text}", f"a path of the author's; read as the hub's {guess}, after its folder")
        return guess
    name = re.sub(r"[^\w.-]+", "-", place.rstrip("/").rpartition("/")[2] or "unnamed").strip("-.") or "unnamed"
    leftover.add(f"{key} {text or '(none)'}", f"no hub id: write the model's name on the hub as {key}.id")
    return UNNAMED + name


def _gguf(text: str) -> str:
    """The file inside the repository: behind the store's folder, a hub cache's snapshot, or its last name."""
    if not text.endswith(".gguf"):
        return ""
    inside = re.search(rf"(?:/by-name/[^/]+|/snapshots/[^/]+)/(.+)$|/((?:{_QUANT})/[^/]+)$", text)
    return inside[1] or inside[2] if inside else text.rpartition("/")[2]


def _environment(
    start: Started, told: spoken.Spoken, forked: bool, own: Mapping[str, str], exported: bool, leftover: Leftovers
) -> tuple[dict[str, str], list[str]]:
    """The profile's variables, and which of them only a fork can know."""
    env = {}
    for name, value in start.env.items():
        if own.get(name) == value:
            continue  # sparkloom's own, as it wrote it
        why = "" if exported else engines.get(start.engine).sited_env.get(name) or vocabulary.of_their_machine(name)
        if why:
            leftover.add(f"env {name}={short(value)}", why)
        else:
            env[name] = value
    assert told.catalog is not None
    unknown = [p.flag for p in catalogued.check(told.catalog, env) if p.kind in ("unknown", "type")] if forked else []
    return env, unknown


def _engine(
    start: Started, told: spoken.Spoken, kept: Mapping[str, Any], said: Said, foreign: list[str], leftover: Leftovers
) -> dict[str, Any]:
    """Its image, its release, and what its author's fork takes beyond that."""
    image, _, digest = start.image.partition("@")
    adapter = engines.get(start.engine)
    if not image:
        image = str(kept.get("image") or adapter.published.format(release=told.release))
        if not kept:
            leftover.add("(no image)", f"none is named; {image} is written, the project's own of that release")
    engine: dict[str, Any] = {**kept, "name": start.engine, "release": told.release, "image": image}
    engine.pop("digest", None)
    if digest:
        engine["digest"] = digest
    if (said.fork or foreign) and not kept:
        engine["fork"] = (
            {
                "name": image.rpartition("/")[2].partition(":")[0] or "unnamed",
                "source": f"image {image}; what it takes beyond {start.engine} {told.release} is its author's word",
            }
            | ({"flags": said.fork} if said.fork else {})
            | ({"env": dict.fromkeys(foreign, "text")} if foreign else {})
        )
    return engine


def _kept_model(kept: Mapping[str, Any], leftover: Leftovers) -> dict[str, Any]:
    """What an export says of its model. A consent to run a publisher's code is for whoever runs it, and in no file."""
    model = dict(kept.get("model") or {})
    said = model.pop(CONSENT, None) or []
    for name in said if isinstance(said, list) else [said]:
        leftover.add(f"model.{CONSENT}: {short(str(name))}", NOT_YOURS)
    return model


def _explained(left: Leftover, adapter: base.Adapter) -> Leftover:
    """Of a shell's other commands those that belong to the engine say what they are here."""
    said = re.fullmatch(r"\S+:\d+: (.+)", left.what)
    why = adapter.other_command(said[1].split()) if said else ""
    return Leftover(left.what, why) if why else left


def _others(found: Found) -> list[Leftover]:
    """Further starts: the other ranks of this launch, or other launches."""
    first, more = found.starts[0], Leftovers()
    for other in found.starts[1:]:
        same = other.engine == first.engine and _apart(other.words) == _apart(first.words)
        why = "another node's rank, in the same words" if same else "another start; the first one of the file is read"
        more.add(f"{other.where}: {short(' '.join([other.engine, *other.words]))}", why)
    return more


def _apart(words: list[str]) -> list[str]:
    """Words without a rank's own."""
    text = " ".join(words)
    own = (
        r"--(node[-_]rank|nccl[-_]port|port|host|dist[-_]init[-_]addr|master[-_]addr|master[-_]port|"
        r"data[-_]parallel[-_](start[-_])?rank)[ =]\S+|--headless"
    )
    return re.sub(own, "", text).split()


def _as_written(flags: dict[str, Any], written: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Flags as the exported profile had them, where the command still says so; the model's folder by its place."""
    folder = base.model_folder(model)
    made = {
        key: value.replace(folder, base.MODEL_FOLDER) if isinstance(value, str) else value
        for key, value in flags.items()
    }
    for key, entry in written.items():
        read = entry["as"]
        if all(name in made and made[name] == value for name, value in read.items()) and (
            key not in made or key in read
        ):
            made = {name: value for name, value in made.items() if name not in read} | {key: entry["value"]}
    return made


def _evidence(found: Found) -> dict[str, Any]:
    status = "vendor" if found.claim == "verified" else "unvalidated"
    claim = f"{found.form}: its flags, environment and placement, imported; not run here"
    return {
        "claim": claim + ("; its page calls it verified" if status == "vendor" else ""),
        "status": status,
        "source": "standard input" if found.where == "-" else found.where.rpartition("/")[2],
    }


def _foreign(found: Found, stem: str, leftover: Leftovers) -> Draft:
    """An engine that nothing here serves: its words are kept, not understood."""
    start = found.starts[0]
    leftover += [Leftover(short(" ".join(flag)), f"words for {start.engine}") for flag in by_flag(start.words)]
    leftover += [
        Leftover(f"env {name}={short(value)}", f"a variable for {start.engine}") for name, value in start.env.items()
    ]
    name = found.model or next((word for word in start.words if HUB_ID.fullmatch(word)), f"{UNNAMED}unnamed")
    able = ", ".join(engines.names())
    message = f"{start.engine} is an engine that sparkloom does not serve; it serves {able}"
    fix = "import a recipe of one of those, or `sparkloom profile new MODEL` for the same model"
    data = {
        "summary": found.summary or f"{name} with {start.engine}",
        "model": {"id": name},
        "engine": {"name": start.engine, "release": "", "image": start.image},
        "evidence": [_evidence(found)],
    }
    finding = Finding(start.where, "unknown-engine", message, expected="", fix=fix)
    return Draft(f"{name.lower().replace('/', '--')}--{_slug(stem)}", data, start, leftover, [finding], form=found.form)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:48].strip("-.") or "imported"
