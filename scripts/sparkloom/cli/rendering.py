"""What is written for others: manifests, and the schema that editors complete from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sparkloom import case
from sparkloom.cli import show, show_findings, show_start
from sparkloom.cli.options import Inventory, OneProfile, Overrides, Release, writes_to
from sparkloom.render import manifests


def render(
    profile: OneProfile = None,
    inventory: Inventory = None,
    overrides: Overrides = None,
    engine_version: Release = None,
    output: Annotated[Path | None, writes_to("folder to write <profile>.yaml into (default: standard output)")] = None,
    force: Annotated[bool, typer.Option("--force", help="render despite error findings, and name them")] = False,
    group: Annotated[str | None, typer.Option(help="a group of the inventory's `serve:` instead of a profile")] = None,
    record: Annotated[Path | None, typer.Option(help="with --group: file of running groups, as in fleet plan")] = None,
    running: Annotated[bool, typer.Option("--running", help="with --group: the cluster's running groups")] = False,
) -> None:
    if (profile is None) == (group is None):
        raise typer.BadParameter("write a profile's name, or --group with a group's")
    if group is not None:
        if overrides or engine_version:
            raise typer.BadParameter("--set and --engine-version are for a profile; a group is launched as listed")
        from sparkloom.cli import fleet

        runs = fleet.asked(inventory, record) if running else None
        rendered = case.render_group(group, inventory, record=record, runs=runs, force=force)
    else:
        rendered = case.render(profile or "", inventory, overrides=overrides or [], release=engine_version, force=force)
    show_findings.forced(rendered.case.errors)
    show_start.said(rendered.case.assumed)
    text = manifests.to_yaml(rendered.objects)
    if output is None:
        show.say(text)
    else:
        file = output / f"{group or rendered.case.launch.profile.name}.yaml"
        sys.stderr.write(f"wrote {show.write(file, text)}\n")


def schema() -> None:
    from sparkloom.launch import schema as schemas

    show.out(schemas.build(), True, str)
