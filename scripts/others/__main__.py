"""How well other people's recipes are read: `python -m scripts.others FOLDER`, one line per folder below it.

Their files stay where they are: a clone of somebody's repository, or a folder with single files. What is printed is the
table of docs/add-a-profile.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from scripts.others import reference
from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.profile import Profile
from sparkloom.judge import imported
from sparkloom.launch import engines
from sparkloom.launch.imported.draft import CONSENT
from sparkloom.launch.resolve import Launch, resolve
from sparkloom.render import export
from sparkloom.render.export import host

ENDINGS = (".yaml", ".yml", ".sh", ".md", ".jsx")
MEANT = {  # differences that are sparkloom's own way: said in the remainder, each
    "--host": "listens for its endpoint", "--port": "listens at its engine's own port",
    "--distributed-executor-backend": "Ray translated to mp",
}  # fmt: skip


@dataclass(slots=True)
class Outcome:
    path: Path
    read: bool
    why: str = ""
    served: bool = False  # by an engine that sparkloom has
    equal: bool | None = None  # None: nothing to compare with
    differs: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    unnamed: list[str] = field(default_factory=list)  # of these what the remainder says nothing of
    identical: dict[str, bool] = field(default_factory=dict)  # export form -> the same profile came back


def outcome(path: Path) -> Outcome:
    try:
        taken = imported.take_in(path.read_text(encoding="utf-8"), path.name)
    except (InputError, UnicodeDecodeError) as error:
        return Outcome(path, False, str(error).splitlines()[0])
    if taken.loaded is None:
        refused = [*taken.draft.findings, *taken.refused]
        return Outcome(path, True, refused[0].message if refused else "", taken.draft.engine in engines.names())
    rack = imported.roomy(case.cluster(), taken.draft.nodes)
    try:
        launch = resolve(taken.loaded, rack)
        result = Outcome(path, True, served=True)
        _compare(result, path, launch, [left.what for left in taken.draft.leftover])
        result.identical = dict(_identical(resolve(taken.loaded, host.at_hosts(rack))))
    except InputError as error:
        return Outcome(path, True, str(error).splitlines()[0], True)
    return result


def _compare(result: Outcome, path: Path, launch: Launch, left: list[str]) -> None:
    """Every flag of the source against the command that the profile makes; what sparkloom adds is no difference."""
    said = reference.command(path) if path.suffix in (".yaml", ".yml") else None
    if said is None:
        return
    theirs, ours = reference.table(said), reference.table(list(launch.ranks[0].argv))
    renamed = reference.renamed(launch.engine)
    for name, value in theirs.items():
        now = ours.get(name, ours.get(renamed.get(name, "")))
        if now != value:
            result.differs[name] = (value, now)
    told = set(result.differs) - set(MEANT)
    result.equal = not told
    words = {name: str(theirs[name]).split() for name in told}
    named = [(what.replace("_", "-"), what) for what in left]
    result.unnamed = sorted(n for n in told if not any(w.startswith(n) or what in words[n] for w, what in named))


def _identical(launch: Launch) -> Iterator[tuple[str, bool]]:
    for form in export.FORMS:
        back = imported.take_in(export.text(launch, form), form)
        yield form, back.loaded is not None and _plain(back.loaded.profile) == _plain(launch.profile.profile)


def _plain(profile: Profile) -> dict[str, Any]:
    """A profile as data, less the one thing that goes into no file: a consent to run unpinned code."""
    data: dict[str, Any] = profile.model_dump(warnings=False)
    data["model"].pop(CONSENT)
    return {key: value for key, value in data.items() if key != "extends"}


def shipped() -> list[Outcome]:
    """Our own profiles, exported and imported: there is nothing else to compare them with."""
    outcomes = []
    for name in profiles.names():
        loaded = profiles.load(name)
        rack = imported.roomy(case.cluster(), loaded.profile.launch.parallel.nodes)
        done = Outcome(Path(f"{name}.yml"), True, served=True)
        done.identical = dict(_identical(resolve(loaded, host.at_hosts(rack))))
        outcomes.append(done)
    return outcomes


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="one folder below it per source")
    parser.add_argument("--list", action="store_true", help="every file that was not read, or differs, and by what")
    parser.add_argument("--shipped", action="store_true", help="a first row for the profiles that are shipped")
    asked = parser.parse_args()
    folders = [path for path in sorted(asked.folder.iterdir()) if path.is_dir()] or [asked.folder]
    sources = {path.name: partial(_outcomes, path) for path in folders}
    if asked.shipped:
        sources = {"(profiles shipped)": shipped, **sources}
    print(
        "| source | files | read | served here | command equal | differing, named | not named | out and in the same |"
    )
    print("|--|--|--|--|--|--|--|--|")
    worst = True
    every: list[Outcome] = []
    for name, made in sources.items():
        outcomes = made()
        every += outcomes
        print(_row(name, outcomes), flush=True)
        worst = worst and all(o.read and o.equal is not False and all(o.identical.values()) for o in outcomes)
        for line in _details(outcomes) if asked.list else ():
            print(line, file=sys.stderr)
    print(_row("**all**", every))
    return 0 if worst else 1


def _outcomes(folder: Path) -> list[Outcome]:
    return [outcome(path) for path in files(folder)]


def _row(name: str, outcomes: list[Outcome]) -> str:
    compared = [o for o in outcomes if o.equal is not None]
    kept = Counter(same for o in outcomes for same in o.identical.values())
    cells = (
        name, len(outcomes), sum(o.read for o in outcomes), sum(o.served for o in outcomes),
        f"{sum(bool(o.equal) for o in compared)} of {len(compared)}",
        sum(o.equal is False and not o.unnamed for o in compared), sum(bool(o.unnamed) for o in compared),
        f"{kept[True]} of {kept[True] + kept[False]}",
    )  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _mark(o: Outcome, name: str) -> str:
    return " (in no remainder)" if name in o.unnamed else ""


def _details(outcomes: list[Outcome]) -> Iterator[str]:
    for o in outcomes:
        told = {name: pair for name, pair in o.differs.items() if name not in MEANT}
        lost = [form for form, same in o.identical.items() if not same]
        if not o.read or o.why or told or lost:
            parts = [
                o.why,
                *(f"{name}{_mark(o, name)}: {was} -> {now}" for name, (was, now) in told.items()),
                *(f"{f} lost" for f in lost),
            ]
            yield f"{o.path}: {'; '.join(part for part in parts if part)}"


if __name__ == "__main__":
    raise SystemExit(main())
