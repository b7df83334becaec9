"""What was there before the first change comes back byte for byte; what was never changed is left alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom.onnode.host import backup, generated, kernel, links, rollback
from sparkloom.onnode.tasks import main
from tests.plugins.loading import module


class Done(Exception):
    pass


class Run:
    """A module's run without Ansible around it."""

    def __init__(self, **params: Any) -> None:
        self.params, self.check_mode, self.result = params, False, {}

    def exit_json(self, **result: Any) -> None:
        self.result = result
        raise Done

    fail_json = exit_json


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(backup, "FOLDER", tmp_path / "var/origin")
    return backup.FOLDER


def test_a_full_file_system_is_told_by_file_and_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was `OSError: [Errno 28] No space left on device`, and half of the file lay beside it."""

    def fills(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fills)
    path = tmp_path / "etc/x.conf"
    asked = {"do": "files", "params": {"files": [{"path": str(path), "content": "new"}]}}
    answer = main.answer(asked, check_mode=False)
    assert answer["failed"] and answer["msg"].startswith(f"{path}: No space left on device; `df -h {path.parent}`")
    assert list(path.parent.iterdir()) == []


def picture(root: Path) -> dict[str, Any]:
    return {
        str(p.relative_to(root)): (p.stat().st_mode, p.read_bytes() if p.is_file() else None)
        for p in sorted(root.rglob("*"))
    }


def files(root: Path) -> list[dict[str, Any]]:
    names = ("etc/x", "lib/a/b", "lib/a/c")
    return [{"path": str(root / name), "content": "ours\n", "mode": "0644"} for name in names]


def undone(paths: list[Path]) -> dict[str, Any]:
    run = Run()
    with pytest.raises(Done):
        module("undo").main(run, records=True, of=[str(path) for path in paths])
    return dict(run.result)


def test_files_go_back_to_bytes_permissions_and_absence(tmp_path: Path, records: Path) -> None:
    root, tool = tmp_path / "root", module("files")
    (root / "etc").mkdir(parents=True)
    (root / "etc/x").write_bytes(b"a person's own\xff\n")
    (root / "etc/x").chmod(0o640)
    before = picture(root)
    for _ in range(2):
        changed: list[str] = []
        tool.present(Run(), files(root), changed, [], keep=True)
    assert changed == [] and picture(root) != before
    other = root / "etc/of another role"
    backup.keep_file(other)
    paths = [Path(entry["path"]) for entry in files(root)]
    assert sorted(undone(paths)["paths"]) == [str(path) for path in paths]
    assert picture(root) == before and backup.holds_file(other)
    assert not undone(paths)["changed"] and not undone([])["changed"]
    assert undone([other])["changed"] and not records.exists(), "no record is left"


def test_no_folder_stays_whatever_order_its_files_are_named_in(tmp_path: Path) -> None:
    """Two steps of a role write into one folder; its undo names them in an order of its own."""
    root, tool = tmp_path / "root", module("files")
    root.mkdir()
    for entry in files(root):
        tool.present(Run(), [entry], [], [], keep=True)
    undone([Path(files(root)[number]["path"]) for number in (0, 2, 1)])
    assert picture(root) == {}


def test_a_file_that_was_right_before_is_not_ours_to_take(tmp_path: Path) -> None:
    root, tool = tmp_path / "root", module("files")
    (root / "etc").mkdir(parents=True)
    (root / "etc/x").write_text("ours\n")
    (root / "etc/x").chmod(0o644)
    tool.present(Run(), files(root)[:1], [], [], keep=True)
    undone([root / "etc/x"])
    assert (root / "etc/x").read_text() == "ours\n"


def test_kernel_settings_go_back_and_keys_that_have_gone_do_not_matter(tmp_path: Path, monkeypatch) -> None:
    tool, proc, kept = module("sysctl"), tmp_path / "proc", tmp_path / "91.conf"
    monkeypatch.setattr(kernel, "PROC", proc)
    for name, value in (("net/pf/rp_filter", "0"), ("net/vf/rp_filter", "1")):
        (proc / name).parent.mkdir(parents=True)
        (proc / name).write_text(value + "\n")
    tool.remember(kept, {"net.pf.rp_filter": "0", "net.vf.rp_filter": "1"})
    kept.write_text("ours\n")
    for path in proc.rglob("rp_filter"):
        path.write_text("2\n")
    (proc / "net/vf/rp_filter").unlink()
    told = undone([kept])
    assert told["changed"] and told["keys"] == ["net.pf.rp_filter"]
    assert (proc / "net/pf/rp_filter").read_text() == "0\n" and not kept.exists()


# --- netplan --------------------------------------------------------------------------------------------------


class Netplan(Run):
    """Records commands; links never differ."""

    def __init__(self, path: Path, **params: Any) -> None:
        super().__init__(rollback_after=60, expect=[], subnets=[], adopt={}, path=str(path), **params)
        self.asked: list[str] = []

    def run_command(self, argv: list[str], check_rc: bool = False) -> tuple[int, str, str]:
        self.asked.append(" ".join(argv))
        return 0, "[]" if argv[0] == "ip" else "", ""


@pytest.fixture
def netplan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    tool = module("netplan")
    monkeypatch.setattr(rollback, "KEPT", tmp_path / "var/rollback")
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generated.shutil, "which", lambda name: name)
    path = tmp_path / "60-ours.yaml"
    path.write_text("network: {version: 2}\n")
    path.chmod(0o600)
    return SimpleNamespace(tool=tool, path=path)


def test_a_netplan_file_goes_back_and_is_forgotten_once_the_node_answered(netplan: SimpleNamespace, records) -> None:
    run, before = Netplan(netplan.path), netplan.path.read_bytes()
    netplan.tool.remember(run, netplan.path, [])
    backup.write(netplan.path, "ours\n", 0o600)
    with pytest.raises(Done):
        netplan.tool.absent(run, netplan.path)
    assert run.result == {"changed": True} and netplan.path.read_bytes() == before
    armed = next(line for line in run.asked if line.startswith("systemd-run"))
    script = rollback.KEPT.with_name("rollback.sh")
    assert "--on-active=60" in armed and armed.endswith(f"/bin/sh {script}") and ";" not in armed
    kept = str(netplan.path).strip("/").replace("/", "!")
    assert f"cp -p '{rollback.KEPT}/{kept}' {netplan.path};" in script.read_text()
    assert run.asked.index(armed) < run.asked.index("networkctl reload")
    assert records.exists(), "the timer may still put our file back"
    netplan.tool.proven(run, netplan.path)
    assert not records.exists() and not rollback.KEPT.exists() and not script.exists()


def test_an_undo_killed_before_its_proof_ends_in_the_next(netplan: SimpleNamespace, records: Path) -> None:
    run = Netplan(netplan.path)
    netplan.tool.remember(run, netplan.path, [])
    backup.write(netplan.path, "ours\n", 0o600)
    with pytest.raises(Done):
        netplan.tool.absent(run, netplan.path)
    again = Netplan(netplan.path)
    with pytest.raises(Done):
        netplan.tool.absent(again, netplan.path)
    assert again.result == {"changed": True}, "the first may not have come to the links"
    netplan.tool.proven(again, netplan.path)
    last = Netplan(netplan.path)
    with pytest.raises(Done):
        netplan.tool.absent(last, netplan.path)
    assert last.result == {"changed": False} and not records.exists()


def test_a_change_without_its_proof_does_not_become_what_comes_back(netplan: SimpleNamespace) -> None:
    proven = netplan.path.read_bytes()
    run = Netplan(netplan.path)
    rollback.keep(run, [netplan.path])
    (kept,) = rollback.KEPT.iterdir()
    backup.write(netplan.path, "first, and the controller died\n", 0o600)
    rollback.keep(run, [netplan.path])
    assert kept.read_bytes() == proven
    netplan.tool.proven(Netplan(netplan.path), netplan.path)
    netplan.path.unlink()
    rollback.keep(run, [netplan.path])
    assert kept.stat().st_size == 0, "no file is to come back"


def test_an_undo_killed_between_file_and_links_puts_the_links_back_too(netplan: SimpleNamespace, monkeypatch) -> None:
    run, done = Netplan(netplan.path), links.restore
    netplan.tool.remember(run, netplan.path, [])
    backup.write(netplan.path, "ours\n", 0o600)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(links, "restore", killed)
    with pytest.raises(KeyboardInterrupt):
        netplan.tool.absent(run, netplan.path)
    asked: list[object] = []
    monkeypatch.setattr(links, "restore", lambda *words: (asked.append(words), done(*words)))
    again = Netplan(netplan.path)
    with pytest.raises(Done):
        netplan.tool.absent(again, netplan.path)
    assert again.result == {"changed": True} and len(asked) == 1


def test_a_file_that_keeps_its_change_keeps_its_record(netplan: SimpleNamespace) -> None:
    run = Netplan(netplan.path)
    netplan.tool.remember(run, netplan.path, [])
    backup.write(netplan.path, "ours\n", 0o600)
    netplan.tool.proven(run, netplan.path)
    assert backup.holds_file(netplan.path) and not rollback.KEPT.exists()


def test_links_go_back_to_size_state_and_kernel_settings(netplan: SimpleNamespace, tmp_path: Path, monkeypatch) -> None:
    """One that the functions' undo has put down stays down, though it was up when netplan first met it."""
    tool, ask = netplan.tool, Netplan(netplan.path)
    monkeypatch.setattr(links, "PROC", tmp_path / "proc")
    setting = tmp_path / "proc/ipv4/conf/port/promote_secondaries"
    setting.parent.mkdir(parents=True)
    setting.write_text("0\n")
    link = {"mtu": 1500, "flags": ["UP"], "addr_info": []}
    monkeypatch.setattr(links, "read", lambda module: {"port": link})
    tool.remember(ask, netplan.path, ["port"])
    ask.asked.clear()
    setting.write_text("1\n")
    links.restore(ask, str(netplan.path), up=set())
    assert setting.read_text() == "0"
    assert ask.asked == ["ip link set port mtu 1500", "ip link set port down"]
    links.restore(ask, str(netplan.path), up={"port"})
    assert ask.asked[-1] == "ip link set port up"
