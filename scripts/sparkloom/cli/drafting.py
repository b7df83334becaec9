"""`sparkloom profile new` and `profile check`: from a model's own files to a profile, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparkloom import case
from sparkloom.base import amount
from sparkloom.base.errors import InputError
from sparkloom.base.finding import ranked
from sparkloom.cli import show, show_findings, show_start
from sparkloom.cli.options import Inventory, Json, Profile, writes_to
from sparkloom.inputs import profile as profiles
from sparkloom.inputs import site_memory
from sparkloom.inputs.checkpoint import as_model, reading
from sparkloom.judge.drafting import comparing, draft, likeness


def new(
    model: Annotated[str, typer.Argument(help="a hub id as org/name, or a folder with config.json")],
    nodes: Annotated[
        int | None, typer.Option(min=1, max=8, help="Sparks to use (default: the fewest on which it fits)")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="engine name (default: the nearest profile's)")] = None,
    release: Annotated[str | None, typer.Option(help="engine release (default: the nearest profile's)")] = None,
    revision: Annotated[str | None, typer.Option(help="branch or commit on the hub (default: main)")] = None,
    output: Annotated[Path | None, writes_to("file to write (default: standard output)")] = None,
    inventory: Inventory = None,
    json: Json = False,
) -> None:
    if output and output.exists():
        message = "is there already; name another file, or remove it"
        raise InputError.single(str(output), message, rule="file-exists")
    cluster = case.cluster(inventory)
    sparks = site_memory.platform(cluster.name, [node.name for node in cluster.nodes])
    found = reading.read(model, revision)
    made = draft.draft(found, cluster, sparks, nodes=nodes, engine=engine, release=release)
    text = draft.of(made)
    if output:
        show.write(output, text)
    if json:
        show.out({**draft.shown(made), "file": str(output) if output else None}, True, str)
    elif not output:
        show.say(text)
    _told(made, str(output) if output else "")
    raise typer.Exit(0 if made.fits is not False and not any(f.severity == "error" for f in made.findings) else 1)


def check(
    profile: Profile,
    against: Annotated[
        str | None, typer.Option(help="a folder, or another hub id (default: model.id at model.revision)")
    ] = None,
    json: Json = False,
) -> None:
    loaded = profiles.load(profile)
    model = loaded.profile.model
    found = reading.read(against or model.id, None if against else model.revision)
    facts = as_model.of(found)
    findings = ranked(comparing.findings(loaded, facts))
    data = {
        "profile": loaded.name,
        "checkpoint": found.where,
        "unknown": list(facts.unknown),
        "findings": [finding.as_dict() for finding in findings],
    }
    show.out(data, json, _compared)
    raise typer.Exit(1 if any(finding.severity != "info" for finding in findings) else 0)


def _told(made: draft.Draft, file: str) -> None:
    """For a person, on stderr: what was decided, what is not known, what to do next."""
    placed = made.placement
    assert placed is not None
    terminal = show.console(stderr=True)
    parallel = placed.parallel
    sizes = {"tp": parallel.tp, "pp": parallel.pp, "ep": parallel.ep}
    split = ", ".join(f"{name} {size}" for name, size in sizes.items() if name == "tp" or size > 1)
    verdict = {True: "fits", False: "does not fit", None: "may fit"}[placed.fit.fits]
    speeds = " / ".join(f"{speed:g}" for speed in placed.speeds.values())
    engine = made.data["engine"]
    where = f"{amount.of(parallel.nodes, 'Spark')}, {split}, {engine['name']} {engine['release']}"
    told = f"{verdict} on {where}: {placed.fit.reason}"
    show.paragraph(terminal, f"{told}; predicted {speeds} tok/s at 1 / 4 / 8 requests")
    if made.like:
        apart = "; ".join(made.like.differences) or "the same model"
        show.paragraph(terminal, f"flags as {made.like.name}: {apart}")
    for near in made.near:
        show.paragraph(terminal, f"measured near it: {likeness.in_words(near)}")
    show_findings.listed(terminal, [finding.as_dict() for finding in made.findings if finding.severity != "info"])
    show_start.assumed(terminal, made.unknown)
    if file:
        show.paragraph(terminal, f"wrote {file}; next: sparkloom lint {file}; sparkloom plan {file} --explain")


def _compared(data: dict[str, Any]) -> None:
    terminal = show.console()
    count = show_findings.listed(terminal, data["findings"])
    show_start.assumed(terminal, data["unknown"])
    terminal.print(f"{data['profile']} against {data['checkpoint']}: {count}", style="bold")
