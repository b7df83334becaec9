"""The memory guard against a made-up /proc, log folder and control groups, with real processes to kill."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from sparkloom.onnode import memory_guard

UID = "11111111-2222-3333-4444-555555555555"
POD = "ultra-rank2-0"


@pytest.fixture
def guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = memory_guard
    for place in ("PROC", "LOGS", "CGROUPS"):
        folder = tmp_path / place.lower()
        folder.mkdir()
        monkeypatch.setattr(module, place, folder)
    monkeypatch.setattr(module, "KEPT", tmp_path / "run/memory-guard.json")
    (tmp_path / "proc/sys/vm").mkdir(parents=True)
    return module


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    running = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    yield running
    for process in running:
        process.kill()
        process.wait()


def memory(guard: ModuleType, *, available: float, free: float = 50, cached: float = 2) -> None:
    rows = {"MemTotal": 121.6, "MemAvailable": available, "MemFree": free, "Cached": cached, "Shmem": 0.5, "Mapped": 1}
    text = "".join(f"{name}:  {int(gib * 2**20)} kB\n" for name, gib in rows.items())
    (guard.PROC / "meminfo").write_text(text)


def start(
    guard: ModuleType, pod: str = POD, namespace: str = "sparkloom", container: str = "engine", n: int = 0
) -> None:
    folder = guard.LOGS / f"{namespace}_{pod}_{UID}" / container
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{n}.log").write_text("")


def group(guard: ModuleType, place: str, processes: list[subprocess.Popen[bytes]], *names: str) -> None:
    folder = guard.CGROUPS / place
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text("".join(f"{process.pid}\n" for process in processes))
    for process, name in zip(processes, names, strict=True):
        folder = guard.PROC / str(process.pid)
        (folder / "root/tmp/sparkloom").mkdir(parents=True)
        first = name in ("pause", "supervisor")
        (folder / "status").write_text(f"Name:\t{name}\nNSpid:\t{process.pid}\t{1 if first else process.pid}\n")


def made(guard: ModuleType) -> object:
    memory(guard, available=100)
    return guard.Guard({"floor_gib": 8, "namespace": "sparkloom", "container": "engine"})


@pytest.mark.parametrize(
    "place",
    [
        f"kubepods/besteffort/pod{UID}/abc",
        f"kubelet.slice/kubepods.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice/cri-abc.scope",
    ],
)
def test_below_the_floor_twice_the_engine_dies_and_its_sandbox_lives(
    guard: ModuleType, processes: list[subprocess.Popen[bytes]], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    start(guard)
    group(guard, place, processes[:2], "pause", "sglang::schedul")
    subject = made(guard)
    memory(guard, available=7.5)
    subject.look(0)
    assert processes[1].poll() is None, "one reading is not enough"
    subject.look(1)
    assert processes[1].wait(5) == -9 and processes[0].poll() is None
    assert "7.5 GiB available, the floor is 8: killing the engine of ultra-rank2-0" in capsys.readouterr().out
    assert json.loads(guard.KEPT.read_text())["killed"] == [POD]


def test_a_supervisor_lives_and_is_told_of_what_its_engine_died(
    guard: ModuleType, processes: list[subprocess.Popen[bytes]]
) -> None:
    """It was killed too: its restart was nobody's failure, and no figure was left in the pod."""
    start(guard)
    group(guard, f"pod{UID}/a", processes, "supervisor", "python3", "sglang::schedul")
    subject = made(guard)
    memory(guard, available=7.5)
    subject.look(0), subject.look(1)
    assert [process.wait(5) for process in processes[1:]] == [-9, -9] and processes[0].poll() is None
    file = guard.PROC / str(processes[0].pid) / "root/tmp/sparkloom/memory-guard.json"
    assert json.loads(file.read_text())["found"] == "7.5 GiB available, the floor is 8"


@pytest.mark.parametrize("where", ["root/tmp/sparkloom", "root/tmp/sparkloom/memory-guard.json"])
def test_no_link_of_an_engine_leads_root_out_of_its_pod(
    guard: ModuleType, processes: list[subprocess.Popen[bytes]], tmp_path: Path, where: str
) -> None:
    start(guard)
    group(guard, f"pod{UID}/a", processes[:2], "supervisor", "python3")
    place, victim = guard.PROC / str(processes[0].pid) / where, tmp_path / "of-the-node"
    if place.is_dir():
        place.rmdir()
        victim.mkdir()
    else:
        victim.write_text("as it was")
    place.symlink_to(victim)
    subject = made(guard)
    memory(guard, available=1)
    subject.look(0), subject.look(1)
    assert processes[1].wait(5) == -9
    assert (list(victim.iterdir()) if victim.is_dir() else victim.read_text()) in ([], "as it was")


def test_a_supervisor_without_an_engine_is_no_engine(
    guard: ModuleType, processes: list[subprocess.Popen[bytes]], capsys: pytest.CaptureFixture[str]
) -> None:
    start(guard)
    group(guard, f"pod{UID}/a", processes[:1], "supervisor")
    subject = made(guard)
    memory(guard, available=1)
    subject.look(0), subject.look(1)
    assert processes[0].poll() is None and "no engine is here: nothing is done" in capsys.readouterr().out


def test_it_waits_after_a_kill_until_the_memory_can_be_back(
    guard: ModuleType, processes: list[subprocess.Popen[bytes]]
) -> None:
    start(guard)
    group(guard, f"pod{UID}/a", processes[:1], "python3")
    subject = made(guard)
    memory(guard, available=1)
    subject.look(0), subject.look(1)
    assert processes[0].wait(5) == -9
    group(guard, f"pod{UID}/b", processes[1:2], "python3")
    subject.look(2)
    assert processes[1].poll() is None
    subject.look(1 + guard.AFTER_KILL_SECONDS)
    assert processes[1].wait(5) == -9


def test_nothing_else_is_touched(
    guard: ModuleType, processes: list[subprocess.Popen[bytes]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Another namespace's pod, and another container of ours."""
    start(guard, namespace="default")
    start(guard, pod="other", container="helper")
    group(guard, f"pod{UID}/a", processes, "a", "b", "c")
    subject = made(guard)
    memory(guard, available=0.5)
    for second in range(4):
        subject.look(second)
    assert all(process.poll() is None for process in processes)
    assert capsys.readouterr().out.count("no engine is here: nothing is done") == 1


def test_above_the_floor_nothing_happens(guard: ModuleType, processes: list[subprocess.Popen[bytes]]) -> None:
    start(guard)
    group(guard, f"pod{UID}/a", processes[:1], "python3")
    subject = made(guard)
    for second, available in enumerate((7.9, 8.1, 7.9, 8.0)):
        memory(guard, available=available)
        subject.look(second)
    assert processes[0].poll() is None


def dropped(guard: ModuleType) -> bool:
    path = guard.PROC / "sys/vm/drop_caches"
    found = path.exists()
    path.unlink(missing_ok=True)
    return found


def test_an_engine_that_starts_gets_the_page_cache(guard: ModuleType) -> None:
    start(guard)
    subject = made(guard)
    subject.look(0)
    assert not dropped(guard), "it ran before the guard did"
    start(guard, n=1)
    subject.look(1)
    assert dropped(guard), "a restarted container loads again"
    subject.look(2)
    assert not dropped(guard)


def test_the_cache_is_dropped_while_loading_when_free_memory_runs_out(
    guard: ModuleType, processes: list[subprocess.Popen[bytes]]
) -> None:
    start(guard)
    group(guard, f"pod{UID}/a", processes[:1], "python3")
    subject = made(guard)
    memory(guard, available=60, free=5, cached=55)
    subject.look(0)
    assert dropped(guard)
    subject.look(1)
    assert not dropped(guard), "not at every reading"
    subject.look(guard.BETWEEN_DROPS_SECONDS)
    assert dropped(guard)
    memory(guard, available=60, free=5, cached=9)
    subject.look(40)
    assert not dropped(guard), "less than the floor is in the cache, the rest is mapped or shared"
    assert processes[0].poll() is None


def test_without_an_engine_a_full_cache_is_nobodys_trouble(guard: ModuleType) -> None:
    subject = made(guard)
    memory(guard, available=60, free=5, cached=55)
    subject.look(0)
    assert not dropped(guard)
