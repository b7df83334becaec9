"""`sparkloom up`: site.yml with one screen of progress, and an end that says all."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from getpass import getpass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparkloom import case
from sparkloom.base import amount, repository
from sparkloom.base.errors import InputError
from sparkloom.base.visible import cut
from sparkloom.cli import names, show
from sparkloom.cli.options import AskBecomePass, Inventory, named_site
from sparkloom.inputs import serving
from sparkloom.inputs.inventory import require_own, shipped
from sparkloom.onnode.now.groups import healthy
from sparkloom.site import expected, play, status
from sparkloom.site import up as runs
from sparkloom.site.ending import changes_of, outcome
from sparkloom.site.endpoint import reach
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
FIX, FAIL, WARN = "-> ", "FAIL  ", "warn"  # as site/checks/report.py writes findings
BEGIN, WIDE = 600, 72  # characters of a line that are shown: of the only one, of one beside others; the log has all
MORE = 9  # lines beside the cause
TEARDOWN = repository.REPO / "playbooks" / "teardown.yml"


def up(
    inventory: Inventory = None,
    profile: Annotated[
        str | None, typer.Option(help="serve this profile instead of the inventory's", autocompletion=names.begun)
    ] = None,
    limit: Annotated[str | None, typer.Option(help="only these nodes, as in ansible --limit")] = None,
    tags: Annotated[str | None, typer.Option(help="only these parts, such as fabric,serve")] = None,
    ask_become_pass: AskBecomePass = False,
) -> None:
    site = inventory or _only_site()
    cluster = case.cluster(site)
    require_own(cluster.example)
    profile = names.exact(profile) if profile else _fitting(site)
    given = (("--limit", limit), ("--tags", tags), ("-e", profile and f"profile={profile}"))
    extra = [word for option, value in given if value for word in (option, value)]
    play.require_collections()
    password = getpass("sudo's password on the nodes: ") if ask_become_pass else ""
    log = repository.kept(cluster.name) / "up.log"
    terminal, begun = show.console(), time.time()
    with _screen(terminal, _ahead(terminal, site, profile, tags)) as picture:
        ended = runs.run(site, extra, log, picture, password=password)
    expected.keep(cluster.name, ended.measured)
    _end(terminal, ended, time.time() - begun, log, lambda: _served(site, terminal))
    raise typer.Exit(128 + ended.interrupted if ended.interrupted else 0 if ended.good else 1)


def _only_site() -> Path:
    """The one inventory that a person has made; refused where there is none, or a choice."""
    there = (path.parent for path in (repository.WORK / "inventories").glob("*/hosts.yml"))
    found = sorted(folder for folder in there if not shipped(folder))
    if len(found) == 1:
        return found[0]
    told = f"there are {', '.join(path.name for path in found)}" if found else "none is in inventories/ here"
    return named_site(None, f"which site? {told};")


def _fitting(site: Path) -> str | None:
    """Nothing where the inventory's profile has its Sparks, or a list says what is served; else what fits here."""
    cluster = case.cluster(site)
    asked = serving.load(site, cluster)
    wanted = asked.entries[0].profile if asked.entries and not asked.listed else ""
    found = case.suited(wanted, cluster) if wanted else ""
    if found == wanted:
        return None
    there = f"the {amount.of(len(cluster.nodes), 'Spark')} of '{cluster.name}'"
    told = f"{wanted} asks for more than {there}; {found} fits and is"
    change = "served: write it as `profile:` in cluster.yml, or name another with --profile"
    show.paragraph(show.console(), f"{told} {change}")
    return found


def _ahead(terminal: Console, site: Path, profile: str | None, tags: str | None) -> float:
    """What will take long is said before anything is done; seconds that the longest start may take."""
    if tags and not {"models", "serve"} & set(tags.split(",")):
        return 0.0
    steps = expected.steps(site, case.cluster(site), profile)
    if steps:
        show.paragraph(terminal, "longer than a minute, where it is not there yet (~: a guess):")
    for step in steps:
        show.paragraph(terminal, f"{step.what}: {step.text}", indent=2)
    return max((step.seconds for step in steps if "start" in step.what), default=0.0)


@contextmanager
def _screen(terminal: Console, start: float) -> Iterator[Callable[[Progress], None]]:
    """In a window one picture that is drawn anew; elsewhere a line for each part that ended."""
    if show.window(terminal) is None:
        told: set[str] = set()
        yield lambda progress: _lines(terminal, progress, told)
        return
    from rich.live import Live

    with Live(console=terminal, auto_refresh=False) as live:
        yield lambda progress: live.update(picture(progress, start), refresh=True)


def picture(progress: Progress, start: float = 0.0) -> RenderableType:
    """Every part with its state, once it is over those that were begun; how far the one at work is. `start`: seconds
    that an engine's may take."""
    from rich.console import Group
    from rich.table import Column, Table
    from rich.text import Text

    rows, now = Table.grid("", Column(justify="right"), "", padding=(0, 2, 0, 0)), time.time()
    for part in (part for part in progress.parts if part.begun or progress.code is None):
        sign, style = FAILED if part.failed else SIGNS[part.state]
        seconds = f"{part.seconds(now):.0f} s" if part.state not in ("waits", "skipped") else ""
        doing = f"\n  {plain(progress.task)}" if part.state == "runs" and progress.task else ""
        rows.add_row(sign, seconds, f"{_told(part)}{doing}", style=style)
    passed, far = now - progress.since, list(progress.said.values())
    if start and progress.does == "groups.start":
        far = [f"{amount.bar(passed / start)}  {amount.span(passed)} of at most {amount.span(start)}", *far]
    return Group(rows, *(Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in far))


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
        show.paragraph(terminal, failure(ended, seconds, log, shlex.join(["sparkloom", *sys.argv[1:]])))
    elif ended.changes or not ended.serves:
        served()
        show.paragraph(terminal, f"{_short(log)} has every line")
    for warning in _warnings(log):
        show.paragraph(terminal, f"warning: {warning}")
    if ended.good:
        show.paragraph(terminal, f"\n{outcome(seconds, ended.changes, serves=ended.serves)}")


def failure(ended: Progress, seconds: float, log: Path, command: str = "") -> str:
    """Where it was interrupted, or what failed: its cause, its fix, what else there is, and what goes on from there."""
    kept, named = f"{_short(log)} has every line", command and f": {command}"
    if ended.interrupted:
        part = next((part.name for part in ended.parts if part.failed), "the start")
        return f"\ninterrupted after {seconds:.0f} s in: {part}; {kept}; the same command goes on from there{named}"
    why = _why(ended.errors[-1]) if ended.errors else _last_words(log)
    why += [f"also:  {error['host']}: {_cut(error['said'])}" for error in ended.errors[-3:-1]]
    end = f"not up after {seconds:.0f} s; {kept}; mend it, then the same command again{named}"
    return "\n".join(["", *why, "", end])


def _why(error: Mapping[str, str]) -> list[str]:
    """Roles and rules write a fix below its cause, behind `-> `; others say what they say."""
    lines = [line.strip() for line in error["said"].splitlines() if line.strip()] or ["said nothing"]
    pairs = [(cause.removeprefix(FAIL), fix) for cause, fix in pairwise(lines) if fix.startswith(FIX)]
    found = [(cause, fix.removeprefix(FIX)) for cause, fix in pairs if not cause.startswith(WARN)]
    warned = [cause for cause, _ in pairs if cause.startswith(WARN)]
    cause, _, fix = f"{error['host']}: {lines[0]}".partition("; ")
    cause, fix = found[0] if found else (cause, fix)
    others = [*(other for other, _ in found[1:]), *warned] if found else lines[1:]
    told = [f"also:  {_cut(other)}" for other in others[:MORE]]
    rest = [f"       and {len(others) - MORE} more"] if len(others) > MORE else []
    return [f"cause: {cause}", *([f"fix:   {fix}"] if fix else []), *told, *rest]


def _cut(said: str) -> str:
    """A line of it, for there are others."""
    return cut(" ".join(said.split()), WIDE)


def _last_words(log: Path) -> list[str]:
    """Of an ansible-playbook that ended without a failed task: an inventory or an option that it refuses."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    said = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)] or lines
    return ["ansible-playbook ended without a task that failed:", *(f"  {line[:BEGIN]}" for line in said[-3:])]


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
    """What is served, and what to type next; a run of some parts only may end before there is anything."""
    try:
        now = status.status(site)
        show.paragraph(terminal, status.text(now))
        if any(one["serving"] or healthy(one) for one in now["groups"]):
            terminal.print(_next(site), soft_wrap=True)  # to be copied: the terminal breaks a line, not we
    except InputError as error:
        show.paragraph(terminal, f"what is served is not known: {error.problems[0].message}")


def _next(site: Path) -> str:
    url, _, key = reach(case.cluster(site), site)
    named, stop = f"-i {_short(site)}", play.command(_short(TEARDOWN), site, ["-e", "teardown_serving=true"])
    return (
        f"ask it:  {url}/v1{f' with the key in {key}' if key else ''}\n"
        f"paste:   sparkloom connect openai {named}\n"
        f"see it:  sparkloom status {named}, or the page, {url}/\n"
        f"stop it: {shlex.join(stop)}"
    )
