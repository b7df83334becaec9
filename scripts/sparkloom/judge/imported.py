"""The verdict on an imported launch: what its release's parser, the rules and the plan say, as far as facts go."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sparkloom.base.assumption import Assumption
from sparkloom.base.errors import InputError
from sparkloom.base.finding import Finding, ranked
from sparkloom.inputs import known_models, site_memory
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.catalogs import argv
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.cluster import Cluster, Node
from sparkloom.inputs.importers import source
from sparkloom.inputs.importers.found import Found
from sparkloom.inputs.known_models import Facts
from sparkloom.inputs.profile import LoadedSketch
from sparkloom.judge import assumptions, fits, flags, rules
from sparkloom.judge.capacity.verdict import plan as planned
from sparkloom.judge.start import FILE, start
from sparkloom.launch import engines
from sparkloom.launch.engines.base import FILES
from sparkloom.launch.imported.command import MOST, NO_JSON
from sparkloom.launch.imported.draft import Draft, draft
from sparkloom.launch.imported.spoken import Spoken
from sparkloom.launch.resolve import Launch, LaunchSketch, resolve
from sparkloom.launch.values import Origin, Setting

REFUSED = "change the drafted profile there"
NO_FACTS = "unknown: no facts of the model here"


@dataclass(slots=True)
class Taken:
    """A draft with its model's facts, as text and as what this is: a profile, a sketch of one, or neither yet."""

    draft: Draft
    facts: Facts | None
    text: str
    loaded: LoadedSketch | None
    refused: list[Finding]
    assumed: list[Assumption]


@dataclass(slots=True)
class Verdict:
    taken: Taken
    parser: dict[str, Any]
    findings: list[Finding]
    fits: bool | None = None
    reason: str = ""
    command: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    assumed: list[Assumption] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The JSON of `sparkloom import`."""
        facts, draft = self.taken.facts, self.taken.draft
        findings = ranked(dict.fromkeys(self.findings))
        verdict = {
            "parser": self.parser,
            "findings": [finding.as_dict() for finding in findings],
            "fits": self.fits,
            "reason": self.reason,
            "command": self.command,
            "plan": self.plan,
            "facts": {"source": facts.source, "sure": facts.sure, "doubt": facts.doubt} if facts else None,
            "unknown": [{"what": one.what, "why": one.why} for one in self.assumed if one.decides],
        }
        return {
            "name": draft.name,
            "form": draft.form,
            "start": start(findings, self.fits, self.assumed)._asdict(),
            "profile": draft.data,
            "remainder": [asdict(left) for left in draft.leftover],
            "verdict": verdict,
            "assumed": [asdict(one) for one in self.assumed],
            "text": self.taken.text,
        }


def take_in(
    text: str, name: str, pick: str = "", shown: str = "", config: Path | None = None, release: str | None = None
) -> Taken:
    """Reads somebody's file and drafts a profile of it; InputError where nothing here can read it.

    `shown`: the file that the draft is written to; its lines are what findings name. `config`: the model's
    config.json, or its folder; `release`: of the engine, where a person names it.
    """
    found = source.read(text, name, engines.programs(), pick)
    drafted = draft(found, Path(name).stem if name != "-" else "imported", release)
    facts = _kept(found) or known_models.facts_of(drafted.model, config)
    drafted.know(facts)
    assumed = assumptions.of_source(drafted, facts)
    written = "".join(f"{line}\n" for line in assumptions.comments(map(str, assumed))) + profiles.written(drafted.data)
    if drafted.engine not in engines.names():
        return Taken(drafted, facts, written, None, [], assumed)
    shown = shown or "draft"
    try:
        read = profiles.of_text if facts else profiles.sketch_of_text
        return Taken(drafted, facts, written, read(written, drafted.name, shown), [], assumed)
    except InputError as error:
        return Taken(drafted, facts, written, None, [problem.finding(REFUSED) for problem in error.problems], assumed)


def _kept(found: Found) -> Facts | None:
    model = found.kept.get("model")
    whole = isinstance(model, dict) and "architecture" in model
    return Facts(dict(model), "written beside the command by sparkloom export") if whole and model else None


def roomy(cluster: Cluster, nodes: int) -> Cluster:
    """The example rack with as many Sparks as a launch asks for."""
    have = len(cluster.nodes)
    more = [
        Node(name=f"spark{number}", kubernetes_node=f"spark{number}", fabric_index=number)
        for number in range(have + 1, min(nodes, MOST) + 1)
    ]
    return cluster.model_copy(update={"nodes": [*cluster.nodes, *more]}) if more else cluster


def judge(taken: Taken, cluster: Cluster) -> Verdict:
    """Without facts the flags are judged and nothing is said of memory: unknown is no verdict."""
    drafted, loaded = taken.draft, taken.loaded
    verdict = Verdict(
        taken, _parser(drafted), [*_of_words(drafted), *taken.refused], None, NO_FACTS, assumed=taken.assumed
    )
    if loaded is None:
        verdict.reason = f"unknown: {verdict.findings[0].message}" if verdict.findings else NO_FACTS
        return verdict
    try:
        flags.require_known(loaded)
        launch = resolve(loaded, cluster)
    except InputError as error:
        verdict.findings += [problem.finding(REFUSED) for problem in error.problems]
        verdict.reason = "unknown: it cannot be launched as it stands"
        return verdict
    sparks = site_memory.platform(cluster.name, [place.node.name for place in launch.topology.places])
    refused = flags.check(launch)
    if drafted.spoken and not drafted.spoken.sure:
        fix = f"{assumptions.RELEASE}, if you know it"
        refused = [f if NO_JSON in f.message else flags.undecided(f, "its release is a guess", fix) for f in refused]
    verdict.findings += [*refused, *rules.check(launch, sparks), *_files(launch)]
    if drafted.spoken and drafted.spoken.catalog:
        verdict.command = _compared(drafted.spoken.catalog, drafted.start.words, launch)
    if isinstance(launch, Launch) and taken.facts:
        verdict.findings += fits.check(launch, cluster, sparks)
        verdict.plan = planned(launch, cluster, sparks).as_dict()
        verdict.assumed = [*taken.assumed, *assumptions.of_platform(sparks)]
        verdict.fits, verdict.reason = verdict.plan["fits"], verdict.plan["reason"]
        if verdict.fits is False and not taken.facts.sure:
            verdict.fits, verdict.reason = None, f"uncertain: by facts that are a guess, {verdict.reason}"
            verdict.findings = [_doubted(finding) for finding in verdict.findings]
    verdict.parser["accepts"] = not any(f.severity == "error" and f.rule.startswith("flag-") for f in verdict.findings)
    return verdict


def _of_words(draft: Draft) -> list[Finding]:
    """What the source's words are refused for; by another release's catalog that is no certainty."""
    asked = draft.spoken and draft.spoken.catalog and draft.spoken.catalog.asked
    if not asked or not asked.note:
        return draft.findings
    why = f"whether {draft.engine} {asked.asked} takes it is not known here"
    return [flags.undecided(found, why, flags.SURER) for found in draft.findings]


def _doubted(finding: Finding) -> Finding:
    """A refusal for memory is a warning where precision and size come from a name."""
    memory = finding.rule in ("does-not-fit", "weights-exceed-memory")
    return replace(finding, severity="warning") if memory else finding


def _parser(draft: Draft) -> dict[str, Any]:
    told = draft.spoken or Spoken("", "", False, None)
    said = {"engine": draft.engine, "release": told.release, "how": told.how, "sure": told.sure, "accepts": None}
    return {**said, "catalog": told.catalog.source if told.catalog else ""}


def _compared(catalog: Catalog, source: Sequence[str], launch: LaunchSketch) -> dict[str, Any]:
    """What rank 0 is told beside the source's words, what it is told otherwise, and what of them it is not told."""
    ours = _oldest(launch.engine, _table(catalog, argv.without_entry(catalog, launch.ranks[0].argv)))
    theirs = _oldest(launch.engine, _table(catalog, source))
    why = {setting.name: setting.origin.why for setting in (*launch.settings, *launch.ranks[0].settings)}
    return {
        "added": {name: why.get(name.lstrip("-").replace("-", "_"), "") for name in ours if name not in theirs},
        "changed": {name: [theirs[name], ours[name]] for name in theirs if name in ours and theirs[name] != ours[name]},
        "left_out": {name: value for name, value in theirs.items() if name not in ours},
    }


def _oldest(engine: str, table: dict[str, str]) -> dict[str, str]:
    """Under the engine's oldest names: a release's own spelling of a flag is no difference."""
    told = engines.get(engine)
    renamed: dict[str, str] = {}
    for name, value in table.items():
        key = name.lstrip("-").replace("-", "_")
        for oldest, meant in told.canonical([Setting(key, value, Origin(""))]).items():
            if name == "model" or oldest == key:
                renamed[name] = value
            else:
                renamed["--" + oldest.replace("_", "-")] = "true" if meant is True else str(meant)
    return renamed


def _table(catalog: Catalog, words: Sequence[str]) -> dict[str, str]:
    """A command line as a table: each flag's own name, and its value as the release reads it."""
    table: dict[str, str] = {}
    for part in argv.parts(catalog, words):
        if isinstance(part, argv.Stray):
            name, equals, attached = part.words[0].partition("=")
            if part.seat:
                table["model"] = part.words[0]
            elif name.startswith("-"):
                table[name.replace("_", "-")] = attached if equals else " ".join(part.words[1:])
            continue
        off = part.spelled in part.flag.off
        values = [_read(part, value, catalog) for value in part.values]
        table[part.flag.name] = ("false" if off else " ".join(values)) if part.flag.takes_value or off else "true"
    return table


def _read(use: argv.Use, text: str, catalog: Catalog) -> str:
    """One value under its one spelling: `0.80` is 0.8, and JSON has its keys in order."""
    try:
        value = use.flag.convert(text, catalog.dialect)
    except ValueError:
        return text
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else str(value)


def _files(launch: LaunchSketch) -> Iterator[Finding]:
    """Files that a flag names and that nothing here brings into the pod."""
    for setting in launch.settings:
        given = setting.value if isinstance(setting.value, list) else [setting.value]
        value = ", ".join(one for one in given if isinstance(one, str) and _is_file(one.rpartition("=")[2]))
        if setting.name in FILES and setting.origin.kind == "profile" and value:
            message = f"{setting.name} {value} is a file of the author's; a rank has it only if the image does"
            fix = "name one of the model's own as {model_folder}/FILE, use an image that has it, or leave the flag out"
            yield Finding(setting.origin.where, FILE, message, expected="", fix=fix, severity="warning")


def _is_file(value: str) -> bool:
    named = value.endswith((".jinja", ".py", ".json", ".yaml", ".yml", ".txt", ".gguf"))
    return not value.startswith("/models/") and (named or value.startswith(("/", "./", "../", "~/")))
