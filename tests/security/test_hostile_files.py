"""Hostile files through lint, diagnose and nccl-log: refused or judged, each within a second, nothing written.

5,000 of them by `make test-fuzz`, a fifth of them otherwise. In one process, as each program's own function; what is no
refusal of ours would be exit status 70, a bug. One seed makes the same files every time. On 00336b1 `nccl-log` of a
line with `[/x]` ended with status 70.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
import yaml

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.cli import judging, linting, reading, show
from sparkloom.measure.matrix import spec as specs
from tests.measure.matrix.test_matrix import SPEC
from tests.places import DATA, REPO

SEED = 20261122
LONGEST = 1.0  # seconds for one file; this machine is shared, so its own processor time is what counts
ODD = [
    "\x1b]52;c;AA==\x07", "\x9b31m", "\u202e", "[/x]", "[bold]", "{{ 7*7 }}", "%s%n", "../../etc/passwd", "/dev/zero",
    "*a", "&a [*a]", "!!python/object/apply:os.system ['x']", "\x00", "\ud7ff\uffff", "1e999", "-.inf", ".nan",
    "0x" + "f" * 400, "9" * 5000, "null", "[" * 200, "{a: " * 100, "- " * 300, "a" * 70_000, "true", "''", "<script>",
]  # fmt: skip


def profiles(dice: random.Random) -> Iterator[bytes]:
    shipped = [path.read_text() for path in sorted((REPO / "model_profiles").glob("*.yml"))]
    while True:
        text = dice.choice(shipped)
        yield _spoilt(dice, text) if dice.random() < 0.5 else _swapped(dice, text)


def logs(dice: random.Random) -> Iterator[bytes]:
    real = [path.read_text(errors="replace")[:20_000] for path in sorted((DATA / "nccl").rglob("*.log"))]
    real += [str(value) for value in yaml.safe_load((DATA / "rule_logs.yml").read_text()).values()]
    while True:
        text = dice.choice(real)
        yield _spoilt(dice, text) if dice.random() < 0.8 else dice.randbytes(dice.randrange(4000))


def recipes(dice: random.Random) -> Iterator[bytes]:
    """Grids of a matrix: what somebody posts to be run by others."""
    while True:
        yield _spoilt(dice, SPEC) if dice.random() < 0.5 else _swapped(dice, SPEC)


def _spoilt(dice: random.Random, text: str) -> bytes:
    """Cut, doubled, and with odd words and bytes in its lines."""
    lines = text.splitlines()
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(len(lines)) if lines else 0
        change = dice.randrange(5)
        if not lines or change == 0:
            lines.insert(at, dice.choice(ODD))
        elif change == 1:
            begin = dice.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:begin] + dice.choice(ODD) + lines[at][begin:]
        elif change == 2:
            lines[at:at] = lines[at : at + dice.randrange(1, 9)]
        elif change == 3:
            del lines[at : at + dice.randrange(1, 9)]
        else:
            lines[at] = lines[at].partition(":")[0] + ": " + dice.choice(ODD)
    data = bytearray("\n".join(lines).encode("utf-8", "replace"))
    for _ in range(dice.randrange(3)):
        if data:
            data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data)


def _swapped(dice: random.Random, text: str) -> bytes:
    """Well-formed, with values of other kinds anywhere."""
    data = yaml.safe_load(text)
    for _ in range(dice.randrange(1, 4)):
        node = data
        while isinstance(node, dict | list) and node:
            key = dice.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if not isinstance(node[key], dict | list) or not node[key] or dice.random() < 0.3:
                values = [*ODD[:12], 0, -1, 2**63, 1e308, True, None, [], {}, [[]], {"a": {}}, ["x"] * 50]
                node[key] = dice.choice(values)
                break
            node = node[key]
    return yaml.safe_dump(data, allow_unicode=True).encode("utf-8", "replace")


def lint(path: Path) -> None:
    linted = linting.lint([str(path)], None, [], None)
    show.out(linted.as_list(), False, lambda _: judging._linted(linted, True))


def plan(path: Path) -> None:
    case.plan(str(path))


def diagnose(path: Path) -> None:
    judging.diagnose([path])


def nccl_log(path: Path) -> None:
    reading.nccl_log([path])


def grid(path: Path) -> None:
    specs.cells(*specs.load(path))


PART = 1 if os.environ.get("SPARKLOOM_MORE") else 5
JOBS: list[tuple[str, Callable[[random.Random], Iterator[bytes]], Callable[[Path], None], int]] = [
    ("lint", profiles, lint, 300),
    ("plan", profiles, plan, 50),
    ("diagnose", logs, diagnose, 3000),
    ("nccl-log", logs, nccl_log, 1500),
    ("matrix", recipes, grid, 150),
]


WRITTEN: list[str] = []


def _writes(event: str, told: tuple[object, ...]) -> bool:
    """A file opened to be written, by its mode or its flags; the interpreter's own caches aside."""
    if event != "open" or "__pycache__" in str(told[0]) or str(told[0]) == os.devnull:
        return False
    return isinstance(told[2], int) and bool(told[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


sys.addaudithook(lambda event, told: WRITTEN.append(str(told[0])) if _writes(event, told) else None)


def test_it_is_five_thousand() -> None:
    assert sum(count for *_, count in JOBS) >= 5000


@pytest.mark.more
@pytest.mark.parametrize(("name", "files", "work", "count"), JOBS, ids=[name for name, *_ in JOBS])
def test_no_crash_no_hang_nothing_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    files: Callable[[random.Random], Iterator[bytes]],
    work: Callable[[Path], None],
    count: int,
) -> None:
    case.cluster()  # what every file shares is read once
    (tmp_path / "in").mkdir()
    (tmp_path / "at").mkdir()
    monkeypatch.chdir(tmp_path / "at")
    path, made = tmp_path / "in" / "hostile.yml", files(random.Random(f"{SEED} {name}"))
    slowest, worst = 0.0, b""
    for number in range(count // PART + 1):
        data = next(made)
        path.write_bytes(data)
        WRITTEN.clear()
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        begun = time.process_time()
        try:
            work(path)
        except (InputError, typer.Exit, case.Refused):
            pass
        except BaseException as error:
            raise AssertionError(f"{name}, file {number}: {error!r}\n{data[:3000]!r}") from error
        took = time.process_time() - begun
        if number and took > slowest:  # the first imports what it needs
            slowest, worst = took, data
        assert number == 0 or not WRITTEN, f"{name}, file {number} made it write {WRITTEN}"
    assert slowest < LONGEST, f"{name}: {slowest:.2f} s for {worst[:2000]!r}"
    assert [found.name for found in tmp_path.rglob("*")] in (["in", "at", "hostile.yml"], ["at", "in", "hostile.yml"])


def test_a_grid_that_names_a_device_as_its_profile_is_refused(tmp_path: Path) -> None:
    """On 00336b1 `sparkloom matrix` of somebody else's grid read /dev/zero until memory was gone."""
    path = tmp_path / "grid.yml"
    path.write_text(SPEC.replace(SPEC.splitlines()[1], "profile: /dev/zero"))
    with pytest.raises(InputError, match="never ends"):
        grid(path)


def test_json_of_hostile_files_is_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, path = profiles(random.Random(SEED)), tmp_path / "hostile.yml"
    for _ in range(40):
        path.write_bytes(next(made))
        linted = linting.lint([str(path)], None, [], None)
        show.out(linted.as_list(), True, str)
        assert isinstance(json.loads(capsys.readouterr().out), list)
