"""The boot-time script that makes the rails' functions, against a made-up sysfs and a recorder in place of `ip`."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("functions", REPO / "roles/roce_fabric/files/sparkloom-functions.py")
assert SPEC and SPEC.loader
functions = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(functions)

PF, VF, MAC = "enp1s0f0np0", "enp1s0f0v0", "02:5b:00:00:01:00"


class Node:
    """A made-up /sys with one parent, and everything that was asked of `ip`."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.asked, self.refuse = root, [], set()
        self.device = root / f"class/net/{PF}/device"
        self.device.mkdir(parents=True)
        self.write("sriov_totalvfs", "16")
        self.write("sriov_numvfs", "0")
        plan = root / "functions.json"
        made = {"pf": PF, "count": 2, "functions": [{"vf": 0, "interface": VF, "mac": MAC}]}
        plan.write_text(json.dumps({"rails": [made]}))
        monkeypatch.setattr(functions, "PLAN", plan)
        monkeypatch.setattr(functions, "ip", self.ip)

    def write(self, name: str, value: str) -> None:
        (self.device / name).write_text(value + "\n")

    def function(self, mac: str) -> None:
        (self.root / f"class/net/{VF}").mkdir()
        (self.root / f"class/net/{VF}/address").write_text(mac + "\n")

    def ip(self, *args: str) -> None:
        line = " ".join(args)
        if line in self.refuse:
            raise functions.Refused(line)
        self.asked.append(line)

    def run(self, monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
        monkeypatch.setattr("sys.argv", ["functions", "--sysfs", str(self.root), *args])
        return functions.main()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(functions, "wait_for", lambda path, seconds: path.exists())
    monkeypatch.setattr(functions, "settle", lambda: None)
    monkeypatch.setattr(functions, "set_sysctls", lambda interface: None)
    return Node(tmp_path, monkeypatch)


def test_makes_functions_where_there_are_none(node: Node, monkeypatch, capsys) -> None:
    assert node.run(monkeypatch) == 0
    assert (node.device / "sriov_numvfs").read_text() == "2\n"
    assert f"changed: {PF}: 2 functions made" in capsys.readouterr().out


def test_check_changes_nothing(node: Node, monkeypatch, capsys) -> None:
    node.function("02:00:00:00:00:99")
    assert node.run(monkeypatch, "--check") == 0
    assert (node.device / "sriov_numvfs").read_text() == "0\n" and node.asked == []
    assert capsys.readouterr().out.count("changed:") == 2


def test_as_planned_says_so_and_does_nothing(node: Node, monkeypatch, capsys) -> None:
    node.write("sriov_numvfs", "2")
    node.function(MAC)
    assert node.run(monkeypatch) == 0
    assert node.asked == [] and capsys.readouterr().out == "as planned\n"


def test_a_wrong_mac_is_set_by_the_function_itself(node: Node, monkeypatch) -> None:
    node.write("sriov_numvfs", "2")
    node.function("02:00:00:00:00:99")
    assert node.run(monkeypatch) == 0
    assert node.asked == [f"link set {VF} down", f"link set {VF} address {MAC}", f"link set {VF} up"]


def test_or_through_the_parent_and_a_new_start_of_its_driver(node: Node, monkeypatch) -> None:
    node.write("sriov_numvfs", "2")
    node.function("02:00:00:00:00:99")
    driver, card = node.root / "drivers/mlx5", node.root / "devices/0000:01:00.2"
    driver.mkdir(parents=True)
    card.mkdir(parents=True)
    (card / "driver").symlink_to(driver)
    (node.device / "virtfn0").symlink_to(card)
    node.refuse.add(f"link set {VF} address {MAC}")
    assert node.run(monkeypatch) == 0
    assert f"link set {PF} vf 0 mac {MAC}" in node.asked
    assert (driver / "unbind").read_text() == (driver / "bind").read_text() == "0000:01:00.2"


def test_udev_ends_its_own_naming_before_the_plans_name_is_given(node: Node, monkeypatch) -> None:
    (node.device / "virtfn0/net/eth7").mkdir(parents=True)
    monkeypatch.setattr(functions, "settle", lambda: node.asked.append("udev has settled"))
    assert node.run(monkeypatch) == 0
    assert node.asked[1:] == ["udev has settled", "link set eth7 down", f"link set eth7 name {VF}"]


def test_a_function_under_another_name_gets_the_plans(node: Node, monkeypatch) -> None:
    node.write("sriov_numvfs", "2")
    (node.device / "virtfn0/net/eth7").mkdir(parents=True)
    assert node.run(monkeypatch) == 0
    assert node.asked == ["link set eth7 down", f"link set eth7 name {VF}"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("sriov_totalvfs", "0", "SRIOV_EN"), ("sriov_numvfs", "1", "reboot the node")],
)
def test_refuses_and_says_what_to_change(node: Node, monkeypatch, capsys, name: str, value: str, said: str) -> None:
    node.write(name, value)
    assert node.run(monkeypatch) == 1
    assert said in capsys.readouterr().err and node.asked == []
