"""The supervisor's parts alone: weights, budget, named causes, NCCL's words, and that Python 3.10 is enough."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom.judge import rules
from sparkloom.launch import engines
from sparkloom.onnode.rank import causes, kernels, procs, tokens, watch_engine
from sparkloom.onnode.rank.budget import RestartBudget
from sparkloom.onnode.rank.plan import GUARD_FILE, GroupPlan
from sparkloom.onnode.rank.transport import Transport
from sparkloom.onnode.weights import check
from sparkloom.onnode.weights.layout import Entry, Snapshot, Store
from sparkloom.render import pack
from tests.onnode.rank.ranks import REPO, python

MODEL, COMMIT = "org/model", "a" * 40
NCCL = REPO / "tests/data/nccl"


def of(**changes: Any) -> GroupPlan:
    data = {"profile": "p", "engine": "sglang", "release": "0", "image": "i", "port": 1, "members": []}
    return GroupPlan.of({**data, **changes})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path)
    content = b"weights"
    digest = hashlib.sha256(content).hexdigest()
    entry = Entry("model-00001.safetensors", len(content), digest, digest)
    made.blob(MODEL, entry).parent.mkdir(parents=True)
    made.blob(MODEL, entry).write_bytes(content)
    made.publish(Snapshot(MODEL, COMMIT, (entry,)))
    return made


def fault(store: Store, revision: str | None = None) -> str:
    faults = check.unverified(str(store.root), [{"id": MODEL, "revision": revision}])
    return faults[0] if faults else ""


def test_verified_weights_are_right(store: Store) -> None:
    assert fault(store) == fault(store, COMMIT) == ""


def test_wrong_weights_are_named(store: Store) -> None:
    (blob,) = store.repository(MODEL).glob("blobs/*")
    assert "no verified weights of org/model at bbbb" in fault(store, "b" * 40)
    os.utime(blob, ns=(1, 1))
    assert "model-00001.safetensors was changed after it was verified; run playbooks/models.yml" in fault(store)
    blob.write_bytes(b"weigh")
    assert "has 5 bytes, expected 7" in fault(store)
    blob.unlink()
    assert "model-00001.safetensors is missing" in fault(store)
    shutil.rmtree(store.root / "manifests")
    assert f"no verified weights of org/model at {COMMIT}" in fault(store)


def test_a_link_that_leads_elsewhere_is_named(store: Store) -> None:
    link = store.snapshot(MODEL, COMMIT) / "model-00001.safetensors"
    link.unlink()
    link.write_text("other")
    assert "its link does not lead to the verified file" in fault(store)


def test_a_budget_counts_within_its_window_and_is_learned() -> None:
    now = [0.0]
    budget = RestartBudget(2, 100, lambda: now[0])
    assert budget.failed() and budget.pause() == 0
    assert budget.failed() and budget.pause() == 2
    now[0] = 50
    other = RestartBudget(2, 100, lambda: now[0] + 1000)
    other.learn(budget.ages())
    assert not other.failed()
    budget.token()
    now[0] = 120
    assert budget.failed() and len(budget.recent()) == 1


def test_a_row_without_a_token_is_counted_however_far_apart() -> None:
    """Five in 600 s never came together where one load takes 490 s."""
    now = [0.0]
    budget = RestartBudget(5, 600, lambda: now[0])
    for _ in range(5):
        now[0] += 490
        assert budget.failed("rank 1 on spark2: the engine ended with status 7; mem-too-low: X 81.3 GiB; fix: raise it")
    now[0] += 490
    assert budget.again() == 5 and not budget.failed("boom") and "6 times in a row without a token" in budget.spent()
    budget.token()
    now[0] += 490
    assert budget.failed("boom") and budget.again() == 1


def test_a_new_rank_0_learns_the_row() -> None:
    budget, other = RestartBudget(2, 100), RestartBudget(2, 100)
    assert budget.failed("a") and budget.failed("a")
    other.learn(budget.ages(), budget.row)
    assert not other.failed("a") and other.again() == 3


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            "rank 1 on spark2: the engine was ended by SIGSEGV; x at 0x7f12",
            "the engine was ended by SIGSEGV; x at 0x7e",
            1,
        ),
        ("rank 0 on spark1: the engine ended with status 1; a-rule: one", "rank 3 on b: ...; a-rule: other", 1),
        ("the engine ended with status 1; ValueError: no", "the engine ended with status 1; KeyError: no", 0),
    ],
)
def test_two_failures_are_the_same_but_for_rank_and_numbers(one: str, other: str, same: bool) -> None:
    assert (causes.kind(one) == causes.kind(other)) == bool(same)


SGLANG = """# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",tp_rank="0"} 2.0
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 1.0
sglang:realtime_tokens_total{mode="prefill_compute"} 8192.0
sglang:realtime_tokens_total{mode="decode"} 12.0 1763800000000
sglang:num_running_reqs_offline_batch 9.0
"""
REQUESTS, MOVES = ("sglang:num_running_reqs", "sglang:num_queue_reqs"), ("sglang:realtime_tokens_total",)


@pytest.mark.parametrize(
    ("page", "seen"),
    [
        (SGLANG, (3.0, (8204.0,))),
        ("", None), ("<html>", None), ("{}", None), ("[]", None), ("[3]", None), ("[{}]", (0.0, (0.0,))),
        ('[{"iter": 7}, {"iter": 8, "numActiveRequests": 2, "numQueuedRequests": 1}]', (3.0, (8.0,))),
        ("sglang:num_running_reqs NaN-ish", None),
    ],
)  # fmt: skip
def test_counters_are_read_from_each_engine_s_page(page: str, seen: Any) -> None:
    assert tokens.numbers(page, REQUESTS, MOVES) == seen


def test_every_engine_s_counters_are_names_that_its_stand_in_or_code_has() -> None:
    for name in ("sglang", "vllm"):
        requests, moves = engines.counters(name)
        assert (
            len(requests) == 2
            and len(moves) >= 3
            and all(entry.startswith(f"{name}:") for entry in (*requests, *moves))
        )
    assert engines.counters("trtllm") == ((), ())


def test_a_request_that_is_let_in_is_no_progress_of_a_frozen_engine() -> None:
    """Clients that retry moved the KV cache's gauges of SGLang: a frozen rank was called serving for 250 s."""
    requests, moves = engines.counters("sglang")
    now = [0.0]
    progress = tokens.Progress(of(requests=list(requests), moves=list(moves)), clock=lambda: now[0])
    while not (quiet := progress.silent(lambda: 9)):
        now[0] += 10
        used = now[0] * 7 % 50
        progress.page(f"sglang:num_running_reqs 2\nsglang:num_queue_reqs {used}\nsglang:realtime_tokens_total 900\n"
                      f"sglang:num_used_tokens {used}\nsglang:token_usage {used / 1000}\n")  # fmt: skip
        assert now[0] <= 110
    assert quiet <= 110


def test_compilers_that_work_are_progress_and_hung_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [procs.Process(7, 1, "R", 3, "cicc --arch sm_121a", 10), procs.Process(8, 1, "S", 3, "python3 x", 10)]
    monkeypatch.setattr(procs, "below", lambda pid: found)
    looked = kernels.Kernels(str(tmp_path))
    assert looked.cold and looked.look() == "compiling kernels, 1 compilers run"
    assert looked.look() == ""
    (tmp_path / "triton" / "abc").mkdir(parents=True)
    os.utime(tmp_path / "triton", ns=(2**62, 2**62))
    assert looked.look() == "compiling kernels" and not looked.cold


@pytest.mark.parametrize("rule", [r for r in rules.every() if r.log_pattern], ids=lambda rule: rule.id)
def test_every_rule_s_pattern_works_as_it_is_shipped(rule: rules.Rule) -> None:
    """The patterns travel as text, so they may use nothing that text loses."""
    assert re.compile(json.loads(json.dumps(str(rule.log_pattern))))


def test_the_cause_is_the_rule_s_or_the_most_telling_line() -> None:
    pattern = {"rule": "r", "severity": "error", "pattern": "mem-fraction", "why": "w", "fix": "raise it"}
    lines = ["[2026-06-01 10:00:00 TP0] loading", "RuntimeError: increase --mem-fraction-static", "bye"]
    assert causes.named(lines, [pattern]) == "r: RuntimeError: increase --mem-fraction-static; fix: raise it"
    assert causes.named(["fine", "ValueError: no such thing", "bye"], [pattern]) == "ValueError: no such thing"
    assert causes.named(["all is well"], []) == ""


def test_what_a_scheduler_said_is_the_cause_and_not_that_its_server_then_killed_itself() -> None:
    """SGLang's order of lines; the class has its module before it, as torch's have."""
    lines = [
        "[2026-11-24 02:13:25 TP1 EP1] Scheduler hit an exception: Traceback (most recent call last):",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp, remote process exited or there was a "
        "network error: ncclRemoteError: connection to rank 0 closed",
        "[2026-11-24 02:13:25] SIGQUIT received. signum=3, frame=None. It usually means one child failed.",
        "[2026-11-24 02:13:25] kill_process_tree called: parent_pid=24, include_parent=True, pid=24",
    ]
    assert causes.named(lines, []).startswith("torch.distributed.DistBackendError: NCCL error")


def test_a_line_of_all_settings_is_no_cause() -> None:
    """SGLang 0.5.23 on four nodes, 2026-11-24: 'room' and 'timeout' among its settings outweighed its only error."""
    settings = (
        "'stream_interval': 1, 'headroom': 'zoom', 'timeout': None, 'dist_timeout': None, 'watchdog_timeout': 300"
    )
    lines = [
        f"[2026-11-24 02:50:30] server_args={{'model_path': 'sparkloom-testbed/tiny-moe', {settings}}}",
        "[2026-11-24 02:51:00 TP1 EP1] Scheduler hit an exception: Traceback (most recent call last):",
        "RuntimeError: index -1 is out of bounds for dimension 1 with size 8",
        "[2026-11-24 02:51:00] Received sigquit from a child process. It usually means the child failed.",
    ]
    assert causes.named(lines, []) == "RuntimeError: index -1 is out of bounds for dimension 1 with size 8"


def test_an_engine_that_killed_itself_was_killed_by_nobody_else() -> None:
    """SGLang 0.5.23's last lines after a failed scheduler; before, a person looked for who was out of memory."""
    words = [
        "RuntimeError: Unexpected error running 'lscpu': [Errno 2] No such file or directory: 'lscpu'",
        "[2026-11-23 19:36:24] Received sigquit from a child process. It usually means the child failed.",
        "[2026-11-23 19:36:24] kill_process_tree called: parent_pid=24, include_parent=True, pid=24",
    ]
    assert procs.described(-9, words) == "ended itself"
    assert "out of memory" in procs.described(-9, words[:1])
    assert procs.described(1, words) == "ended with status 1"


@pytest.mark.parametrize(
    "words",
    [  # engine.py's handler while it loads, tokenizer_manager.py's once it serves: 0.5.9 to 0.5.23 alike
        "Received sigquit from a child process. It usually means the child failed.",
        "SIGQUIT received. signum=<Signals.SIGQUIT: 3>, frame=None. It usually means one child failed.",
    ],
)
def test_it_says_so_in_other_words_while_it_serves(words: str) -> None:
    assert procs.described(-9, [f"[2026-11-24 01:00:00] {words}"]) == "ended itself"


@pytest.mark.parametrize("log", sorted(NCCL.rglob("*.log")), ids=lambda path: path.name)
def test_a_log_is_refused_while_it_comes_only_when_the_whole_of_it_is_not_roce(log: Path) -> None:
    judged, early = Transport(2, 2), ""
    for number, line in enumerate(log.read_text(errors="replace").splitlines()):
        judged.hear(line)
        early = early or (judged.refusal() if number % 7 == 0 else "")
    verdict, last = judged.report().verdict, judged.refusal()
    assert not early or verdict in ("socket", "roce-partial", "failed"), early
    assert bool(last) == (verdict == "socket") or verdict == "roce-partial"


@pytest.mark.parametrize(("release", "refused"), [("2.27", True), ("2.30", False)])
def test_an_nccl_that_cannot_serve_a_ring_is_refused_by_its_own_first_words(release: str, refused: bool) -> None:
    """Red before: nothing was known of rings, and ibv_modify_qp waits for minutes. 2.30 there is 2.30.7."""
    told, judged = [], Transport(2, 3, "2.30.7")
    for line in (NCCL / f"standin/roce-two-rails-{release}.log").read_text().splitlines():
        judged.hear(line)
        told += [judged.refusal()]
    early = next((text for text in told[:40] if text), "")
    assert ("three ranks in a ring (fabric.ring) need 2.30.7" in early) == refused
    assert bool(judged.refusal()) == bool(judged.final()) == refused
    assert bool(Transport(2, 3).refusal()) is False


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_it_needs_nothing_but_python(version: str, tmp_path: Path) -> None:
    """In an engine's image there is Python and what the ConfigMap brings; nothing of this repository's venv."""
    interpreter = python(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} on this machine")
    archive = tmp_path / "rank"
    archive.write_bytes(pack.program("rank").archive)
    files = [name for name in zipfile.ZipFile(archive).namelist() if name.endswith(".py") and name != "__main__.py"]
    modules = [name[:-3].replace("/", ".") for name in files]
    code = f"import importlib, sys; [importlib.import_module(m.removesuffix('.__init__')) for m in {modules}]"
    code += "; assert not [m for m in sys.modules if m.startswith(('yaml', 'pydantic', 'packaging', 'ansible'))]"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(archive)}
    subprocess.run([interpreter, "-S", "-W", "error", "-c", code], env=environment, check=True, cwd=tmp_path)
    done = subprocess.run([interpreter, str(archive), "status"], env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "is no plan of a group" in done.stdout, done.stderr


def test_what_the_memory_guard_ended_is_not_explained_by_the_engine_s_own_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen on a GPU: a line about an optional kernel stood behind the guard's figures as if it were the cause."""
    monkeypatch.setattr(watch_engine, "LAST_LINES", 0)
    (tmp_path / GUARD_FILE).write_text(json.dumps({"when": 2.0, "found": "7.5 GiB available"}))
    watch: Any = SimpleNamespace(plan=SimpleNamespace(run=str(tmp_path), patterns=[]), begun_at=1.0)
    engine: Any = SimpleNamespace(code=-9, tail=["Ignore import error: Can not import FA3 in sgl_kernel"])
    said = asyncio.run(watch_engine.Watch._why(watch, engine))
    assert said == "the engine was ended by the node's memory guard: 7.5 GiB available"
