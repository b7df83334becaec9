"""The command line. Each command is a few lines; the work happens in the modules it names."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
evidence_app = typer.Typer(
    no_args_is_help=True,
    help="What was measured: 1,080 configurations, and how well the rules predict them.",
    rich_markup_mode=None,
)
app.add_typer(evidence_app, name="evidence")

Profile = Annotated[str, typer.Argument(help="name from model_profiles/, or a path to a file", show_default=False)]
Inventory = Annotated[
    Path | None, typer.Option("--inventory", "-i", help="inventory folder (default: inventories/gb10)")
]
Json = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="override: launch.key=value, env.NAME=value, engine.key=value")
]
Release = Annotated[
    str | None, typer.Option("--engine-version", help="speak and judge the dialect of this engine release")
]
Rank = Annotated[int, typer.Option("--rank", help="0 is the head")]


class MatrixAction(StrEnum):
    run = "run"
    propose = "propose"
    report = "report"


@app.command("profiles")
def profiles_command(json: Json = False) -> None:
    """Model profiles, what they are based on and what was measured."""
    from sparkloom.cli import show
    from sparkloom.judge import profile_status

    show.out(profile_status.listing(), json, show.profiles)


@app.command()
def lint(
    profiles: Annotated[
        list[str] | None, typer.Argument(help="names or paths (default: every shipped profile)", show_default=False)
    ] = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    inventory: Inventory = None,
    json: Json = False,
) -> None:
    """Traps in a profile: what is known to crash, hang or lie, why, and what to write instead."""
    from sparkloom.cli import linting, show

    result = linting.lint(profiles or [], inventory, overrides or [], engine_version)
    show.out(result.as_list(), json, lambda _: show.findings(result))
    show.problems(problem for _, problem in result.unusable)
    raise typer.Exit(result.exit_code)


@app.command()
def plan(
    profile: Profile,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="formula and origin of every number, flag and variable")
    ] = False,
    json: Json = False,
) -> None:
    """Will it start, will it fit, how fast can it be at best, and what exactly is launched."""
    from sparkloom import case
    from sparkloom.cli import show

    data = case.plan(profile, inventory, overrides=overrides or [], release=engine_version)
    show.out(data, json, lambda shown: show.plan(shown, explain))
    raise typer.Exit(1 if data["fits"] is False or any(f["severity"] == "error" for f in data["findings"]) else 0)


@app.command()
def argv(
    profile: Profile,
    rank: Rank,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    json: Json = False,
) -> None:
    """Exactly that rank's command line."""
    from sparkloom import case
    from sparkloom.cli import show

    one = case.rank(profile, rank, inventory, overrides=overrides or [], release=engine_version)
    show.out(list(one.argv), json, show.command)


@app.command()
def env(
    profile: Profile,
    rank: Rank,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    json: Json = False,
) -> None:
    """Exactly that rank's environment; secrets are shown as references."""
    from sparkloom import case
    from sparkloom.cli import show

    one = case.rank(profile, rank, inventory, overrides=overrides or [], release=engine_version)
    show.out({v.name: v.value for v in one.env}, json, show.environment)


@app.command()
def render(
    profile: Profile,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="folder to write <profile>.yaml into (default: standard output)"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="render in spite of error findings; they are named")] = False,
) -> None:
    """The Kubernetes manifests that playbooks/serve.yml applies."""
    from sparkloom import case
    from sparkloom.cli import show
    from sparkloom.render import manifests

    rendered = case.render(profile, inventory, overrides=overrides or [], release=engine_version, force=force)
    show.overridden(rendered.case.errors)
    show.write(manifests.to_yaml(rendered.objects), output, Path(profile).stem if "/" in profile else profile)


@app.command("fabric")
def fabric_command(inventory: Inventory = None, json: Json = False) -> None:
    """Rails, virtual functions, MACs, addresses and network attachments, per node."""
    from sparkloom import case
    from sparkloom.cli import show

    show.out(case.fabric(inventory), json, show.fabric)


@app.command("nccl-log")
def nccl_log_command(
    files: Annotated[
        list[Path], typer.Argument(help="NCCL_DEBUG=INFO logs, one or several ranks each; - is standard input")
    ],
    rails: Annotated[int, typer.Option(help="rails that were planned")] = 2,
    nodes: Annotated[int | None, typer.Option(help="nodes that were planned; 1 makes 'local' a good verdict")] = None,
    json: Json = False,
) -> None:
    """Which transport NCCL really took, per rank, and why."""
    from sparkloom.cli import show
    from sparkloom.onnode.nccl import log as nccl_log

    verdict = nccl_log.read_files(files, rails=rails, nodes=nodes)
    show.out(verdict.as_dict(), json, show.nccl)
    raise typer.Exit(0 if verdict.good else 1)


@app.command("guard")
def guard_command(
    file: Annotated[str, typer.Argument(help="recorded stream, JSON lines; - is standard input")] = "-",
    batch: Annotated[Path | None, typer.Option("--batch", help="judge the requests of one bench level instead")] = None,
    json: Json = False,
) -> None:
    """Is this output text, or garbage that benchmarks well?"""
    from sparkloom.cli import show
    from sparkloom.measure import guard

    verdict = guard.judge_batch_file(batch) if batch else guard.judge_file(file)
    show.out(verdict, json, show.verdict)
    raise typer.Exit(0 if verdict["verdict"] == "ok" else 1)


@app.command("bench")
def bench_command() -> None:
    """Measure a served model: first token, tokens a second, and whether it is text at all."""
    from sparkloom.measure.bench import command  # `cli.program` goes there without this library

    raise SystemExit(command.bench(sys.argv[2:]))


@app.command("matrix")
def matrix_command(
    spec: Annotated[Path, typer.Argument(help="the grid, as YAML")],
    action: Annotated[
        MatrixAction, typer.Argument(help="run: what has no result yet; report: Markdown and HTML; propose: rules")
    ],
    results: Annotated[
        Path | None, typer.Option("--results", help="folder of the cells' JSON files (default: beside the spec)")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="folder for the report")] = None,
    try_known_bad: Annotated[bool, typer.Option("--try-known-bad", help="run what the rules would skip, too")] = False,
    again: Annotated[list[str] | None, typer.Option("--again", help="run cells with this status once more")] = None,
    url: Annotated[str | None, typer.Option("--url", help="where it is served (default: the site's endpoint)")] = None,
    ca: Annotated[Path | None, typer.Option("--ca", help="certificates that vouch for the server")] = None,
    key_file: Annotated[Path | None, typer.Option("--api-key-file", help="file with the server's key")] = None,
    switch: Annotated[
        str | None, typer.Option("--switch", help="serves a cell (default: ansible-playbook playbooks/switch.yml)")
    ] = None,
    logs: Annotated[
        str | None, typer.Option("--logs", help="prints the engine's log (default: sparkloom logs)")
    ] = None,
    json: Json = False,
) -> None:
    """A grid of configurations as data: run it cell by cell, resumable, and report it."""
    from sparkloom.cli import show
    from sparkloom.measure.matrix import report, run

    if action is MatrixAction.propose:
        show.out(report.propose(spec, results), json, lambda found: found["text"])
        return
    if action is MatrixAction.report:
        show.out(report.write(spec, results, output), json, show.report)
        return
    options = run.Options(
        results, output, url, ca, key_file, switch, logs, try_known_bad, tuple(again or ())
    )  # fmt: skip
    found = run.run(spec, options, show.complain, live=run.stderr_lives())
    show.out(found, json, show.matrix)
    raise typer.Exit(run.exit_code(found))


@app.command()
def doctor(
    inventory: Inventory = None,
    limit: Annotated[str | None, typer.Option("--limit", help="only these nodes, as Ansible writes them")] = None,
    ask_become_pass: Annotated[bool, typer.Option("--ask-become-pass", "-K", help="ask for sudo's password")] = False,
    json: Json = False,
) -> None:
    """Is everything as planned? Hosts, fabric, cluster, weights, serving; changes nothing."""
    from sparkloom.cli import show
    from sparkloom.site.doctor.run import run

    extra = [*(["--limit", limit] if limit else []), *(["-K"] if ask_become_pass else [])]
    found = run(inventory, extra, sys.stderr.write)
    show.out(found.as_dict(), json, lambda _: found.text())
    raise typer.Exit(0 if found.good else 1)


@app.command()
def allreduce(
    profile: Profile,
    inventory: Inventory = None,
    largest: Annotated[int, typer.Option("--largest", min=8192, help="bytes of the largest all-reduce")] = 1 << 30,
    render: Annotated[bool, typer.Option("--render", help="only show the objects, as YAML")] = False,
    json: Json = False,
) -> None:
    """What the engine's own collective costs between the pods, over which rails; nothing may be served meanwhile."""
    from sparkloom import case
    from sparkloom.cli import show
    from sparkloom.measure.allreduce import jobs
    from sparkloom.measure.allreduce.run import run
    from sparkloom.render.manifests import to_yaml

    if render:
        cluster = case.cluster(inventory)
        show.say(to_yaml(jobs.objects(case.judge(profile, cluster).launch, cluster, largest=largest)))
        return
    found = run(profile, inventory, show.complain, largest=largest)
    show.out(found, json, show.allreduce)
    raise typer.Exit(0 if found["verdict"] == "ok" else 1)


@app.command("status")
def status_command(inventory: Inventory = None, json: Json = False) -> None:
    """What is served now, by which profile and configuration, since when, and how each rank is."""
    from sparkloom.cli import show
    from sparkloom.site import status

    found = status.status(inventory)
    show.out(found, json, status.text)
    raise typer.Exit(0 if found["serving"] else 1)


@app.command("logs")
def logs_command(
    inventory: Inventory = None,
    rank: Annotated[int | None, typer.Option("--rank", help="only this rank (default: all); 0 is the head")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="stay, and show what comes")] = False,
    previous: Annotated[bool, typer.Option("--previous", "-p", help="before the pod's last restart")] = False,
) -> None:
    """What the ranks said; `sparkloom diagnose` names causes in it."""
    from sparkloom.cli import show
    from sparkloom.site import status

    for line in status.logs(inventory, rank, follow=follow, previous=previous):
        show.say(line + "\n")


@app.command()
def diagnose(
    logs: Annotated[list[Path], typer.Argument(help="engine or NCCL logs; - is standard input")], json: Json = False
) -> None:
    """The cause and the fix of a failed start, read from its log."""
    from sparkloom.cli import show
    from sparkloom.judge import diagnose as diagnosis

    result = diagnosis.diagnose_files(logs)
    show.out(result, json, show.diagnosis)
    raise typer.Exit(1 if result["matches"] else 0)


@app.command("schema")
def schema_command() -> None:
    """The JSON schema of a profile, for editors (model_profiles/schema.json)."""
    from sparkloom.cli import show
    from sparkloom.launch import schema

    show.out(schema.build(), True, str)


@evidence_app.command("find")
def evidence_find(
    profile: Profile,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
    json: Json = False,
) -> None:
    """What was measured closest to this configuration."""
    from sparkloom import case
    from sparkloom.cli import show
    from sparkloom.judge import nearest_runs

    launch = case.judge(profile, inventory, overrides=overrides or [], release=engine_version).launch
    show.out([near.as_dict() for near in nearest_runs.find(launch, limit)], json, show.rows)


@evidence_app.command("best")
def evidence_best(
    model: Annotated[str, typer.Argument(help="model id, or a part of it")],
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
    json: Json = False,
) -> None:
    """The fastest sane measurements of a model."""
    from sparkloom.cli import show
    from sparkloom.judge import nearest_runs

    show.out([nearest_runs.as_dict(row) for row in nearest_runs.best(model, limit)], json, show.rows)


@evidence_app.command("add")
def evidence_add(
    spec: Annotated[Path, typer.Argument(help="the grid whose cell it is")],
    cell: Annotated[str, typer.Argument(help="the cell's id, or how it begins")],
    results: Annotated[Path | None, typer.Option("--results", help="folder of the cells' JSON files")] = None,
    to: Annotated[str | None, typer.Option("--to", help="profile that gets it (default: the grid's)")] = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", help="file that gets the row (default: beside the cells)")
    ] = None,
    json: Json = False,
) -> None:
    """A cell of a matrix as evidence in its profile and as a measured row; failures too."""
    from sparkloom.cli import show
    from sparkloom.measure.matrix import evidence_add as adding

    show.out(adding.add(spec, cell, results=results, to=to, rows=rows), json, show.added)


@evidence_app.command("score")
def evidence_score(
    rows: Annotated[Path, typer.Argument(help="rows as JSON lines, in the shape of the shipped ones")],
    json: Json = False,
) -> None:
    """How well the rules alone predict which configurations fail."""
    from sparkloom.cli import show
    from sparkloom.judge import measured_rows

    show.out(measured_rows.score(rows), json, show.score)
