"""`matrix run` against a stand-in for playbook and engine: cells of every kind, killed twice, resumed, reported."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.measure.matrix import cell, run, verdict
from sparkloom.measure.matrix import spec as specs
from tests import inventories
from tests.later import SKIPPED
from tests.places import REPO
from tests.until import until

COMMAND = str(Path(sys.executable).with_name("sparkloom"))
FAST, SLOW, GARBAGE = "rate=300/ttft=0.05", "rate=100/ttft=0.05", "garbage=loop/rate=400/ttft=0.05"
SPEC = """name: small
profile: redhatai--qwen3.6-35b-a3b-nvfp4
axes:
  env.PACING: [{pacing}]
  launch.mem_fraction_static: [0.8, 0.85]
bench: {{concurrency: [1, 2], max_tokens: 240, warmup_tokens: 0}}
limits: {{switch_seconds: 8, bench_seconds: 40, first_token_seconds: 4, stall_seconds: 4}}
"""


class Site:
    """A folder with a spec and the stand-in's state; `run` is the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.spec, self.results = folder, folder / "small.yml", folder / "small"
        self.state = folder / "state"
        self.state.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def write(self, *pacing: str) -> None:
        self.spec.write_text(SPEC.format(pacing=", ".join(pacing)))

    def command(self, *words: str) -> list[str]:
        switch = shlex.join([sys.executable, "-m", "testbed.standins.pacing.switch", str(self.state), str(self.port)])
        url = f"http://127.0.0.1:{self.port}"
        return [COMMAND, "matrix", str(self.spec), "run", "--url", url, "--switch", switch, "--logs", "", *words]

    def run(self, *words: str, code: int = 0) -> dict[str, Any]:
        done = subprocess.run(
            [*self.command(*words), "--json"], cwd=REPO, capture_output=True, text=True, timeout=150, check=False
        )
        assert done.returncode == code, done.stderr[-3000:]
        self.said = done.stderr
        return dict(json.loads(done.stdout)) if done.stdout else {}

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command(), cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def done(self) -> dict[str, float]:
        return {file.stem: file.stat().st_mtime_ns for file in self.results.glob("*.json")}

    def statuses(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for result in specs.read_results(self.results).values():
            found.setdefault(str(result.settings["env.PACING"]), []).append(result.status)
        return found

    def switches(self) -> list[str]:
        return (self.state / "switches").read_text().splitlines()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    with contextlib.suppress(OSError, ValueError):
        os.kill(int((made.state / "server").read_text()), signal.SIGTERM)


@SKIPPED
@pytest.mark.more
@pytest.mark.slow
def test_twelve_cells_killed_twice_and_resumed(site: Site) -> None:
    site.write(FAST, SLOW, GARBAGE, "crash", "hang", "stall_after=8")
    chance = random.Random(7)
    kept: dict[str, float] = {}
    for after in (2, 6):  # somewhere in the cell after the second, then in the one after the sixth
        process = site.start()
        until(lambda after=after: len(site.done()) >= after, 240)
        time.sleep(chance.uniform(0.1, 1.5))
        process.kill()
        assert process.stderr
        process.stderr.close()
        process.wait()
        assert all(site.done()[name] == stamp for name, stamp in kept.items()), "what is done is not done again"
        kept = site.done()
        assert len(specs.read_results(site.results)) == len(kept) >= after, "every file is whole"
    told = site.run()
    assert all(site.done()[name] == stamp for name, stamp in kept.items())
    assert site.statuses() == {
        FAST: ["ok"] * 2, SLOW: ["ok"] * 2, GARBAGE: ["garbage"] * 2, "crash": ["startup_crash"] * 2,
        "hang": ["hang"] * 2, "stall_after=8": ["hang"] * 2,
    }  # fmt: skip
    tries = Counter(line.split()[0] for line in site.switches())
    assert len(tries) == 12 and sum(tries.values()) - 12 <= 2, "one more try for each kill"
    results = specs.read_results(site.results)
    assert results[told["winner"]].settings["env.PACING"] == FAST, "garbage was faster and does not win"
    assert told["counts"] == {"ok": 4, "garbage": 2, "startup_crash": 2, "hang": 4}
    text = Path(told["files"][0]).read_text()
    assert "told to crash while it loads" in text and "not serving after 8 s" in text and "## Winner" in text
    assert site.run()["winner"] == told["winner"] and len(site.switches()) == sum(tries.values()), "nothing is left"


def test_ctrl_c_keeps_what_is_done_and_leaves_nothing_running(site: Site) -> None:
    site.write(FAST, "hang")
    process = site.start()
    until(lambda: any(line.endswith(" hang") for line in site.switches()) if site.done() else False, 240)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in said
    assert site.statuses() == {FAST: ["ok"] * 2}
    alive = subprocess.run(["pgrep", "-f", f"pacing.switch {site.state}"], capture_output=True, text=True, check=False)
    assert alive.stdout == ""


def test_a_killed_run_s_command_ends_with_it(site: Site) -> None:
    site.write("hang", FAST)
    process = site.start()
    until(lambda: (site.state / "switches").exists(), 240)
    process.kill()
    process.communicate()
    find = ["pgrep", "-f", f"pacing.switch {site.state}"]
    until(lambda: subprocess.run(find, capture_output=True, check=False).returncode == 1, 5)


def test_two_runs_do_not_share_a_folder(site: Site) -> None:
    site.write("hang", FAST)
    process = site.start()
    until(lambda: (site.state / "switches").exists(), 240)
    site.run(code=2)
    assert f"process {process.pid}" in site.said and "in-use" in site.said
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def test_what_is_known_to_crash_is_listed_and_run_only_when_asked_for(site: Site) -> None:
    site.write(FAST)
    site.spec.write_text(
        site.spec.read_text()
        .replace("redhatai--qwen3.6-35b-a3b-nvfp4", "nvidia--nemotron-3-ultra-550b-a55b-nvfp4")
        .replace("launch.mem_fraction_static: [0.8, 0.85]", "launch.attention_backend: [flashinfer, triton]")
        .replace(FAST, "rate=6/ttft=0.05/tokens=12")
    )
    told = site.run()
    assert told["counts"] == {"ok": 1, "skipped": 1} and len(site.switches()) == 1
    assert "nemotronh-triton-attention" in Path(told["files"][0]).read_text().split("## Skipped")[1]
    assert site.run("--try-known-bad")["counts"] == {"ok": 2} and len(site.switches()) == 2
    assert site.run("--again", "ok")["counts"] == {"ok": 2} and len(site.switches()) == 3


def test_a_cell_is_a_profile_that_people_can_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec_path = tmp_path / "small.yml"
    spec_path.write_text(SPEC.format(pacing=FAST))
    spec, text = specs.load(spec_path)
    chosen = specs.cells(spec, text)[1]
    name = cell.write_profile(spec, chosen, tmp_path / "profiles")
    monkeypatch.setenv("SPARKLOOM_PROFILES", str(tmp_path / "profiles"))
    made, base = profile.load(name).profile, profile.load(spec.profile).profile
    assert made.env["PACING"] == FAST and made.launch.flags["mem_fraction_static"] == 0.85
    assert made.model == base.model and made.engine == base.engine and not made.evidence
    monkeypatch.delenv("SPARKLOOM_PROFILES")
    with pytest.raises(InputError, match="no such profile"):
        profile.load(name)


def test_a_site_that_cannot_serve_ends_the_run_and_is_no_cell_s_status(tmp_path: Path) -> None:
    """The real playbook, on machines that do not exist."""
    inventories.own(tmp_path, "nowhere")
    hosts = tmp_path / "nowhere" / "hosts.yml"
    hosts.write_text(re.sub(r"spark(\d)\.local", r"spark\1.invalid", hosts.read_text()))
    spec = tmp_path / "small.yml"
    spec.write_text(
        SPEC.format(pacing=FAST).replace("switch_seconds: 8", "switch_seconds: 60") + f"inventory: {hosts.parent}\n"
    )
    words = [COMMAND, "matrix", str(spec), "run", "--url", "http://127.0.0.1:1", "--logs", ""]
    done = subprocess.run(words, cwd=REPO, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2 and "switch.log says why" in done.stderr and "[site]" in done.stderr, done.stderr
    assert not list((tmp_path / "small").glob("*.json"))
    assert "spark1.invalid" in next((tmp_path / "small").glob("*/switch.log")).read_text()


TASKS = """TASK [preflight : Read the machine, its memory, disks and ports] ***
fatal: [spark1]: UNREACHABLE! =>
TASK [{first}] ****************
fatal: [spark1]: FAILED! =>
    msg: no
TASK [model_serving : Keep the logs] ****
fatal: [spark2]: FAILED! =>
"""


@pytest.mark.parametrize(
    ("task", "fault", "status"),
    [
        ("preflight : Judge all nodes together", "site", None),
        ("model_store : Bring the weights", "site", None),
        ("preflight : Judge the profile on this site", "refused", "skipped"),
        ("model_serving : Wait for the ranks", "cell", "startup_crash"),
        ("Say something", "cell", "startup_crash"),
    ],
)
def test_whose_fault_a_failed_switch_is(task: str, fault: str, status: str | None) -> None:
    said = TASKS.format(first=task)
    assert verdict.at_fault(said) == fault
    found = verdict.start(2, 1.0, said)
    assert found is not None and (status is None or found.status == status)
    assert verdict.at_fault("no playbook at all") == "cell"


def level(n: int, ok: int | None = None, **more: Any) -> dict[str, Any]:
    return {"concurrency": n, "requests": n, "ok": n if ok is None else ok, "sum_tok_s": 10.0, "errors": {}, **more}


@pytest.mark.parametrize(
    ("levels", "code", "alive", "expected"),
    [
        ([level(1), level(8)], 0, True, "ok"),
        ([level(1), level(8, 7, errors={"stall": 1})], 1, True, "partial"),
        ([level(1), level(8, 7, errors={"cut": 1})], 1, False, "bench_crash"),
        ([level(1), level(8, 0, errors={"cut": 8})], 1, True, "bench_crash"),
        ([level(1), level(8, 0, errors={"stall": 5, "no-token": 3})], 1, True, "hang"),
        ([level(1), level(8, 0, errors={"stall": 5, "cut": 3})], 1, True, "bench_crash"),
        ([level(1)], None, True, "hang"),
        ([level(1, guard={"verdict": "garbage", "kind": "loop"}), level(8, 0, errors={"cut": 8})], 1, False, "garbage"),
        ([level(1, sum_tok_s=99.0)], 0, True, "garbage"),
        ([], 2, False, "bench_crash"),
        ([], None, True, "hang"),
    ],
)
def test_what_became_of_a_measurement(levels: list[dict[str, Any]], code: int, alive: bool, expected: str) -> None:
    document = {"levels": levels, "complete": True, "problems": []}
    found = verdict.measured(document, code, alive=alive, bounds={1: 50.0})
    assert found.status == expected and (found.note or expected == "ok")


def test_what_became_of_a_start() -> None:
    assert verdict.start(0, 3.0, "") is None
    assert verdict.start(2, 3.0, "").status == "startup_crash"
    assert verdict.start(None, 3.0, "").status == "hang"
    assert verdict.start(2, 3.0, "rank 2: not ready after 3600 s: loading").status == "hang"


def test_a_playbook_knows_the_cells_by_name(tmp_path: Path) -> None:
    """As `run` calls it: the roles' plugins find a cell's profile where SPARKLOOM_PROFILES says."""
    spec_path, play = tmp_path / "small.yml", tmp_path / "play.yml"
    spec_path.write_text(SPEC.format(pacing=FAST))
    spec, text = specs.load(spec_path)
    name = cell.write_profile(spec, specs.cells(spec, text)[0], tmp_path / "profiles")
    task = {
        "name": "Plan",
        "sparkloom": {"do": "site.plan", "profile": "{{ profile }}", "force": False},
        "run_once": True,
        "register": "found",
    }
    shown = {"name": "Show", "ansible.builtin.debug": {"var": "found.plan.profile"}, "run_once": True}
    play.write_text(json.dumps([{"hosts": "sparks", "gather_facts": False, "tasks": [task, shown]}]))
    words = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "inventories/gb10", str(play)]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "SPARKLOOM_PROFILES": str(tmp_path / "profiles"),
           "ANSIBLE_ACTION_PLUGINS": str(REPO / "plugins" / "action")}  # fmt: skip
    words += ["-e", json.dumps({"profile": name, "example": False})]
    done = subprocess.run(words, cwd=REPO, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and name in done.stdout, done.stdout + done.stderr


def test_progress_says_where_it_is_and_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    clock = [100.0]
    monkeypatch.setattr(run.time, "monotonic", lambda: clock[0])
    cells = [specs.Cell(n, f"c{n}", {"launch.x": n}, ("a-rule",) if n == 3 else ()) for n in (1, 2, 3)]
    progress = run.GridProgress(said.append, live=False)
    progress.plan(cells, cells[:2], [])
    progress.cell(cells[0])
    for _ in range(4):
        progress.tick("switching: TASK [a]", clock[0] - 100)
        clock[0] += 20
    progress.done(specs.CellResult(id="c1", profile="p", settings={}, status="hang", note="silent", seconds=80))
    progress.cell(cells[1])
    progress.tick("switching: TASK [b]", 0)
    assert said == [
        "3 cells: 0 done, 1 skipped as known to fail, 2 to run\n",
        "cell 1 of 3 (x 1)  switching 0:00\n",
        "cell 1 of 3 (x 1)  switching 1:00\n",
        "cell 1 of 3 (x 1)  hang in 1:20: silent\n",
        "cell 2 of 3 (x 2)  switching 0:00, about 1:20 left\n",
    ]
    live = run.GridProgress(said.append, live=True)
    live.plan(cells, cells[:2], [80.0])
    live.cell(cells[0])
    live.tick("measuring: n=8  3 of 8 done", 30)
    assert said[-1].startswith("\r\x1b[2K") and "n=8  3 of 8 done" in said[-1] and "about 2:40 left" in said[-1]
