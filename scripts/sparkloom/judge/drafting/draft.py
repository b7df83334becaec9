"""draft(checkpoint) -> a profile, what each of its values stands on, and what nobody could say.

As a file: a profile's text, a comment for each fact's source, and what is not known on top.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml

from sparkloom.base import amount, document
from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.base.finding import Finding, ranked
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.catalogs import releases
from sparkloom.inputs.checkpoint import as_model
from sparkloom.inputs.checkpoint.reading import Checkpoint
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.profile import FlagValue, LoadedProfile, Model
from sparkloom.judge import assumptions, fits, flags, rules
from sparkloom.judge.comparable import Near
from sparkloom.judge.drafting import likeness, placement
from sparkloom.judge.drafting.likeness import Like
from sparkloom.judge.drafting.placement import Placement
from sparkloom.launch import engines
from sparkloom.launch.resolve import Launch, resolve

OF_PACKING = ("quantization", "moe_runner_backend", "moe_backend")  # and kernels of a "gemm"
NOT_CARRIED = frozenset(
    {"json_model_override_args", "served_model_name", "reasoning_parser_plugin", "max_mamba_cache_size"}
    | {"cuda_graph_max_bs", "disable_radix_cache", "max_total_tokens", "data_parallel_size", "speculative_config"}
    | {"speculative_draft_model_path"}
)
# What is about memory says nothing where fewer Sparks were asked about than are wanted.
ROOM = frozenset({"does-not-fit", "fit-uncertain", "near-guard-floor", "weights-exceed-memory"})
TABLES = "n-gram tables"
FEW = 4  # Sparks: more than that is few people's
DROPS = 12  # flags that rules may take out before the draft is shown as it is
PARSERS = frozenset({"tool_call_parser", "reasoning_parser", "kv_cache_dtype"})
DEPTH = 2  # of the keys that have a source: model.layers
HEAD = "# yaml-language-server: $schema=schema.json"


@dataclass
class Draft:
    """`sources` by the dotted key of `data`."""

    name: str
    data: dict[str, Any]
    sources: dict[str, str]
    unknown: list[str]
    like: Like | None = None
    placement: Placement | None = None
    asked: list[Placement] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    near: list[Near] = field(default_factory=list)  # measured runs, nearest first

    @property
    def fits(self) -> bool | None:
        return self.placement.fit.fits if self.placement else None


def draft(
    found: Checkpoint,
    cluster: Cluster,
    platform: Platform,
    *,
    nodes: int | None = None,
    engine: str | None = None,
    release: str | None = None,
) -> Draft:
    facts = as_model.of(found)
    model = Model.model_validate(facts.data)
    like = likeness.profile(model, engine, nodes)
    name = _engine(engine, like, model)
    made = Draft(_file_name(found.id), {}, dict(facts.sources), list(facts.unknown), like)
    made.sources = {f"model.{key}": text for key, text in made.sources.items()}
    taken = like if like and like.loaded.profile.engine.name == name else None  # its words are another engine's else
    made.data = {"summary": "", "model": facts.data, "engine": _engine_section(made, name, taken, release)}
    made.data["launch"] = {"parallel": {"nodes": 1, "tp": 1}, **_flags(made, model, name, taken)}
    _environment(made, found, taken)
    _place(made, model, cluster, platform, nodes)
    _judge(made, cluster, platform)
    _say(made, found, model)
    return made


def _engine(asked: str | None, like: Like | None, model: Model) -> str:
    name = asked or (like.loaded.profile.engine.name if like else engines.usual())
    if name not in engines.names():
        known = engines.names()
        raise InputError.single("--engine", f"'{name}' is none of {', '.join(known)}{did_you_mean(name, known)}")
    if engines.get(name).first_flags(model) is None:
        able = ", ".join(known for known in engines.names() if engines.get(known).first_flags(model) is not None)
        raise InputError.single("--engine", f"no first launch of {name} can be drafted; expected one of {able}")
    return name


def _engine_section(made: Draft, name: str, like: Like | None, release: str | None) -> dict[str, Any]:
    own = like.loaded.profile.engine if like else None
    if release is not None and releases.number(release) is None:
        raise InputError.single("--release", f"'{release}' does not begin with a release number", rule="bad-release")
    if like and own and release in (None, own.release):
        made.sources["engine"] = f"as {like.name}, the nearest profile"
        section: dict[str, Any] = {"name": name, "release": own.release, "image": own.image}
        section |= {"carries": list(own.carries)} if own.carries else {}
        return section | ({"patches": list(own.patches)} if own.patches else {})
    spoken = release or releases.releases(name)[-1]
    image = engines.get(name).published.format(release=spoken)
    made.sources["engine"] = "the newest release with a catalog" if release is None else "as asked for"
    made.unknown.append(
        f"whether {image} exists for a Spark (arm64, CUDA 13) and serves this model: nothing was fetched"
    )
    return {"name": name, "release": spoken, "image": image}


def _flags(made: Draft, model: Model, name: str, like: Like | None) -> dict[str, FlagValue]:
    said: dict[str, FlagValue] = engines.get(name).first_flags(model) or {}
    for key in said:
        made.sources[f"launch.{key}"] = "where nothing is measured"
    if like:
        own, called = like.loaded.profile, set(engines.get(name).called.values())
        kept = {k: v for k, v in own.launch.flags.items() if k not in NOT_CARRIED and (k not in called or k in PARSERS)}
        if own.model.checkpoint.packing != model.checkpoint.packing:
            kept = {k: v for k, v in kept.items() if k not in OF_PACKING and "gemm" not in k}
        if not model.mtp or "speculative_draft_model_path" in own.launch.flags:
            kept = {key: value for key, value in kept.items() if not key.startswith("speculative")}
        said |= kept
        made.sources |= {f"launch.{key}": f"as {like.name}" for key in kept}
    return said


def _environment(made: Draft, found: Checkpoint, like: Like | None) -> None:
    own = like.loaded.profile if like else None
    if like and own and own.env:
        made.data["env"] = dict(own.env)
        made.sources["env"] = f"as {like.name}"
    words = ("temperature", "top_p", "top_k", "min_p")
    sampling = {word: found.generation[word] for word in words if isinstance(found.generation.get(word), int | float)}
    requests: dict[str, Any] = {"sampling": sampling} if sampling else {}
    if sampling:
        made.sources["requests"] = "generation_config.json"
    if like and own and own.requests.toggles:
        requests["toggles"] = own.requests.model_dump()["toggles"]
        made.sources["requests"] = f"{made.sources.get('requests', '')}; toggles as {like.name}".lstrip("; ")
    if requests:
        made.data["requests"] = requests


def _place(made: Draft, model: Model, cluster: Cluster, platform: Platform, nodes: int | None) -> None:
    made.placement, made.asked = _best(made, model, cluster, platform, nodes)
    if TABLES in model.parts and (made.placement.fit.fits is not True or made.placement.parallel.nodes > FEW):
        _with_tables_on_disk(made, model, cluster, platform, nodes)
    launch = made.data["launch"]
    launch["parallel"] = made.placement.parallel.as_dict()
    made.sources["launch.parallel"] = f"the fastest of {len(made.asked)} placements asked that fits, on fewest Sparks"
    if made.placement.fit.fits is not True:
        made.sources["launch.parallel"] = f"none of {len(made.asked)} placements asked is sure to fit; the nearest"
    launch |= made.placement.changes
    made.sources |= {f"launch.{key}": "so that it fits" for key in made.placement.changes}


def _best(
    made: Draft, model: Model, cluster: Cluster, platform: Platform, nodes: int | None
) -> tuple[Placement, list[Placement]]:
    return placement.best(resolve(loaded(made), cluster).view(platform), model, nodes)


def _with_tables_on_disk(made: Draft, model: Model, cluster: Cluster, platform: Platform, nodes: int | None) -> None:
    """Tables of which a step reads a few rows need not be in memory; taken where that makes it fit, and said."""
    before, part = made.placement, made.data["model"]["parts"][TABLES]
    assert before is not None
    part["lives"] = "disk"
    other, asked = _best(made, Model.model_validate(made.data["model"]), cluster, platform, nodes)
    if other.fit.fits is not True or (before.fit.fits and before.parallel.nodes <= other.parallel.nodes):
        del part["lives"]
        return
    enough = f"{before.parallel.nodes} Sparks hold them in memory"
    held = enough if before.fit.fits else "no number of Sparks asked holds them"
    made.unknown.append(
        f"{TABLES} ({part['size_gb']:g} GB) are counted on NVMe (lives: disk), which needs a build of the engine that "
        f"leaves them there: {held}"
    )
    made.placement, made.asked = other, [*made.asked, *asked]


def loaded(made: Draft) -> LoadedProfile:
    """As if it stood in its file."""
    data = {"summary": "a draft", **{key: value for key, value in made.data.items() if value and key != "summary"}}
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000)
    return profiles.of_text(text, made.name, f"{made.name}.yml")


def _judge(made: Draft, cluster: Cluster, platform: Platform) -> None:
    """Flags that a rule knows to fail are taken out, one by one; what stays is shown."""
    for _ in range(DROPS):
        launch = _resolved(made, cluster)
        found = [*flags.check(launch), *rules.check(launch, platform), *fits.check(launch, cluster, platform)]
        fewer = launch.topology.parallel.nodes < made.data["launch"]["parallel"]["nodes"]
        made.findings = ranked(each for each in found if not (fewer and each.rule in ROOM))
        wrong = next((found for found in made.findings if found.severity == "error" and _flag(launch, found)), None)
        if wrong is None:
            made.near = [] if fewer else likeness.measured(launch)
            return
        key = _flag(launch, wrong)
        del made.data["launch"][key]
        came = made.sources.pop(f"launch.{key}", "")
        made.unknown.append(f"launch.{key} ({came}) was taken out: {wrong.rule}: {wrong.message}")


def _resolved(made: Draft, cluster: Cluster) -> Launch:
    """On as many Sparks as the inventory has, where the draft wants more."""
    wanted = made.data["launch"]["parallel"]
    if wanted["nodes"] <= len(cluster.nodes):
        return resolve(loaded(made), cluster)
    launch = {**made.data["launch"], "parallel": {"nodes": 1, "tp": 1}}
    short = Draft(made.name, {**made.data, "launch": launch}, {}, [])
    sparks = amount.of(len(cluster.nodes), "Spark")
    text = f"the inventory has {sparks}: rules were asked about one, not about {wanted['nodes']}"
    if text not in made.unknown:
        made.unknown.append(text)
    return resolve(loaded(short), cluster)


def _flag(launch: Launch, found: Finding) -> str:
    """The launch key that a finding is about, if the profile gives one there and it can go."""
    profile = launch.profile
    for name in profile.profile.launch.flags:
        if profile.where("launch", name) == found.where and found.rule not in ("does-not-fit", "weights-disagree"):
            return name
    return ""


def _say(made: Draft, found: Checkpoint, model: Model) -> None:
    parallel = made.data["launch"]["parallel"]
    engine = made.data["engine"]
    where = {1: "one Spark", 2: "two Sparks", 4: "four Sparks"}.get(parallel["nodes"], f"{parallel['nodes']} Sparks")
    short = found.id.partition("/")[2]
    made.data["summary"] = f"{short} on {where} with {engine['name']} {engine['release']}: drafted, nothing was run"
    claim = "drafted from the checkpoint's own files by `sparkloom profile new`; nothing was run"
    if made.like:
        apart = f" ({'; '.join(made.like.differences)})" if made.like.differences else ""
        claim += f". Flags as {made.like.name}{apart}"
    source = made.data["model"]["source"]
    entry = {"claim": claim, "status": "unvalidated", "source": source, "date": f"{date.today():%Y-%m-%d}"}
    made.data["evidence"] = [entry]


def _file_name(model: str) -> str:
    """org--model in small letters, without a publisher's name twice."""
    org, _, name = model.lower().partition("/")
    return f"{org}--{re.sub(rf'^{re.escape(org)}-', '', name)}"


def shown(made: Draft) -> Mapping[str, Any]:
    """What `profile new --json` prints."""
    assert made.placement is not None
    return {
        "name": made.name,
        "profile": made.data,
        "sources": made.sources,
        "unknown": made.unknown,
        "like": made.like.name if made.like else None,
        "fits": made.fits,
        "placement": made.placement.as_dict(),
        "measured": [near.as_dict() for near in made.near],
        "asked": [placed.as_dict() for placed in made.asked],
        "memory": {name: figure.shown for name, figure in made.placement.fit.memory.items()},
        "findings": [finding.as_dict() for finding in made.findings],
    }


def of(made: Draft) -> str:
    lines = [HEAD, *assumptions.comments(made.unknown)]
    if made.near:
        lines.append("# Measured nearest to it:")
        for near in made.near:
            lines += assumptions.comment(f"- {likeness.in_words(near)}", "", "  ")
    return "\n".join([*lines, *_with_sources(made)]) + "\n"


def _with_sources(made: Draft) -> Iterator[str]:
    """Each key below the words that say it; the same words stand once over several keys."""
    text, before = profiles.written(made.data), ""
    keys: dict[int, str] = {}
    for loc, (number, _) in document.parse(text, made.name).marks.items():
        if len(loc) <= DEPTH:
            keys.setdefault(number, ".".join(map(str, loc)))
    for number, line in enumerate(text.splitlines(), 1):
        said = made.sources.get(keys[number], "") if number in keys else before
        if said and said != before:
            yield from assumptions.comment(said, line[: len(line) - len(line.lstrip())])
        before = said if line else ""
        yield line
