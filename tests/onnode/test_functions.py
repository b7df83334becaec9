"""The boot-time program that keeps the rails' functions, against a made-up sysfs and a recorder in place of `ip`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkloom.onnode.functions import common, hotplug, lossless, pods, rail
from sparkloom.onnode.functions import main as functions
from sparkloom.onnode.images.runtime import Runtime

PF, VF, MAC = "enp1s0f0np0", "enp1s0f0v0", "02:5b:00:00:01:00"
PLANNED = {"arp_ignore": "1", "arp_announce": "2"}  # of every function of a rail


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
        self.plan = plan
        monkeypatch.setattr(functions, "PLAN", plan)
        monkeypatch.setattr(common, "ORIGIN", root / "state/origin/functions.json")
        monkeypatch.setattr(common, "call", self.call)
        monkeypatch.setattr(lossless, "notes", [])

    def write(self, name: str, value: str) -> None:
        (self.device / name).write_text(value + "\n")

    def function(self, mac: str) -> None:
        (self.root / f"class/net/{VF}").mkdir()
        (self.root / f"class/net/{VF}/address").write_text(mac + "\n")

    def call(self, *args: str) -> None:
        line = " ".join(args).removeprefix("ip ")
        if line in self.refuse:
            raise common.FunctionsError(line)
        self.asked.append(line)

    def run(self, monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
        return functions.main(["--sysfs", str(self.root), *args])


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(rail, "wait_for", lambda path, seconds: path.exists())
    monkeypatch.setattr(rail, "settle", lambda: None)
    monkeypatch.setattr(rail, "set_sysctls", lambda interface: None)
    monkeypatch.setattr(rail, "namespaces", lambda: iter(()))
    monkeypatch.setattr(common, "ask", lambda *argv: None)
    monkeypatch.setattr(rail, "run", lambda *argv, timeout: "")
    monkeypatch.setattr(rail, "running", lambda unit: False)
    monkeypatch.setattr(common, "notes", [])
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
    monkeypatch.setattr(rail, "settle", lambda: node.asked.append("udev has settled"))
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


def test_the_first_change_remembers_and_undo_goes_back(node: Node, monkeypatch, capsys) -> None:
    assert node.run(monkeypatch) == 0
    node.function(MAC)
    assert node.run(monkeypatch, "--undo") == 0
    assert (node.device / "sriov_numvfs").read_text() == "0\n"
    assert not common.ORIGIN.exists()
    assert node.run(monkeypatch, "--undo") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "as planned", "what was never changed is left alone"
    assert node.run(monkeypatch, "--back") == 0  # udev tells of the port while the role undoes it
    assert (node.device / "sriov_numvfs").read_text() == "0\n" and not common.ORIGIN.exists()


def test_functions_that_were_there_before_get_their_names_and_macs_back(node: Node, monkeypatch) -> None:
    node.write("sriov_numvfs", "2")
    node.function("02:00:00:00:00:99")
    (node.device / "virtfn0/net" / VF).mkdir(parents=True)
    assert node.run(monkeypatch) == 0
    (node.root / f"class/net/{VF}/address").write_text(MAC + "\n")
    node.asked.clear()
    assert node.run(monkeypatch, "--undo") == 0
    assert f"link set {VF} address 02:00:00:00:00:99" in node.asked
    assert (node.device / "sriov_numvfs").read_text() == "2\n"


def test_a_port_that_was_down_goes_down_again(node: Node, monkeypatch) -> None:
    """Seen on a virtual machine: making functions sets the port up, and the undo left it so."""
    (node.device.parent / "flags").write_text("0x1002\n")
    assert node.run(monkeypatch) == 0
    (node.device.parent / "flags").write_text("0x1003\n")
    node.function(MAC)
    assert node.run(monkeypatch, "--undo") == 0
    assert node.asked[-1] == f"link set {PF} down"


def test_undo_takes_nothing_from_a_pod(node: Node, monkeypatch, capsys) -> None:
    assert node.run(monkeypatch) == 0
    capsys.readouterr()
    assert node.run(monkeypatch, "--undo") == 1
    assert f"{VF}: in a pod, nothing was changed" in capsys.readouterr().err
    assert (node.device / "sriov_numvfs").read_text() == "2\n" and common.ORIGIN.exists()


# --- the port's own list of MACs ------------------------------------------------------------------------------


def test_the_port_is_told_the_mac_of_its_function_and_told_back(node: Node, monkeypatch) -> None:
    """Else the function has another one after a reset or a new start of its driver."""
    node.write("sriov_numvfs", "2")
    node.function(MAC)
    (node.device / "virtfn0/net" / VF).mkdir(parents=True)
    held = [{"vf": 0, "address": "00:00:00:00:00:00"}, {"vf": 1, "address": "00:00:00:00:00:00"}]
    monkeypatch.setattr(common, "ask", lambda *argv: [{"ifname": PF, "vfinfo_list": held}])
    assert node.run(monkeypatch, "--check") == 0 and node.asked == []
    assert node.run(monkeypatch) == 0
    assert node.asked == [f"link set {PF} vf 0 mac {MAC}"]
    held[0]["address"] = MAC.upper()
    node.asked.clear()
    assert node.run(monkeypatch) == 0 and node.asked == []


def test_a_function_in_a_pod_and_a_driver_without_the_list_are_left_alone(node: Node, monkeypatch, capsys) -> None:
    node.write("sriov_numvfs", "2")
    monkeypatch.setattr(common, "ask", lambda *argv: [{"vfinfo_list": [{"vf": 0, "address": "00:00:00:00:00:00"}]}])
    assert node.run(monkeypatch) == 0 and node.asked == []
    node.function(MAC)
    node.refuse.add(f"link set {PF} vf 0 mac {MAC}")
    capsys.readouterr()
    assert node.run(monkeypatch) == 0 and "takes no MAC for a function" in capsys.readouterr().out


# --- what the timer does ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("networkd", [True, False])
def test_a_function_that_came_back_as_net1_gets_its_name_and_a_running_networkd_is_told(
    node: Node, monkeypatch: pytest.MonkeyPatch, networkd: bool
) -> None:
    """At boot networkd waits for this program: networkctl, which has D-Bus start it, held every boot up for 50 s."""
    told: list[str] = []
    monkeypatch.setattr(rail, "run", lambda *argv, timeout: told.append(" ".join(argv)))
    monkeypatch.setattr(rail, "running", lambda unit: networkd and unit == "systemd-networkd.service")
    monkeypatch.setattr(functions.time, "sleep", lambda seconds: None)
    node.write("sriov_numvfs", "2")
    (node.device / "virtfn0/net/net1").mkdir(parents=True)
    assert node.run(monkeypatch, "--steady", "5") == 0
    assert node.asked == ["link set net1 down", f"link set net1 name {VF}"]
    assert told == ([f"networkctl reconfigure {VF}"] if networkd else [])


@pytest.mark.parametrize(
    ("settings", "set_again"),
    [({"arp_ignore": "0", "arp_announce": "0"}, [VF]), ({"arp_ignore": "0", "arp_announce": "2"}, []), (PLANNED, [])],
)
def test_a_function_that_came_from_a_pod_gets_its_kernel_settings_again(
    node: Node, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], set_again: list[str]
) -> None:
    """CNI gives it its own name again: on the old code the kernel's defaults stayed until playbooks/fabric.yml ran."""
    given: list[str] = []
    monkeypatch.setattr(rail, "set_sysctls", given.append)
    monkeypatch.setattr(functions.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(rail.kernel, "PROC", node.root / "proc")
    for interface, keys in {"default": dict.fromkeys(PLANNED, "0"), VF: settings}.items():
        folder = node.root / "proc/net/ipv4/conf" / interface
        folder.mkdir(parents=True)
        for key, value in keys.items():
            (folder / key).write_text(f"{value}\n")
    node.write("sriov_numvfs", "2")
    node.function(MAC)
    assert node.run(monkeypatch, "--steady", "5") == 0 and given == set_again


def test_the_timer_leaves_what_a_hand_changed_to_the_role(node: Node, monkeypatch, capsys) -> None:
    """Else the doctor would never see it."""
    node.write("sriov_numvfs", "2")
    node.function("02:00:00:00:00:99")
    assert node.run(monkeypatch, "--steady", "5") == 0 and node.asked == []


def test_what_moves_while_the_timer_looks_is_left_to_the_next_look(node: Node, monkeypatch, capsys) -> None:
    """CNI gives a function back under its pod's name and renames it a moment later."""
    node.write("sriov_numvfs", "2")
    (node.device / "virtfn0/net/net1").mkdir(parents=True)
    monkeypatch.setattr(functions.time, "sleep", lambda seconds: node.function(MAC))
    assert node.run(monkeypatch, "--steady", "5") == 0
    assert node.asked == [] and capsys.readouterr().out == "as planned\n"


# --- functions in dead namespaces -----------------------------------------------------------------------------


@pytest.fixture
def namespace(tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One namespace that holds the function as net1, old enough and without a process."""
    node.write("sriov_numvfs", "2")
    held = tmp_path / "cni-1"
    held.touch()
    monkeypatch.setattr(rail, "PROC", tmp_path / "proc")
    monkeypatch.setattr(rail, "namespaces", lambda: iter([held]))
    monkeypatch.setattr(rail, "changed", lambda path: 0.0)
    monkeypatch.setattr(rail, "ask", lambda *argv: [{"ifname": "lo"}, {"ifname": "net1", "address": MAC.upper()}])
    yield held


def test_a_function_in_a_dead_namespace_comes_home(node: Node, namespace: Path, monkeypatch, capsys) -> None:
    assert node.run(monkeypatch) == 0
    inside = f"nsenter --net={namespace} ip link set"
    assert node.asked == [f"{inside} dev net1 down", f"{inside} dev net1 name {VF}", f"{inside} dev {VF} netns 1"]
    assert f"changed: {VF}: back from {namespace}" in capsys.readouterr().out


def test_a_namespace_with_a_process_is_only_looked_at(tmp_path: Path, node: Node, namespace, monkeypatch) -> None:
    process = tmp_path / "proc/4711/ns"
    process.mkdir(parents=True)
    (process / "net").hardlink_to(namespace)  # the same number: the process is in it
    assert node.run(monkeypatch) == 0 and node.asked == []


def test_a_young_namespace_may_belong_to_a_pod_that_starts(node: Node, namespace, monkeypatch) -> None:
    monkeypatch.undo()
    now = rail.time.time()
    monkeypatch.setattr(rail, "changed", lambda path: now - 5)
    monkeypatch.setattr(rail, "namespaces", lambda: iter([namespace]))
    monkeypatch.setattr(rail, "ask", lambda *argv: [{"ifname": "net1", "address": MAC}])
    assert rail.find({MAC: VF}, {}, young=120) == []
    assert rail.find({MAC: VF}, {}, young=1.0) == [(str(namespace), "net1", VF)]


def test_another_card_of_a_dead_namespace_stays_there(node: Node, namespace, monkeypatch) -> None:
    monkeypatch.setattr(rail, "ask", lambda *argv: [{"ifname": "eth0", "address": "02:00:00:00:00:01"}])
    assert node.run(monkeypatch) == 0 and node.asked == []


# --- lossless -------------------------------------------------------------------------------------------------


def asked_for_lossless(node: Node) -> None:
    plan = json.loads(node.plan.read_text())
    plan["rails"][0]["lossless"] = {"priority": 3, "dscp": 26}
    node.plan.write_text(json.dumps(plan))
    node.write("sriov_numvfs", "2")


def test_lossless_settings_are_set_once_and_taken_back(node: Node, monkeypatch) -> None:
    asked_for_lossless(node)
    held = {"pause": [False] * 8, "app": []}
    answers = {"pfc": lambda: {"prio-pfc": held["pause"]}, "app": lambda: {"dscp_prio": held["app"]}}
    monkeypatch.setattr(lossless, "ask", lambda *argv: answers[argv[2]]())
    assert node.run(monkeypatch) == 0
    assert node.asked == [
        f"dcb pfc set dev {PF} prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off",
        f"dcb app add dev {PF} dscp-prio 26:3",
    ]
    held.update(pause=[n == 3 for n in range(8)], app=[[26, 3]])
    node.asked.clear()
    assert node.run(monkeypatch) == 0 and node.asked == []
    node.function(MAC)
    assert node.run(monkeypatch, "--undo") == 0
    assert node.asked[0].endswith("3:off 4:off 5:off 6:off 7:off") and " app del " in node.asked[1]


def test_a_driver_without_them_is_a_note_and_no_failure(node: Node, monkeypatch, capsys) -> None:
    asked_for_lossless(node)
    monkeypatch.setattr(lossless, "ask", lambda *argv: None)
    assert node.run(monkeypatch) == 0
    said = capsys.readouterr().out
    assert said.startswith("as planned") and f"note: {PF}: its driver offers no pause per priority" in said


def whole(node: Node, *, in_pod: bool) -> None:
    """The plan of a port that pods get whole."""
    made = {"pf": PF, "pci": "0000:01:00.0", "count": 0, "functions": [], "whole": True}
    node.plan.write_text(json.dumps({"rails": [made]}))
    if in_pod:
        shutil.rmtree(node.root / f"class/net/{PF}")


def test_a_port_that_a_living_pod_has_whole_is_left_alone_and_not_undone(node: Node, monkeypatch, capsys) -> None:
    whole(node, in_pod=True)
    assert node.run(monkeypatch) == 0 and capsys.readouterr().out == "as planned\n"
    assert node.run(monkeypatch, "--undo") == 1 and f"{PF}: in a pod" in capsys.readouterr().err


def test_a_port_that_a_dead_pod_left_behind_comes_back(node: Node, monkeypatch, capsys) -> None:
    whole(node, in_pod=True)
    monkeypatch.setattr(rail, "find", lambda wanted, pci, young: [("/run/netns/x", "net2", pci["0000:01:00.0"])])
    assert node.run(monkeypatch) == 0 and f"{PF}: back from /run/netns/x" in capsys.readouterr().out
    assert any(f"link set dev net2 name {PF}" in line for line in node.asked)


def test_a_port_on_the_host_gets_no_functions_when_pods_get_it_whole(node: Node, monkeypatch, capsys) -> None:
    whole(node, in_pod=False)
    node.write("sriov_totalvfs", "0")
    assert node.run(monkeypatch) == 0 and capsys.readouterr().out == "as planned\n" and node.asked == []


# --- a port that left the bus -------------------------------------------------------------------------------------


def test_a_port_that_came_back_without_functions_gets_them_from_the_timer(node: Node, monkeypatch, capsys) -> None:
    assert node.run(monkeypatch, "--steady", "0.01") == 0
    assert (node.device / "sriov_numvfs").read_text() == "2\n"
    assert f"changed: {PF}: 2 functions made" in capsys.readouterr().out


def test_what_is_still_off_the_bus_is_waited_for_in_silence(node: Node, monkeypatch, capsys) -> None:
    shutil.rmtree(node.root / f"class/net/{PF}")
    assert node.run(monkeypatch, "--back") == node.run(monkeypatch, "--steady", "0.01") == 0
    assert capsys.readouterr().out == "as planned\n" * 2
    folder = node.root / "bus/platform/devices/MTKP0001:00/pcie_hotplug"
    folder.mkdir(parents=True)
    (folder / "hotplug_enabled").write_text("1\n")
    (folder / "debug_state").write_text("0\n")
    assert node.run(monkeypatch) == 1, "the role has to say it"
    assert f"no {PF}: hot-plug took the card off the bus" in capsys.readouterr().err


def test_a_pod_whose_function_went_is_made_again_and_no_other_is(node: Node, monkeypatch, capsys) -> None:
    rails = json.dumps([{"name": "rail-a-vf0", "interface": "net1"}])
    ready = [
        {"id": name, "metadata": {"name": f"{name}-rank0-0"}, "annotations": {pods.NETWORKS: rails} if held else {}}
        for name, held in (("lost", True), ("whole", True), ("alone", False))
    ]
    runtime = Runtime(("ctr",), ("crictl",), Path("/"))
    monkeypatch.setattr(pods.Runtime, "here", lambda places: runtime)
    monkeypatch.setattr(Runtime, "pods", lambda self, labels: ready)

    def ask(*argv: str) -> object:
        if argv[0] == "crictl":
            space = {"type": "network", "path": f"/run/netns/{argv[-1]}"}
            return {"info": {"runtimeSpec": {"linux": {"namespaces": [{"type": "pid"}, space]}}}}
        return [{"ifname": "eth0"}, *([{"ifname": "net1"}] if argv[1].endswith("whole") else [])]

    monkeypatch.setattr(pods, "ask", ask)
    assert node.run(monkeypatch) == node.run(monkeypatch, "--back") == 0
    assert node.asked[-1] == "crictl stopp lost" and sum("stopp" in line for line in node.asked) == 1
    assert "pod lost-rank0-0: net1 went with its port; the pod is made again" in capsys.readouterr().out


def test_hot_plug_is_kept_off_where_the_site_says_so_and_given_back(node: Node, monkeypatch, capsys) -> None:
    armed, aside, switch = node.root / "armed", node.root / "aside", node.root / hotplug.HOTPLUG / "hotplug_enabled"
    monkeypatch.setattr(hotplug, "ARMED", armed)
    monkeypatch.setattr(hotplug, "ASIDE", aside)
    switch.parent.mkdir(parents=True)
    for file in (armed, switch):
        file.write_text("1\n")
    assert node.run(monkeypatch) == 0 and armed.exists(), "who asks for nothing keeps NVIDIA's setting"
    node.function(MAC)
    node.plan.write_text(json.dumps({**json.loads(node.plan.read_text()), "hotplug": False}))
    assert node.run(monkeypatch, "--check") == 0 and armed.exists()
    assert node.run(monkeypatch) == 0
    assert not armed.exists() and aside.exists() and switch.read_text() == "0\n"
    assert node.run(monkeypatch) == 0 and "changed: hot-plug" not in capsys.readouterr().out.splitlines()[-1]
    assert node.run(monkeypatch, "--undo") == 0
    assert armed.exists() and not aside.exists() and switch.read_text() == "1\n"
