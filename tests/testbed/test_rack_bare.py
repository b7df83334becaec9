"""What the rack does on a machine that lacks things: a Go toolchain, programs, space; and what it leaves behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.base import locks, machine, names, steps, store
from testbed.base.shell import RackError, run
from testbed.beds.rack import cgroups, down, tidy
from testbed.make import golang

SAID: list[str] = []


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(names, "CACHE", tmp_path)
    monkeypatch.setattr(golang, "ROOT", tmp_path / "go")
    SAID.clear()
    return tmp_path


def fake_go(place: Path, answer: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\necho 'go version {answer} linux/amd64'\n")
    place.chmod(0o755)
    return place


@pytest.mark.parametrize(("answer", "known"), [("go1.19.8", (1, 19)), ("go1.26.8", (1, 26)), ("devel", (0, 0))])
def test_version_of_a_go(tmp_path: Path, answer: str, known: tuple[int, int]) -> None:
    assert golang.version(fake_go(tmp_path / "go", answer)) == known


def test_an_old_go_is_passed_over_for_the_one_that_was_fetched(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = fake_go(cache / "old/bin/go", "go1.19.8")
    monkeypatch.setattr(golang.shutil, "which", lambda name: str(old))
    monkeypatch.setattr(golang, "PLACES", ())
    assert golang.found() is None
    fetched = fake_go(golang._kept(), "go1.26.8")
    assert golang.found() == fetched


def test_the_fetch_asks_the_old_go_from_a_module_outside_gopath(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go 1.19 ends with `$GOPATH/go.mod exists but should not` when the two are one."""
    old = fake_go(cache / "old/bin/go", "go1.19.8")
    monkeypatch.setattr(golang.shutil, "which", lambda name: str(old))
    monkeypatch.setattr(golang.machine, "require_root", lambda: None)

    def run(argv: list[object], **options: object) -> subprocess.CompletedProcess[str]:
        if "download" not in argv:
            return subprocess.CompletedProcess([], 0, "go version go1.26.8 linux/amd64", "")
        env, here = options["env"], options["cwd"]
        assert isinstance(env, dict) and isinstance(here, Path)
        assert (here / "go.mod").exists() and not (Path(env["GOPATH"]) / "go.mod").exists()
        assert "GOPROXY" not in env  # the machine's own, from its environment or Go's default
        tree = Path(env["GOPATH"]) / "pkg/mod" / str(argv[-1])
        fake_go(tree / "bin/go", "go1.26.8").chmod(0o644)  # as an old Go unpacks it
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(golang, "run", run)
    assert golang._fetch(SAID.append).stat().st_mode & 0o111
    assert not (golang.ROOT / "toolchain").exists()


def test_caches_go_when_all_is_built_unless_someone_wants_them(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(golang.KEEP, raising=False)
    last = golang.steps_around([])[-1]
    assert last.done() is True
    golang.begin("kind")
    assert golang.begun("kind") and not golang.begun("etcd")
    assert last.done() is False
    monkeypatch.setenv(golang.KEEP, "1")
    assert golang.KEEP in str(last.done())
    last.act(SAID.append)
    assert not golang.ROOT.exists() and not golang.begun("kind")


def test_no_go_is_looked_for_when_nothing_is_to_be_built(cache: Path) -> None:
    first = golang.steps_around([])[0]
    assert first.done() == "not needed: everything is built"
    undone = steps.Step("x", "builds x", lambda: False, lambda say: None)
    assert golang.steps_around([undone])[0].done() is False


def test_missing_programs_are_named_by_their_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine.shutil, "which", lambda name: None if name in ("ip", "iptables-save") else "/bin/x")
    monkeypatch.setattr(machine, "CERTIFICATES", tmp_path / "none")
    assert machine._lacking() == ["iproute2", "iptables", "ca-certificates"]
    asked: list[list[str]] = []
    monkeypatch.setattr(machine, "apt_install", lambda packages, say: asked.append(packages))
    step = machine.steps()[0]
    assert step.done() is False
    step.act(SAID.append)
    assert asked == [["iproute2", "iptables", "ca-certificates"]]


def test_an_install_that_fails_is_mended_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.append(" ".join(argv))
        return subprocess.CompletedProcess(argv, int(len(seen) == 1), "", "")

    monkeypatch.setattr(machine, "run", run)
    monkeypatch.setattr(machine, "_installed", lambda package: package == "there")
    machine.apt_install(["there", "absent"], SAID.append)
    assert [line.split()[0] for line in seen] == ["apt-get", "dpkg", "apt-get", "apt-get"]
    assert "there" not in seen[0] and seen[0].endswith("absent") and "Lock::Timeout" in seen[0]


def test_too_little_space_is_refused_before_the_work(cache: Path) -> None:
    with pytest.raises(RackError, match=r"found \d+ GiB free in .*, expected 9999999 for tests; make room"):
        machine.require_space(cache, 9999999, "tests")
    machine.require_space(cache / "new", 0, "tests")


def test_prune_takes_old_builds_and_nothing_else(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    current = cache / f"kind-{'a' * 12}"
    monkeypatch.setattr(tidy, "_needed", lambda: {current})
    old, half, other = cache / f"kind-{'b' * 12}", cache / f".kind-{'c' * 12}.part", cache / f"vm-kind-{'d' * 12}"
    for folder in (current, old, half, other, golang.ROOT):
        folder.mkdir()
        (folder / "file").write_text("x" * 100)
    removed = tidy.prune()
    assert set(removed) == {old, half, golang.ROOT}
    assert all(size >= 100 for size in removed.values())
    assert current.exists() and other.exists()


def test_halves_of_builds_that_were_killed_go_with_the_next_one(cache: Path) -> None:
    half = cache / f".kind-{'b' * 12}.part"
    half.mkdir()
    with store.building("kind", "a" * 12) as work:
        (work / "file").write_text("x")
    assert not half.exists()


def test_the_count_before_the_first_up_is_kept_until_down(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(down, "BASELINE", cache / "baseline.json")
    monkeypatch.setattr(down, "counts", lambda: {"veths": 3})
    monkeypatch.setattr(down.docker, "containers", dict)
    step = down.steps()[0]
    assert step.done() is False
    step.act(SAID.append)
    assert down.baseline() == {"veths": 3} and step.done() is True
    down.BASELINE.unlink()
    monkeypatch.setattr(down.docker, "containers", lambda: {"node": "running"})
    assert step.done() == "a rack is there"  # too late to count what was there before it


def test_racks_do_not_wait_for_each_other_and_see_each_other(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "CLUSTER", "one")
    with locks.rack():
        assert not locks.others_at_work()
        monkeypatch.setattr(names, "CLUSTER", "two")
        assert locks.others_at_work()
        with locks.rack(), locks.shared():
            pass
    assert not locks.others_at_work()


def test_long_work_ends_with_the_command_that_was_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f"from pathlib import Path; from testbed.base.shell import run; run(['sleep', '61'], log=Path('{log}'))"
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=names.REPO)
    wait_for(lambda: child_of(parent.pid) is not None)
    child = child_of(parent.pid)
    parent.kill()
    parent.wait()
    wait_for(lambda: ended(child))


def ended(pid: int | None) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def child_of(pid: int) -> int | None:
    """The program that this process started, once it is what it was meant to be."""
    words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ready = words and Path(f"/proc/{words[0]}/comm").read_text().strip() == "sleep"
    return int(words[0]) if ready else None


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "not in 20 s"
        time.sleep(0.05)


def test_a_program_that_is_missing_is_named_with_a_log_too(tmp_path: Path) -> None:
    with pytest.raises(RackError, match="`no-such-program` was not found"):
        run(["no-such-program"], log=tmp_path / "log")


def test_control_groups_that_nobody_mounted_are_found() -> None:
    kernel = "#subsys_name hierarchy num_cgroups enabled\ncpu 1 5 1\nnet_cls 0 1 1\nnet_prio 0 1 1\n"
    kernel += "hugetlb 0 1 1\nrdma 0 1 0\n"
    mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\ntmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
    assert cgroups.missing(kernel, mounts) == ["hugetlb", "net_cls,net_prio"]
    half = mounts + "cgroup /sys/fs/cgroup/net_prio cgroup rw,net_prio 0 0\n"
    assert cgroups.missing(kernel, half) == ["net_cls", "hugetlb"]
