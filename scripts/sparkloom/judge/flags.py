"""Judges a launch by the catalog of its release: is every flag one of this engine, and every value one it takes?

Two answers. A key that no release of the engine ever had is a slip of the pen: unusable input, with its place.
One that this release lacks, or a value that it refuses, is a finding: the profile is sound, its dialect is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.errors import InputError, Problem, did_you_mean
from sparkloom.base.finding import Finding, Severity
from sparkloom.inputs.catalogs import argv as command_line
from sparkloom.inputs.catalogs import environment, releases
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.catalogs.flagtypes import FlagError, FlagProblem
from sparkloom.inputs.profile import LoadedSketch
from sparkloom.launch import engines, ranges, reading
from sparkloom.launch.resolve import Launch, LaunchSketch
from sparkloom.launch.values import EnvVar, Setting

_READ: dict[str, Any] = document.own((Path(__file__).parent / "data" / "flags.yml").read_text())
FIXES: dict[str, str] = _READ["fixes"]
PARALLEL: dict[str, list[str]] = _READ["parallel"]
OF_A_FORK = "fork-unchecked"
UNDECIDED = "flag-undecided"  # a neighbour of the release refuses it; no catalog says what the release itself does
FORK = "nothing, if the image is that fork's; else take engine.fork out, and its flags"
IGNORED = "remove it, or write the name that this release reads"
SEVERITIES: dict[str, Severity] = {"deprecated": "warning", "abbreviated": "warning"}
SURER = "nothing, if that release takes it; a catalog of it decides: docs/write-a-rule.md"
CLOSE = 0.78  # of two names' letters


def require_known(loaded: LoadedSketch) -> None:
    """Refuses launch keys that no release of the engine has, and keys in another spelling than ours."""
    catalog = reading.catalog(loaded, loaded.profile.engine.release)
    if catalog is None:
        return
    asked = (_unknown(loaded, catalog, key) for key in loaded.profile.launch.flags)
    if problems := list(filter(None, asked)):
        raise InputError(problems)


def check(launch: LaunchSketch) -> list[Finding]:
    """What the launch's release would refuse, warn about or look up in vain; one finding for each flag."""
    catalog = reading.catalog(launch.profile, launch.release)
    if catalog is None:
        return []
    by_flag: dict[str, FlagProblem] = {}
    for problem in _problems(launch, catalog):
        by_flag.setdefault(_key(problem.flag), problem)
    decided = _decided(launch, catalog, by_flag)
    found = [_finding(launch, catalog, problem, flag in decided) for flag, problem in by_flag.items()]
    return [*_judged_by_another(launch, catalog), *_of_a_fork(launch), *found]


def _decided(launch: LaunchSketch, catalog: Catalog, flags: Collection[str]) -> Collection[str]:
    """Those that the release surely refuses: by its own catalog, or by the ones before and after it."""
    if not catalog.asked.note or not flags:
        return flags
    later = reading.catalog(launch.profile, catalog.asked.next) if catalog.asked.next else None
    return {_key(problem.flag) for problem in _problems(launch, later)} if later else ()


def _of_a_fork(launch: LaunchSketch) -> Iterator[Finding]:
    """What a release takes only in its fork; `assumed:` says each value."""
    fork = launch.profile.profile.engine.fork
    if fork is None:
        return
    written: list[Setting | EnvVar] = [*launch.settings, *launch.ranks[0].env]
    own = [one.name for one in written if one.origin.why.startswith(reading.UNCHECKED)]
    said = (
        f"{launch.engine} is the fork {fork.name}: flags are judged as those of "
        f"{engines.catalog(launch.engine, launch.release).version}, beside them {len(own)} by the fork's own word alone"
    )
    text = ": ".join(filter(None, (said, ", ".join(own))))
    where = launch.profile.where("engine", "fork")
    yield Finding(where, OF_A_FORK, text, expected="", fix=FORK, severity="info", evidence=(fork.source,))
    if isinstance(launch, Launch) and (uneven := launch.profile.profile.uneven):
        where, text = launch.profile.where("launch", "parallel"), f"{reading.UNCHECKED} ({fork.name}): {uneven}"
        yield Finding(where, OF_A_FORK, text, expected="", fix=FORK, severity="info", evidence=(fork.source,))


def _judged_by_another(launch: LaunchSketch, catalog: Catalog) -> Iterator[Finding]:
    """A release without a catalog is judged by its neighbour's: said aloud, since flags come and go."""
    if catalog.asked.note:
        overridden = launch.release != launch.profile.profile.engine.release
        where = f"--engine-version {launch.release}" if overridden else launch.profile.where("engine", "release")
        fix = "name a release that has a catalog, or add one: docs/write-a-rule.md"
        rule, note, sources = "release-without-catalog", catalog.asked.note, (catalog.source,)
        yield Finding(where, rule, note, expected="", fix=fix, severity="warning", evidence=sources)


def _problems(launch: LaunchSketch, catalog: Catalog) -> Iterator[FlagProblem]:
    """By typed value first, because words no longer show that a switch was given a number; then by command line."""
    typed = [problem for setting in launch.settings if (problem := _typed(setting, catalog)) is not None]
    yield from typed
    yield from _out_of_range(launch)
    # All ranks between the first and the last differ in their number only.
    for rank in {0, len(launch.ranks) - 1}:
        for problem in command_line.check(catalog, launch.ranks[rank].argv):
            # A word too many is the echo of a value that was refused already.
            if problem.flag.startswith("-") or not typed:
                yield problem
    yield from environment.check(catalog, {variable.name: variable.value for variable in launch.ranks[0].env})


def _out_of_range(launch: LaunchSketch) -> Iterator[FlagProblem]:
    """Numbers that the parser takes and the engine fails over later, minutes into a load."""
    known = engines.get(launch.engine).ranges
    for setting in launch.settings:
        if setting.origin.kind in ("profile", "set"):
            yield from ranges.problems(known, setting.name, setting.value)


def _typed(setting: Setting, catalog: Catalog) -> FlagProblem | None:
    if setting.origin.kind not in ("profile", "set") or catalog.flag(setting.name) is None:
        return None
    try:
        command_line.coerce(catalog, setting.name, setting.value)
    except FlagError as error:
        return error.problem
    return None


def _finding(launch: LaunchSketch, catalog: Catalog, problem: FlagProblem, decided: bool) -> Finding:
    variables = {variable.name for variable in launch.ranks[0].env}
    # What an engine ignores is worth a word, no reason to refuse.
    ignored = (problem.flag in variables and problem.kind in ("unknown", "removed")) or _overridden(launch, problem)
    severity: Severity = "warning" if ignored else SEVERITIES.get(problem.kind, "error")
    sources = (catalog.source, *([catalog.asked.note] if catalog.asked.note else []))
    fix = IGNORED if ignored else FIXES.get(problem.kind, "write a value that this release takes")
    rule = f"flag-{problem.kind}"
    where = _where(launch, problem)
    found = Finding(where, rule, problem.message, expected="", fix=fix, severity=severity, evidence=sources)
    if decided:
        return found
    return undecided(found, f"whether {catalog.engine} {catalog.asked.asked} does is not known here", SURER)


def undecided(finding: Finding, why: str, fix: str) -> Finding:
    """A refused flag as a warning: it was not the release itself that refused it."""
    if finding.severity != "error" or not finding.rule.startswith("flag-"):
        return finding
    message = f"{finding.message}; {why}"
    return replace(finding, rule=UNDECIDED, severity="warning", message=message, fix=fix)


def _overridden(launch: LaunchSketch, problem: FlagProblem) -> bool:
    """Whether the engine takes the checkpoint's word in place of the flag's, or may where its packing is unknown."""
    packings = _READ["overridden"].get(launch.engine, {}).get(_key(problem.flag), ())
    return problem.kind == "unregistered" and launch.view().packing in packings


def _where(launch: LaunchSketch, problem: FlagProblem) -> str:
    variables = {variable.name: variable.origin.where for variable in launch.ranks[0].env}
    return variables.get(problem.flag) or launch.where(_key(problem.flag))


def _unknown(loaded: LoadedSketch, catalog: Catalog, key: str) -> Problem | None:
    if catalog.flag(key) is not None and "-" not in key:
        return None
    known = _every_name(catalog.engine)
    if key in known:
        return None
    hint = _meant(catalog.engine, key, known)
    message = f"unknown key 'launch.{key}': no release of {catalog.engine} has such a flag{hint}"
    return loaded.document.problem(("launch", key), message, "unknown-flag")


def _meant(engine: str, key: str, known: Collection[str]) -> str:
    """`; write ...`, `; did you mean ...?`, or nothing: an engine's own name for the thing comes first."""
    plain = key.replace("-", "_").strip("_")
    if plain in known:
        return f"; write '{plain}'"
    for part, spellings in PARALLEL.items():
        if plain in spellings:
            return f"; write launch.parallel.{part}"
    meant = _same_thing(engine, plain)
    if meant and meant[0] == engine:
        return f"; did you mean '{meant[2]}'?"
    if meant:
        return f"; {meant[0]} calls it '{meant[1]}', {engine} '{meant[2]}'"
    return did_you_mean(key, known)


def _same_thing(engine: str, key: str) -> tuple[str, str, str] | None:
    """Whose name the key is nearest to, that name, and this engine's own name for the thing."""
    own = engines.get(engine).called
    candidates = [
        (_likeness(key, name), asked == engine, asked, name, own[thing])
        for asked in engines.names()
        for thing, name in engines.get(asked).called.items()
        if thing in own
    ]
    best = max(candidates, default=None)
    return (best[2], best[3], best[4]) if best and best[0] >= CLOSE else None


def _likeness(key: str, name: str) -> float:
    """Letters in common; a key of two words and more that a name begins with counts as that name."""
    if "_" in key and name.startswith(f"{key}_"):
        return 0.99
    return SequenceMatcher(None, key, name).ratio()


@lru_cache
def _every_name(engine: str) -> frozenset[str]:
    """Every flag that any release with a catalog knows, as profiles spell it."""
    catalogs = [engines.catalog(engine, release) for release in releases.known(engine)]
    spellings = {spelling for catalog in catalogs for spelling in catalog.spellings}
    return frozenset(_key(spelling) for spelling in spellings if spelling.startswith("--"))


def _key(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")
