"""What stays of a matrix: evidence in a profile and a measured row."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace as NS
from typing import Any

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.judge import measured_rows
from sparkloom.measure.matrix import cell, evidence_add, run
from sparkloom.measure.matrix import spec as specs
from tests.places import REPO

PROFILE = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
SPEC = f"""name: small
profile: {PROFILE}
axes:
  launch.moe_runner_backend: [flashinfer_cutlass, triton]
  launch.mem_fraction_static: [0.88, 0.9]
  env.NCCL_DEBUG: [INFO, WARN]
"""
KNOWN = {
    "image_digest": "repo/engine@sha256:" + "0" * 64,
    "transport": {"verdict": "roce"},
    "driver": {"spark1": "580.159"},
}
SAID = ["RuntimeError: capture failed after 17 of 36 graphs at 0x7f00"]


class Grid:
    def __init__(self, folder: Path) -> None:
        self.spec_path = folder / "small.yml"
        self.spec_path.write_text(SPEC)
        self.spec, text = specs.load(self.spec_path)
        self.cells = {tuple(cell.settings.values()): cell for cell in specs.cells(self.spec, text)}
        self.folder = folder / "small"
        self.folder.mkdir()
        self.profile = folder / "profile.yml"
        shutil.copy(REPO / "model_profiles" / f"{PROFILE}.yml", self.profile)

    def put(self, *values: Any, status: str = "ok", **more: Any) -> str:
        cell = self.cells[values]
        rates = {1: 10.2, 4: 29.3, 8: 43.4}
        levels = [{"concurrency": n, "requests": n, "ok": n, "sum_tok_s": rate, "ttft_ms": {"p50": 1770.0}}
                  for n, rate in rates.items()]  # fmt: skip
        result = {"id": cell.id, "profile": PROFILE, "settings": cell.settings, "status": status,
                  "levels": levels if status in ("ok", "garbage") else [], "started": "2026-11-22T01:02:03Z",
                  "provenance": KNOWN, **more}  # fmt: skip
        (self.folder / f"{cell.id}.json").write_text(json.dumps(result))
        return cell.id

    def add(self, cell: str) -> dict[str, Any]:
        return evidence_add.add(self.spec_path, cell, to=str(self.profile))


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    return Grid(tmp_path)


def test_a_cell_becomes_evidence_and_a_row(grid: Grid) -> None:
    before = grid.profile.read_text()
    cell = grid.put("flashinfer_cutlass", 0.88, "INFO")
    told = grid.add(cell[:6])
    loaded = profile.load(grid.profile).profile
    assert len(loaded.evidence) == len(profile.load(PROFILE).profile.evidence) + 1
    kept = loaded.evidence[-1]
    assert kept.numbers is not None and (kept.numbers.n1, kept.numbers.n8, kept.numbers.ttft_n8) == (10.2, 43.4, 1.77)
    assert kept.config is not None and kept.config["mem_fraction_static"] == 0.88 and kept.date == "2026-11-22"
    assert grid.profile.read_text().startswith(before.rstrip("\n")), "nothing else of the profile is touched"
    (row,) = measured_rows.load(Path(told["rows"]))
    assert (row["outcome"], row["n4"], row["transport"], row["tp"]) == ("ok", 29.3, "roce", 4)
    assert row["extra"]["driver"] == "580.159" and row["image"].startswith("repo/engine@sha256")
    shipped = set().union(*measured_rows.shipped())
    assert set(row) <= shipped, "no key that the measured rows do not have"
    assert measured_rows.score(told["rows"])["tn"] == 1
    for again in range(2):
        with pytest.raises(InputError, match="already"):
            grid.add(cell)
        if not again:
            Path(told["rows"]).unlink()
    assert not Path(told["rows"]).exists(), "a refused one leaves no half"


def test_a_failure_is_evidence_too(grid: Grid) -> None:
    crash = grid.put("triton", 0.9, "INFO", status="bench_crash", telling=SAID, note="8 cut")
    told = grid.add(crash)
    assert told["row"]["outcome"] == "runtime_crash" and "capture failed" in told["row"]["symptom"]
    assert not any(key.startswith("n1") for key in told["row"])
    kept = profile.load(grid.profile).profile.evidence[-1]
    assert kept.claim.startswith("ends while it serves: RuntimeError") and kept.numbers is None


@pytest.mark.parametrize(
    "ending", ["evidence: []\n", "", "evidence:\n- {claim: x, status: vendor, source: y}\nenv: {A: b}\n"]
)
def test_a_profile_of_any_shape_takes_it(grid: Grid, ending: str) -> None:
    text = grid.profile.read_text()
    grid.profile.write_text(re.sub(r"\nenv:\n.*?\n\n", "\n", text[: text.index("evidence:")], flags=re.S) + ending)
    before = len(profile.load(grid.profile).profile.evidence)
    grid.add(grid.put("flashinfer_cutlass", 0.9, "WARN"))
    after = profile.load(grid.profile).profile
    assert len(after.evidence) == before + 1 and (after.env == {"A": "b"}) == ("env" in ending)


ODD = """\
# mine
evidence:   # measured here
     - claim: 'quoted: and so on'   # by hand
       status: "vendor"
       source: >-
         a post
         of two lines

     # between
     -   status: measured
         claim: the last, "as is"
         config: {
           a: on, b: null,
           c: [1,
               2]
         }
         source: y
         # about the last

# about the environment
env:
    A:   "b"   # as it stands
"""


def test_comments_layout_and_quotes_of_a_profile_stay(grid: Grid) -> None:
    """What was there stands there byte for byte; the entry is set in as its neighbours are."""
    text = grid.profile.read_text()
    head = re.sub(r"\nenv:\n.*?\n\n", "\n", text[: text.index("evidence:")], flags=re.S)
    grid.profile.write_text(head + ODD)
    before = profile.load(grid.profile).profile
    grid.add(grid.put("flashinfer_cutlass", 0.9, "WARN"))
    made = grid.profile.read_text()
    above, below = (head + ODD).split("\n# about the environment")
    assert made.startswith(above) and made.endswith("\n# about the environment" + below)
    added = made.removeprefix(above).removesuffix("\n# about the environment" + below)
    assert added.startswith("     - claim: serves 8 of 8") and "\n       numbers: {n1: 10.2" in added
    after = profile.load(grid.profile).profile
    assert after.evidence[:2] == before.evidence and after.env == before.env == {"A": "b"}
    assert after.evidence[2].config is not None and after.evidence[2].config["parallel"]["tp"] == 4


@pytest.mark.parametrize(
    ("was", "kept"),
    [
        ("evidence: [{claim: x, status: vendor, source: y}]  # short\n", "]  # short\n"),
        ("evidence: []  # none yet\n\n# about it\nenv: {A: b}\n", "evidence:  # none yet\n  - claim"),
        ("evidence:\n- {claim: x, status: vendor, source: y}  # one\n...\n", "# one\n- claim"),
    ],
)
def test_short_ways_to_write_a_list_take_it_too(grid: Grid, was: str, kept: str) -> None:
    text = grid.profile.read_text()
    grid.profile.write_text(re.sub(r"\nenv:\n.*?\n\n", "\n", text[: text.index("evidence:")], flags=re.S) + was)
    before = len(profile.load(grid.profile).profile.evidence)
    grid.add(grid.put("flashinfer_cutlass", 0.9, "WARN"))
    assert len(profile.load(grid.profile).profile.evidence) == before + 1 and kept in grid.profile.read_text()


def test_every_shipped_profile_keeps_its_text(grid: Grid) -> None:
    cell = grid.put("flashinfer_cutlass", 0.9, "WARN")
    for shipped in sorted((REPO / "model_profiles").glob("*.yml")):
        text = shipped.read_text()
        mine = evidence_add._inserted(text, {"claim": "on", "status": "measured", "source": cell, "date": "2026-11-22"})
        more, fewer = (yaml.safe_load(t)["evidence"] for t in (mine, text)) if "evidence:" in text else ([0], [])
        assert len(more) == len(fewer) + 1 and more[:-1] == fewer, shipped
        lines = iter(mine.splitlines())
        assert all(line in lines for line in text.splitlines()), f"{shipped}: a line is gone or has moved"


def test_an_unknown_cell_is_refused_by_name(grid: Grid) -> None:
    known = grid.put("flashinfer_cutlass", 0.9, "INFO")
    with pytest.raises(InputError, match=known):
        grid.add("zzz")


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
