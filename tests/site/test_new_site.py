"""`sparkloom init`: from machines that answer to an inventory that loads; a program named ssh stands in for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from sparkloom.cli import beginning
from sparkloom.inputs import inventory, known_hosts
from sparkloom.site import sparks
from tests.cli.window import Seen, piped

SPARK = """name {name}
machine-id 0123456789abcdef0123456789abcdef
serial To be filled by O.E.M.
machine aarch64
gpu NVIDIA GB10
interface enP7s7
address {address}
port enP7s7 0x10ec 0x8127 1
port enp1s0f0np0 0x15b3 0x1021 1
port enP2p1s0f0np0 0x15b3 0x1021 1
port enp1s0f1np1 0x15b3 0x1021 0
"""
SSH = """#!/bin/sh
for word; do case "$word" in *@*) host=${word#*@};; KnownHostsCommand=*) told=${word#*=};; esac; done
echo "$host" >>"$0.logins"
key=$(echo "$host" | md5sum | cut -c1-32)AAAAAAAAAAAA
eval "$(echo "$told" | sed "s/%t/ssh-ed25519/; s/%K/$key/")"
[ -f "$0.$host" ] || { echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255; }
cat "$0.$host"
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two Sparks and a laptop answer here."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(SSH)
    program.chmod(0o755)
    for name, address in (("spark-a", "10.1.0.11"), ("spark-b", "10.1.0.12")):
        Path(f"{program}.{name}.local").write_text(SPARK.format(name=name, address=address))
    Path(f"{program}.laptop").write_text("name laptop\nmachine x86_64\ngpu \ninterface wlan0\naddress 10.1.0.50\n")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(beginning, "WORK", tmp_path)
    return program


def init(*addresses: str, name: str = "my-rack") -> Seen:
    given = [word for address in addresses for word in ("--address", address)]
    return piped("init", name, *given, "--user", "ada", "--profile", "minimax-m2.5-nvfp4--2node")


def test_who_sits_there_is_asked_whether_the_card_may_go_off(ssh: Path, tmp_path: Path, monkeypatch) -> None:
    reached = [f"{name}.local" for name in ("spark-a", "spark-b")]
    assert init(*reached).code == 0 and inventory.load(tmp_path / "inventories/my-rack").fabric.hotplug
    for name in reached:
        with Path(f"{ssh}.{name}").open("a") as told:
            told.write("hotplug armed\n")
    found = sparks.look(reached, "ada")
    monkeypatch.setattr(beginning.sys, "stdin", type("Person", (), {"isatty": lambda _: True})())
    monkeypatch.setattr(beginning, "_answer", lambda option, question, proposed: "n" if "18 W" in question else "")
    assert not beginning._may_hotplug(found)
    assert beginning._may_hotplug([spark._replace(hotplug=False) for spark in found])
    given = [word for one in reached for word in ("-a", one)]
    done = piped(
        "init", "still", *given, "--user", "ada", "--profile", "minimax-m2.5-nvfp4--2node", "--no-hotplug", "--yes"
    )
    assert done.code == 0 and not inventory.load(tmp_path / "inventories/still").fabric.hotplug


def test_it_writes_an_inventory_of_what_the_machines_said(ssh: Path, tmp_path: Path) -> None:
    done = init("spark-a.local", "spark-b.local")
    assert done.code == 0 and "2 Sparks, serving nvidia--minimax-m2.5-nvfp4--2node" in done.text, done.errors
    assert "links on enp1s0f0np0, enP2p1s0f0np0" in done.errors
    assert sorted(Path(f"{ssh}.logins").read_text().split()) == ["spark-a.local", "spark-b.local"], "once each"
    written = inventory.load(tmp_path / "inventories/my-rack")
    assert not written.example  # as what it was written from is
    assert [(n.name, n.management_address, n.fabric_index) for n in written.nodes] == [
        ("spark-a", "10.1.0.11", 1), ("spark-b", "10.1.0.12", 2),
    ]  # fmt: skip
    hosts = yaml.safe_load((tmp_path / "inventories/my-rack/hosts.yml").read_text())
    assert hosts["all"]["vars"] == {"ansible_user": "ada"}, "a box beside the Sparks too; plays ask for root themselves"
    assert "vars" not in hosts["all"]["children"]["sparks"]
    assert written.name == "my-rack" and written.management_interface == "enP7s7"
    text = (tmp_path / "inventories/my-rack/hosts.yml").read_text()
    machines = known_hosts.read(tmp_path / "inventories/my-rack")
    assert list(machines) == ["spark-a", "spark-b"]
    for machine in machines.values():  # a maker's placeholder is no serial number
        assert (machine.machine_id, machine.serial) == (
            "0123456789abcdef" * 2,
            "",
        ) and machine.fingerprint in done.errors
    assert "ansible_user: ada" in text and "ansible_host: spark-a.local" in text


def test_a_spark_on_wi_fi_is_told_what_that_costs(ssh: Path, tmp_path: Path) -> None:
    told = SPARK.format(name="spark-w", address="10.1.0.19").replace("interface enP7s7", "interface wlP9s9")
    Path(f"{ssh}.spark-w.local").write_text(told)
    done = init("spark-w.local")
    assert done.code == 0 and "wlP9s9 is Wi-Fi" in done.errors, done.errors


def test_whatever_is_wrong_is_said_of_all_at_once_and_nothing_is_written(ssh: Path, tmp_path: Path) -> None:
    done = init("spark-a.local", "laptop", "nowhere")
    assert done.code == 2 and not (tmp_path / "inventories").exists()
    assert "laptop is no DGX Spark: found x86_64, GPU none, expected aarch64, NVIDIA GB10" in done.errors
    assert "No route to host; `ssh ada@nowhere` must work without a password" in done.errors


def test_one_machine_named_twice_and_a_taken_name_are_refused(ssh: Path, tmp_path: Path) -> None:
    assert "two machines have the name spark-a" in init("spark-a.local", "spark-a.local").errors
    assert init("spark-a.local", "spark-b.local").code == 0
    again = init("spark-a.local", "spark-b.local")
    assert again.code == 2 and "is there already" in again.errors
    assert "expected a short name" in init("spark-a.local", name="My_Rack").errors


def test_without_anybody_to_ask_it_names_the_option(ssh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparks, "announced", lambda: [])
    done = piped("init", "my-rack")
    assert done.code == 2 and "--address" in done.errors and "nobody is here" in done.errors


def test_machines_that_announce_themselves_are_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browse(tmp_path, monkeypatch, {"spark-1f2e": "10.1.0.11", "printer": "10.1.0.9"})
    assert sparks.announced() == ["10.1.0.11"]


def browse(folder: Path, monkeypatch: pytest.MonkeyPatch, told: dict[str, str], more: str = "") -> None:
    """A browser that tells of these machines, each twice: by cable and by radio."""
    line = "=;{port};IPv4;{name} SSH;_ssh._tcp;local;{name}.local;{address};22;\n"
    lines = [
        line.format(port=port, name=name, address=f"{address}{end}")
        for port, end in (("eth0", ""), ("wlan0", "0"))
        for name, address in told.items()
    ]
    browser = folder / "avahi-browse"
    browser.write_text(f"#!/bin/sh\ncat <<'EOF'\n{''.join(lines)}EOF\n{more}\n")
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


# What a real avahi-browse 0.8 said on spark-1f2e (2026-11-22); avahi-daemon announces its rail and Docker's bridge too.
REAL = r"""
=;enp1s0f0np0;IPv4;spark-1f2e;SSH Remote Terminal;local;spark-1f2e.local;192.168.100.12;22;
=;docker0;IPv4;spark-1f2e;SSH Remote Terminal;local;spark-1f2e.local;172.17.0.1;22;
=;eth0;IPv6;spark-1f2e;SSH Remote Terminal;local;spark-1f2e.local;fe80::2887:7ff:fe21:983c;22;
=;eth0;IPv4;spark-1f2e;SSH Remote Terminal;local;spark-1f2e.local;10.77.0.2;22;
=;lo;IPv4;spark-1f2e;SSH Remote Terminal;local;spark-1f2e.local;127.0.0.1;22;
=;enp1s0f0np0;IPv4;spark-2b3c\032\0910e\05880\058e7\05826\05829\05810\093;Workstation;local;spark-2b3c.local;192.168.100.13;9;
=;eth0;IPv4;spark-2b3c\032\09152\058d4\0580f\058a7\058e9\05851\093;Workstation;local;spark-2b3c.local;10.77.0.3;9;
"""  # fmt: skip


def test_on_a_spark_the_rails_and_docker_are_heard_too_and_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proposed 192.168.100.12 and .13, the rails: the first run of fabric.yml would have cut Ansible off."""
    for name, said in (("avahi-browse", REAL), ("ip", "default via 10.77.0.254 dev eth0 proto dhcp metric 100\n")):
        (tmp_path / name).write_text(f"#!/bin/sh\ncat <<'EOF'\n{said}EOF\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert sparks.announced() == ["10.77.0.2", "10.77.0.3"]


MAKERS = ("spark", "promaxgb10", "gx10", "gn100", "zgx", "aitopatom", "edgexpert", "thinkstationpgx")


def test_every_maker_s_machine_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven makers call theirs by other names than NVIDIA, and most have a radio beside the cable."""
    machines = {f"{maker}-41b{n}": f"10.1.0.{11 + n}" for n, maker in enumerate(MAKERS)}
    browse(tmp_path, monkeypatch, machines | {"zgx-toolkit": "10.1.0.8", "printer": "10.1.0.9"})
    assert sparks.announced() == sorted(machines.values())


def test_a_machine_that_is_waited_for_in_vain_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparks, "LISTENS", 0.3)
    browse(tmp_path, monkeypatch, {"spark-1f2e": "10.1.0.11"}, more="exec sleep 20")
    assert sparks.announced() == ["10.1.0.11"]
