"""A change of the rails writes and reconfigures the rails alone; the way to the node keeps its files and its link."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from sparkloom.onnode.host import backup, generated, links, rollback
from tests.plugins.loading import module
from tests.plugins.test_backup import Done, Run

RAIL, WAY = "enp1s0f0np0", "enP7s7"
OURS = {"network": {"version": 2, "ethernets": {RAIL: {"renderer": "networkd", "addresses": ["192.168.100.12/24"]}}}}


class Node(Run):
    """A node of which `root` is the file system; netplan writes what netplan 0.106 writes, and commands are kept."""

    def __init__(self, root: Path, **params: Any) -> None:
        wanted = {"interface": RAIL, "mtu": 1500, "cidr": "192.168.100.12/24"}
        given = {"rollback_after": 60, "expect": [wanted], "subnets": ["192.168.100.0/24"], "adopt": {}, **params}
        super().__init__(path=str(root / "etc/netplan/60-ours.yaml"), **given)
        self.root, self.asked, self.manager = root, [], ""
        self.live = {name: {"ifname": name, "mtu": 1500, "flags": ["UP"], "addr_info": []} for name in (RAIL, WAY)}

    def has(self, name: str, *cidrs: str) -> None:
        parts = (cidr.split("/") for cidr in cidrs)
        self.live[name]["addr_info"] = [
            {"family": "inet6" if ":" in local else "inet", "local": local, "prefixlen": int(prefix)}
            for local, prefix in parts
        ]

    def run_command(self, argv: list[str], check_rc: bool = False) -> tuple[int, str, str]:
        line = " ".join(argv)
        if argv[:2] == ["netplan", "generate"]:
            netplan(Path(argv[-1]), self.root)
            return 0, "", ""
        if argv[:2] == ["ip", "-json"]:
            return 0, json.dumps(list(self.live.values())), ""
        if argv[0] == "nmcli" and "--terse" in argv:
            return 0, self.manager, ""
        self.asked.append(line)
        if line.startswith("ip address delete"):
            link = self.live[argv[-1]]
            link["addr_info"] = [a for a in link["addr_info"] if f"{a['local']}/{a['prefixlen']}" != argv[3]]
        return 0, "", ""


def netplan(scratch: Path, root: Path) -> None:
    """Each definition as one file of networkd or one profile of NetworkManager; addresses are concatenated."""
    merged: dict[str, dict[str, Any]] = {}
    for file in sorted(scratch.rglob("etc/netplan/*.yaml")):
        for name, body in (yaml.safe_load(file.read_text())["network"].get("ethernets") or {}).items():
            held = merged.setdefault(name, {"addresses": []})
            held.update({**body, "addresses": held["addresses"] + body.get("addresses", [])})
    for name, body in merged.items():
        target = scratch / f"run/systemd/network/10-netplan-{name}.network"
        if body.get("renderer") == "NetworkManager":
            target = scratch / f"run/NetworkManager/system-connections/netplan-{name}.nmconnection"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"[Match]\nName={name}\n" + "".join(f"Address={cidr}\n" for cidr in body["addresses"]))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.setattr(backup, "FOLDER", tmp_path / "var/origin")
    monkeypatch.setattr(rollback, "KEPT", tmp_path / "var/rollback")
    root = tmp_path / "root"
    monkeypatch.setattr(generated, "ROOT", root)
    monkeypatch.setattr(generated.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(links, "PROC", tmp_path / "proc")
    (root / "etc/netplan").mkdir(parents=True)
    (root / "etc/netplan/01-way.yaml").write_text(f"network: {{ethernets: {{{WAY}: {{addresses: [10.0.0.1/24]}}}}}}\n")
    live = root / f"run/systemd/network/10-netplan-{WAY}.network"
    live.parent.mkdir(parents=True)
    live.write_text(
        "[Match]\nName=enP7s7\nAddress=10.0.0.9/24\n"
    )  # somebody's change of 01-way.yaml waits for a reboot
    return SimpleNamespace(tool=module("netplan"), root=root, way=live)


def present(node: SimpleNamespace, run: Node, data: dict[str, Any] = OURS) -> None:
    run.params["content"] = yaml.safe_dump(data)
    node.tool.SETTLE_SECONDS = 0
    with pytest.raises(Done):
        node.tool.present(run, Path(run.params["path"]))


def test_only_the_rail_is_written_and_reconfigured(node: SimpleNamespace) -> None:
    before, run = node.way.stat(), Node(node.root)
    present(node, run)
    assert run.result["changed"] and (node.way.stat().st_ino, node.way.read_text()[-12:]) == (
        before.st_ino,
        "10.0.0.9/24\n",
    )
    assert "192.168.100.12" in (node.root / f"run/systemd/network/10-netplan-{RAIL}.network").read_text()
    touched = [line for line in run.asked if WAY in line]
    assert touched == [] and "netplan apply" not in " ".join(run.asked)
    assert [line for line in run.asked if "networkctl" in line] == [
        "networkctl reload",
        f"networkctl reconfigure {RAIL}",
    ]
    assert not [line for line in run.asked if "restart" in line or line.startswith("nmcli")]


def test_a_function_that_the_file_names_no_more_loses_the_address_that_it_gave(node: SimpleNamespace) -> None:
    """Red before: networkd leaves it, and the rails' own check then refused the node for ever."""
    more, own = "enp1s0f0v2", {"renderer": "networkd", "addresses": ["192.168.100.44/24"]}
    first = Node(node.root)
    ethernets = {**OURS["network"]["ethernets"], more: own}
    present(node, first, {"network": {"version": 2, "ethernets": ethernets}})
    run = Node(node.root)
    run.live[more] = {"ifname": more, "mtu": 1500, "flags": ["UP"], "addr_info": []}
    run.has(more, "192.168.100.44/24")
    run.has(RAIL, "192.168.100.12/24")
    present(node, run)
    assert [line for line in run.asked if line.startswith("ip address delete")] == [
        f"ip address delete 192.168.100.44/24 dev {more}"
    ]
    assert not (node.root / f"run/systemd/network/10-netplan-{more}.network").exists()


def test_a_link_local_address_that_network_manager_left_is_taken(node: SimpleNamespace) -> None:
    """Red before: on a Spark with a desktop a function kept two addresses, and so more GIDs than its plan says."""
    run = Node(node.root)
    run.has(RAIL, "192.168.100.12/24", "fe80::f4a6:af78:50ed:4908/64")
    present(node, run)
    assert f"ip address delete fe80::f4a6:af78:50ed:4908/64 dev {RAIL}" in run.asked
    assert [a["local"] for a in run.live[RAIL]["addr_info"]] == ["192.168.100.12"]


def test_the_timer_does_likewise(node: SimpleNamespace) -> None:
    run = Node(node.root)
    present(node, run)
    script = (rollback.KEPT.parent / "rollback.sh").read_text()
    assert "netplan apply" not in script and f"networkctl reconfigure {RAIL}" in script
    assert f"rm -f {node.root}/etc/netplan/60-ours.yaml" in script
    assert f"rm -f {node.root}/run/systemd/network/10-netplan-{RAIL}.network" in script
    assert f"networkctl reconfigure {WAY}" not in script and f"10-netplan-{WAY}" not in script
    armed = next(n for n, line in enumerate(run.asked) if line.startswith("systemd-run"))
    assert armed < run.asked.index("networkctl reload")


def test_the_timers_script_puts_every_file_back_also_one_with_a_space(node: SimpleNamespace, tmp_path: Path) -> None:
    kept, new = node.root / "etc/NetworkManager/Wired connection 1.nmconnection", node.root / "etc/netplan/60-ours.yaml"
    kept.parent.mkdir(parents=True)
    kept.write_text("theirs\n")
    kept.chmod(0o600)
    run, idle = Node(node.root), tmp_path / "idle"
    rollback.keep(run, [kept, new])
    kept.unlink()
    new.write_text("ours\n")
    held = [step.line for step in generated.steps([RAIL], managed=[RAIL], profiles=True)]
    rollback.arm(run, 60, [*held, f"ip address add 192.168.100.11/24 dev {RAIL} || true"])
    idle.mkdir()
    for name in ("udevadm", "nmcli", "networkctl", "systemctl", "ip", "logger", "sleep"):
        (idle / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/told\n')
        (idle / name).chmod(0o755)
    script = rollback.KEPT.with_name("rollback.sh")
    subprocess.run(["sh", "-e", str(script)], check=True, env={"PATH": f"{idle}:/usr/bin:/bin"})
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("theirs\n", 0o600) and not new.exists()
    assert not rollback.KEPT.exists() and not script.exists(), "it takes itself away"
    told = (tmp_path / "told").read_text().splitlines()
    assert f"networkctl reconfigure {RAIL}" in told and told[-1].startswith("logger -t sparkloom")
    assert not [line for line in told if "restart" in line]


def test_a_rail_that_network_manager_has_is_taken_from_it_and_given_back(node: SimpleNamespace) -> None:
    theirs = node.root / "etc/netplan/40-cx7.yaml"
    body = {RAIL: {"renderer": "NetworkManager", "addresses": ["192.168.100.11/24"]}}
    theirs.write_text(yaml.safe_dump({"network": {"ethernets": body}}))
    profile = node.root / f"run/NetworkManager/system-connections/netplan-{RAIL}.nmconnection"
    profile.parent.mkdir(parents=True)
    profile.write_text("[connection]\n")
    original, run = theirs.read_bytes(), Node(node.root)
    run.manager = f"{RAIL}:connected\n{WAY}:connected\n"
    run.has(RAIL, "192.168.100.11/24")
    taken = {"interface": RAIL, "cidr": "192.168.100.11/24"}
    run.params["adopt"] = {"files": [{"path": str(theirs), "content": None}], "addresses": [taken]}
    present(node, run)
    assert not theirs.exists() and not profile.exists()
    told = [line for line in run.asked if line.startswith("nmcli")]
    assert told == [f"nmcli device set {RAIL} managed no", "nmcli connection reload"]
    assert f"ip address delete 192.168.100.11/24 dev {RAIL}" in run.asked
    script = (rollback.KEPT.parent / "rollback.sh").read_text()
    assert f"nmcli device set {RAIL} managed yes" in script and f"ip address add 192.168.100.11/24 dev {RAIL}" in script
    node.tool.proven(run, Path(run.params["path"]))

    back = Node(node.root)
    with pytest.raises(Done):
        node.tool.absent(back, Path(back.params["path"]))
    assert back.result == {"changed": True} and theirs.read_bytes() == original and profile.exists()
    assert not (node.root / f"run/systemd/network/10-netplan-{RAIL}.network").exists()
    assert f"nmcli device set {RAIL} managed yes" in back.asked
    assert f"ip address add 192.168.100.11/24 dev {RAIL}" in back.asked
    node.tool.proven(back, Path(back.params["path"]))
    assert not backup.FOLDER.exists(), "nothing is left to remember"


def test_an_address_beside_its_own_is_drift_and_goes(node: SimpleNamespace) -> None:
    present(node, first := Node(node.root))
    node.tool.proven(first, Path(first.params["path"]))
    run = Node(node.root)
    run.has(RAIL, "192.168.100.12/24")
    present(node, run)
    assert not run.result["changed"]
    run.has(RAIL, "192.168.100.12/24", "172.30.0.1/24")
    present(node, run)
    assert run.result["links"] == [RAIL] and f"ip address delete 172.30.0.1/24 dev {RAIL}" in run.asked


def test_where_networkd_cannot_be_asked_it_is_started(node: SimpleNamespace, monkeypatch) -> None:
    run = Node(node.root)
    monkeypatch.setattr(generated.shutil, "which", lambda name: None if name == "networkctl" else name)
    present(node, run)
    assert "systemctl restart systemd-networkd.service" in run.asked


def test_a_refused_file_changes_nothing(node: SimpleNamespace) -> None:
    class Refuses(Node):
        def run_command(self, argv: list[str], check_rc: bool = False) -> tuple[int, str, str]:
            if argv[0] == "netplan":
                return 1, "", f"{argv[-1]}/etc/netplan/60-ours.yaml: unknown key"
            return super().run_command(argv, check_rc)

    run = Refuses(node.root)
    present(node, run)
    assert "nothing was changed: /etc/netplan/60-ours.yaml: unknown key" in run.result["msg"]
    assert not Path(run.params["path"]).exists() and not [line for line in run.asked if "networkctl" in line]
