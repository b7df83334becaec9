"""`sparkloom up`: site.yml with one screen of progress, and an end that says all."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparkloom import case
from sparkloom.base import repository
from sparkloom.base.errors import InputError
from sparkloom.cli import names, show
from sparkloom.cli.options import AskBecomePass, Inventory, named_site
from sparkloom.inputs.inventory import require_own, shipped
from sparkloom.onnode.now.groups import healthy
from sparkloom.site import play, status
from sparkloom.site import up as runs
from sparkloom.site.ending import Outcome, changes_of
from sparkloom.site.endpoint import curl, reach
from sparkloom.site.up import Part, Progress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

SIGNS = {
    "waits": (" ", "dim"),
    "skipped": (" ", "dim"),
    "runs": (">", "bold"),
    "ok": ("=", "green"),
    "changed": ("+", "yellow"),
}
FAILED = ("x", "bold red")
WARNING = "[WARNING]: "
BEGIN, END = 600, 6000  # characters of an error that are shown: what was judged, and what to do; the log has all of it


def up(
    inventory: Inventory = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", help="serve this profile instead of the inventory's", autocompletion=names.begun),
    ] = None,
    limit: Annotated[str | None, typer.Option("--limit", help="only these nodes, as in ansible --limit")] = None,
    tags: Annotated[str | None, typer.Option("--tags", help="only these parts, such as fabric,serve")] = None,
    ask_become_pass: AskBecomePass = False,
) -> None:
    site = inventory or _only_site()
    cluster = case.cluster(site)
    require_own(cluster.example)
    extra: list[str] = []
    given = (("--limit", limit), ("--tags", tags), ("-e", profile and f"profile={names.exact(profile)}"))
    extra += [word for option, value in given if value for word in (option, value)]
    play.require_collections()
    password = getpass("sudo's password on the nodes: ") if ask_become_pass else ""
    log = repository.kept(cluster.name) / "up.log"
    terminal, begun = show.console(), time.time()
    with _screen(terminal) as picture:
        ended = runs.run(site, extra, log, picture, password=password)
    _end(terminal, ended, time.time() - begun, log, lambda: _served(site, terminal))
    raise typer.Exit(128 + ended.interrupted if ended.interrupted else 0 if ended.good else 1)


def _only_site() -> Path:
    """The one inventory that a person has made; refused where there is none, or a choice."""
    there = sorted(path.parent for path in (repository.WORK / "inventories").glob("*/hosts.yml"))
    found = [folder for folder in there if not shipped(folder)]
    if len(found) == 1:
        return found[0]
    told = f"there are {', '.join(path.name for path in found)}" if found else "none is in inventories/ here"
    return named_site(None, f"which site? {told};")


@contextmanager
def _screen(terminal: Console) -> Iterator[Callable[[Progress], None]]:
    """In a window one picture that is drawn anew; elsewhere a line for each part that ended."""
    if show.window(terminal) is None:
        told: set[str] = set()
        yield lambda progress: _lines(terminal, progress, told)
        return
    from rich.live import Live

    with Live(console=terminal, auto_refresh=False) as live:
        yield lambda progress: live.update(picture(progress), refresh=True)


def picture(progress: Progress) -> RenderableType:
    """Every part with its state; the one that runs also with its task."""
    from rich.table import Column, Table

    rows, now = Table.grid("", Column(justify="right"), "", padding=(0, 2, 0, 0)), time.time()
    for part in progress.parts:
        sign, style = FAILED if part.failed else SIGNS[part.state]
        seconds = f"{part.seconds(now):.0f} s" if part.state not in ("waits", "skipped") else ""
        doing = f"\n  {plain(progress.task)}" if part.state == "runs" and progress.task else ""
        rows.add_row(sign, seconds, f"{_told(part)}{doing}", style=style)
    return rows


def plain(task: str) -> str:
    """Without the role that it stands in, and what every role begins with."""
    return "looks at what it was given" if runs.ARGUMENTS in task else task.split(" : ", 1)[-1]


def _lines(terminal: Console, progress: Progress, told: set[str]) -> None:
    for part in progress.parts:
        said = f"{part.tag} {part.state}"
        if part.begun is None or said in told:
            continue
        told.add(said)
        took = f"{part.seconds(0):6.1f} s" if part.ended is not None else " " * 8
        show.paragraph(terminal, f"{part.state:<8}{took}  {_told(part)}")
        terminal.file.flush()  # a file or a pipe is read while it is written


def _told(part: Part) -> str:
    return part.name + (f" ({changes_of(part.changes)})" if part.changes else "")


def _end(terminal: Console, ended: Progress, seconds: float, log: Path, served: Callable[[], None]) -> None:
    """The last line says what came of it; what serves is told above it where that line does not say it all."""
    if not ended.good:
        show.paragraph(terminal, failure(ended, seconds, log))
    elif ended.changes or not ended.serves:
        served()
        show.paragraph(terminal, f"{_short(log)} has every line")
    for warning in _warnings(log):
        show.paragraph(terminal, f"warning: {warning}")
    if ended.good:
        show.paragraph(terminal, f"\n{Outcome(seconds, ended.changes, serves=ended.serves).line()}")


def failure(ended: Progress, seconds: float, log: Path) -> str:
    """Where it was interrupted, or what failed, each once."""
    again = f"{_short(log)} has every line; the same command goes on from there"
    if ended.interrupted:
        part = next((part.name for part in ended.parts if part.failed), "the start")
        return f"\ninterrupted after {seconds:.0f} s in: {part}; {again}"
    shown = [f"{error['host']}: {error['task']}\n  {_cut(error['said'])}" for error in ended.errors[-3:]]
    why = "\n".join(shown) or _last_words(log)
    return f"\n{why}\n\nnot up after {seconds:.0f} s; {again}"


def _cut(said: str) -> str:
    """Whole lines of both ends: what is to be mended stands at the end of a report."""
    if len(said) <= BEGIN + END:
        return said
    return f"{said[:BEGIN].rpartition(chr(10))[0]}\n[...]\n{said[-END:].partition(chr(10))[2]}"


def _last_words(log: Path) -> str:
    """Of an ansible-playbook that ended without a failed task: an inventory or an option that it refuses."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    said = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)] or lines
    return "\n".join(
        ["ansible-playbook ended without a task that failed:", *(f"  {line[:BEGIN]}" for line in said[-3:])]
    )


def _warnings(log: Path) -> list[str]:
    """What modules warned of, once each; a site without a machine beside its Sparks is no reason to."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = dict.fromkeys(line.removeprefix(WARNING) for line in lines if line.startswith(WARNING))
    return [text for text in said if "Could not match supplied host pattern" not in text]


def _short(path: Path) -> Path:
    """As short as it can be typed here."""
    short = Path(os.path.relpath(path))
    return path if short.parts[:1] == ("..",) else short


def _served(site: Path, terminal: Console) -> None:
    """What is served, and the command that asks it; a run of some parts only may end before there is anything."""
    try:
        now = status.status(site)
        show.paragraph(terminal, status.text(now))
        groups = now["groups"]
        up = [one for one in groups if one["serving"]] or [one for one in groups if healthy(one)]
        if now["serving"] or len(up) > 1:
            model = str(up[0]["alias"] or up[0]["name"]) if up else ""
            # the terminal breaks the line, not we: it is there to be copied
            terminal.print(curl(*reach(case.cluster(site), site), model), soft_wrap=True)
    except InputError as error:
        show.paragraph(terminal, f"what is served is not known: {error.problems[0].message}")
