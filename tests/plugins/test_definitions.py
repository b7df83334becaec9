"""What a node tells of its network files: whole, but for what is secret in them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sparkloom.onnode.host import definitions

WIFI = """network:
  version: 2
  wifis:
    wlan0:
      access-points:
        "Home": {password: "a b,}c", mode: infrastructure}
        Office:
          auth: {key-management: psk, password: open, identity: me}
  ethernets:
    enp1s0f0np0: {addresses: [192.168.100.11/24], macaddress: 4c:bb:47:00:00:10}
"""
PROFILE = """[connection]
id=Home
type=wifi
interface-name=wlan0

[wifi-security]
psk=verysecret

[ipv4]
address1=192.168.100.11/24,192.168.100.1
method=manual
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(definitions, "ROOT", tmp_path)
    return tmp_path


def put(root: Path, path: str, content: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(content)


def test_every_place_is_read_and_what_netplan_made_itself_is_not(root: Path) -> None:
    put(root, "lib/netplan/00-all.yaml", "network: {version: 2}\n")
    put(root, "etc/netplan/40-cx7.yaml", WIFI)
    put(root, "etc/NetworkManager/system-connections/cx7.nmconnection", PROFILE)
    put(root, "run/NetworkManager/system-connections/netplan-eth0.nmconnection", PROFILE)
    put(root, "etc/systemd/network/05-cx7.network", "[Match]\nName=enp1s0f0np0\n")
    put(root, "run/systemd/network/10-netplan-eth0.network", "[Match]\nName=eth0\n")
    rows = definitions.definitions()
    assert [(row["kind"], row["path"]) for row in rows] == [
        ("netplan", "/lib/netplan/00-all.yaml"),
        ("netplan", "/etc/netplan/40-cx7.yaml"),
        ("NetworkManager", "/etc/NetworkManager/system-connections/cx7.nmconnection"),
        ("networkd", "/etc/systemd/network/05-cx7.network"),
    ]
    assert [row["whole"] for row in rows] == [True, False, False, True]


def test_passwords_stay_on_the_node_and_the_rest_can_be_read() -> None:
    said = definitions.spoken("netplan", WIFI)
    assert "a b" not in said and "open" not in said
    assert yaml.safe_load(said)["network"]["ethernets"] == yaml.safe_load(WIFI)["network"]["ethernets"]
    said = definitions.spoken("NetworkManager", PROFILE)
    assert "verysecret" not in said and "address1=192.168.100.11/24" in said and "method=manual" in said
