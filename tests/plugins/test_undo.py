"""A node goes back to where it was by its own records; what another part still needs is not pulled from under it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.host import backup, kernel
from tests.plugins.loading import module

undo = module("undo")


class Done(Exception):
    pass


class Run:
    def __init__(self, check: bool = False, **params: Any) -> None:
        self.params = {"records": True, "first": {}, "remove": [], "empty": [], **params}
        self.check_mode, self.asked, self.result = check, [], {}

    def run_command(self, argv: list[str], check_rc: bool = False) -> tuple[int, str, str]:
        self.asked.append(" ".join(argv))
        return 0, "", ""

    def exit_json(self, **result: Any) -> None:
        self.result = result
        raise Done

    def fail_json(self, **result: Any) -> None:
        self.exit_json(failed=True, **result)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(backup, "FOLDER", tmp_path / "var/origin")
    monkeypatch.setattr(kernel, "PROC", tmp_path / "proc")
    monkeypatch.setattr(undo, "UNITS", tmp_path / "etc/systemd/system")
    (tmp_path / "proc/vm").mkdir(parents=True)
    (tmp_path / "proc/vm/swappiness").write_text("60\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    backup.keep_file(path)
    backup.write(path, text, 0o644)


def run(monkeypatch: pytest.MonkeyPatch, **params: Any) -> Run:
    made = Run(**params)
    with pytest.raises(Done):
        undo.main(made, **made.params)
    return made


def snapshot(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_everything_remembered_goes_back_units_first(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (node / "etc").mkdir()
    (node / "etc/user.conf").write_text("mine\n")
    before = snapshot(node)
    write(node / "etc/user.conf", "ours\n")
    write(node / "etc/systemd/system/x.service", "[Unit]\n")
    write(node / "etc/systemd/system/y.service.d/z.conf", "[Service]\n")
    backup.save("sysctl", str(node / "etc/sysctl.d/90.conf"), {"vm.swappiness": "60", "vm.gone": "1"})
    (node / "proc/vm/swappiness").write_text("1\n")
    done = run(monkeypatch)
    assert done.result["changed"] and done.result["keys"] == ["vm.swappiness"]
    assert done.asked == ["systemctl disable --now x.service", "systemctl daemon-reload"]
    assert snapshot(node) == before and not (node / "etc/systemd").exists() and not (node / "var/origin").exists()
    assert run(monkeypatch).result["changed"] is False


def test_a_dry_run_names_all_and_changes_nothing(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(node / "etc/new.conf", "ours\n")
    (node / "own").mkdir()
    before = snapshot(node)
    done = run(monkeypatch, check=True, remove=[str(node / "own"), str(node / "never")])
    assert done.result["paths"] == [str(node / "etc/new.conf"), str(node / "own")]
    assert snapshot(node) == before and (node / "own").is_dir() and done.asked == []


def test_what_another_part_still_needs_is_refused_by_name(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(node / "etc/new.conf", "ours\n")
    backup.save("links", "/etc/netplan/60-sparkloom.yaml", {})
    done = run(monkeypatch, first={"links": "-e teardown_fabric=true"})
    assert done.result["failed"] and "/etc/netplan/60-sparkloom.yaml" in done.result["msg"]
    assert "-e teardown_fabric=true" in done.result["msg"] and (node / "etc/new.conf").exists()


def test_folders_of_ours_go_whole_and_a_link_goes_without_its_target(node: Path, monkeypatch) -> None:
    (node / "own/deep").mkdir(parents=True)
    (node / "user").mkdir()
    (node / "link").symlink_to(node / "user")
    run(monkeypatch, records=False, remove=[str(node / "own"), str(node / "link")])
    assert not (node / "own").exists() and not (node / "link").exists() and (node / "user").is_dir()


def test_whoever_only_removes_leaves_every_record_and_setting(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`teardown_serving` takes kernels away; on the old code the rails' settings went back with them, unasked."""
    kept = str(node / "etc/sysctl.d/91-sparkloom-rails.conf")
    backup.save("sysctl", kept, {"vm.swappiness": "60"})
    (node / "proc/vm/swappiness").write_text("1\n")
    (node / "cache").mkdir()
    done = run(monkeypatch, records=False, remove=[str(node / "cache")])
    assert done.result["paths"] == [str(node / "cache")] and done.result["keys"] == []
    assert (node / "proc/vm/swappiness").read_text() == "1\n" and backup.load("sysctl", kept)


def test_a_folder_goes_only_when_nothing_is_in_it(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/b", "c"):
        (node / name).mkdir(parents=True)
    (node / "c/user").write_text("mine\n")
    done = run(monkeypatch, records=False, empty=[str(node / name) for name in ("a/b", "a", "c", "d")])
    assert done.result["paths"] == [str(node / "a/b"), str(node / "a")] and (node / "c/user").exists()


def test_a_killed_write_leaves_nothing_that_the_next_does_not_take_up(node: Path) -> None:
    target = node / "etc/x.conf"
    target.parent.mkdir()
    (node / "etc/.x.conf.sparkloom").write_text("half of a ve")
    backup.write(target, "whole\n", 0o600)
    assert [path.name for path in target.parent.iterdir()] == ["x.conf"] and target.stat().st_mode & 0o777 == 0o600
    assert json.dumps(target.read_text()) == '"whole\\n"'


def test_a_folder_that_goes_with_its_files_need_not_be_removed_too(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = node / "usr/local/lib/sparkloom"
    write(folder / "guard.py", "x")
    assert run(monkeypatch, remove=[str(folder)]).result["changed"] is True
    assert not folder.exists()


def test_nothing_is_removed_while_something_is_mounted_below(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """shutil.rmtree would have gone through it."""
    (node / "cache/somebody").mkdir(parents=True)
    (node / "other").mkdir()
    monkeypatch.setattr(undo, "mounted", lambda folders: [f"{folders[0]}/somebody"])
    done = run(monkeypatch, remove=[str(node / "cache"), str(node / "other")])
    assert done.result["failed"] and f"{node}/cache/somebody mounted below" in done.result["msg"]
    assert (node / "cache/somebody").exists() and (node / "other").exists()
