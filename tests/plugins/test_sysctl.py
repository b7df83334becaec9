"""Kernel settings: what is in the kernel, what is in the file, and who sets it otherwise at the next boot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.host import kernel
from tests.plugins.test_backup import Done, Run, module

KEY, PROC = "net.ipv4.tcp_mtu_probing", "net/ipv4/tcp_mtu_probing"


class Machine(Run):
    """A kernel with one setting, and folders of sysctl.d."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ours = folder / "etc/90-sparkloom.conf"
        super().__init__(path=str(self.ours), values={KEY: 1}, remember=False, state="present")
        self.live, self.folders, self.warned = folder / "proc" / PROC, [folder / "etc", folder / "lib"], list[str]()
        for place in (self.live.parent, *self.folders):
            place.mkdir(parents=True)
        self.live.write_text("0\n")
        monkeypatch.setattr(kernel, "PROC", folder / "proc")
        monkeypatch.setattr(kernel, "FOLDERS", self.folders)
        self.tool: Any = module("sysctl")

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def go(self) -> dict[str, Any]:
        with pytest.raises(Done):
            self.tool.present(self, self.ours, self.params["values"], keep=self.params["remember"])
        return dict(self.result)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_what_the_kernel_has_lost_is_noticed_though_the_file_says_it(machine: Machine) -> None:
    assert machine.go()["keys"] == [KEY] and machine.live.read_text() == "1\n"
    machine.live.write_text("0\n")
    said = machine.go()
    assert said["drift"] == [{"what": KEY, "found": "0", "expected": "1"}] and said["changed"] and not said["diff"]
    assert machine.live.read_text() == "1\n" and not machine.go()["changed"]


def test_a_killed_run_leaves_no_file_that_the_kernel_does_not_follow(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file came first: killed in between, all nodes had tcp_mtu_probing 0 and a file that says 1."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(machine.tool, "apply", killed)
    with pytest.raises(KeyboardInterrupt):
        machine.tool.present(machine, machine.ours, machine.params["values"])
    assert not machine.ours.exists()


@pytest.mark.parametrize("line", [f"{KEY} = 0", f"-{KEY}=0", f" {PROC} = 0 "])
def test_a_later_file_that_takes_it_back_at_boot_is_named(machine: Machine, line: str) -> None:
    """Nothing said it: after the next boot the kernel has 0, with our file saying 1 (tried with systemd-sysctl 252)."""
    mine = machine.folders[0] / "99-mine.conf"
    mine.write_text(f"# my own\n{line}\n")
    machine.go()
    assert machine.warned == [
        f"{mine}:2 sets {KEY} to 0 after {machine.ours} at every boot, expected 1: remove that line, or give the value "
        "that is meant in the inventory"
    ]


@pytest.mark.parametrize(
    ("file", "text"),
    [("etc/10-mine.conf", f"{KEY} = 0"), ("etc/99-mine.conf", f"{KEY} = 1"), ("etc/99-mine.conf", f"#{KEY} = 0"),
     ("etc/99-mine.conf", f"{KEY}\nnet.core.rmem_max = 0"), ("etc/99-mine.txt", f"{KEY} = 0")],
)  # fmt: skip
def test_a_file_that_takes_nothing_back_is_not(machine: Machine, file: str, text: str) -> None:
    (machine.folders[0].parent / file).write_text(text + "\n")
    machine.go()
    assert not machine.warned


def test_of_two_files_with_one_name_the_first_folder_s_counts_and_the_last_name_wins(machine: Machine) -> None:
    etc, lib = machine.folders
    for place, value in (
        (lib / "95-a.conf", 0),
        (etc / "95-a.conf", 1),
        (lib / "96-b.conf", 2),
        (etc / "97-c.conf", 0),
    ):
        place.write_text(f"{KEY} = {value}\n")
    (etc / "98-gone.conf").symlink_to("/nowhere")
    machine.go()
    assert [text.split(" sets ")[0] for text in machine.warned] == [f"{etc / '97-c.conf'}:1"]
