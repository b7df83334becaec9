"""How a cell is served, measured and read: the commands that it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace as NS

import pytest

from sparkloom.base.errors import InputError
from sparkloom.measure.matrix import cell, run
from sparkloom.measure.matrix import spec as specs
from tests.places import REPO

PROFILE = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


def test_a_grid_of_one_group_switches_measures_and_reads_that_group_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = {"name": "x", "profile": "openai--gpt-oss-120b", "axes": {"env.A": [1]}, "inventory": str(tmp_path)}
    ran: list[list[str]] = []
    for group in (None, "chat"):
        seams = cell.Seams(["switch"], ["bench"], [], "http://h:1")
        one = specs.Cell(1, "c", {"env.A": 1})
        work = cell.Work(specs.Spec(**told, group=group), one, tmp_path, seams, lambda *_: False, 0, forced=False)
        monkeypatch.setattr(work, "_child", lambda what, argv, **more: ran.append(argv) or NS(code=0, seconds=1.0))
        work._switch()
        ran.append(work._bench())
    assert not {"--group", "group=None"} & {word for argv in ran[:2] for word in argv}
    assert ran[2][ran[2].index("group=chat") - 1] == "-e" and ran[3][ran[3].index("--group") + 1] == "chat"
    options = run.Options(url="http://h:1", group="chat")
    logs = run._seams(specs.Spec(**told, group="chat"), options).logs
    assert all(words[1:3] == ["logs", "chat"] for words in logs)


def test_what_bench_cannot_use_ends_the_run_and_is_no_crash_of_the_engine(tmp_path: Path) -> None:
    """The real bench, which is asked for a file that is not there: as JSON, too, it says so and ends with 2."""
    own = str(Path(sys.executable).with_name("sparkloom"))
    seams = cell.Seams(["switch"], [own, "bench"], [], "http://127.0.0.1:9", key_file=tmp_path / "nothing")
    told = {"name": "x", "profile": PROFILE, "axes": {"env.A": [1]}, "inventory": str(REPO / "inventories/gb10")}
    with (tmp_path / "lock").open("w") as lock:
        one = specs.Cell(1, "c", {"env.A": 1})
        work = cell.Work(specs.Spec(**told), one, tmp_path, seams, lambda *_: False, lock.fileno(), forced=False)
        (tmp_path / "c").mkdir()
        with pytest.raises(InputError, match="nothing"):
            work._measure()
