"""The site's known_hosts: what ssh reads of it, what it passes over, and what stays of its owner's own lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sparkloom.inputs import known_hosts
from sparkloom.inputs.known_hosts import Machine

ID = "0123456789abcdef" * 2


@pytest.fixture
def key(tmp_path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    return " ".join((tmp_path / "key.pub").read_text().split()[:2])


def test_what_is_kept_is_read_again_and_ssh_finds_it(tmp_path: Path, key: str) -> None:
    machine = Machine(key, ID, "1993A-0001")
    known_hosts.keep(tmp_path, {"spark1": machine, "spark2": Machine(key)})
    assert known_hosts.read(tmp_path) == {"spark1": machine, "spark2": Machine(key)}
    shown = ["ssh-keygen", "-l", "-F", "spark1", "-f", str(known_hosts.place(tmp_path))]
    assert machine.fingerprint in subprocess.run(shown, capture_output=True, text=True, check=True).stdout


def test_other_lines_stay_and_one_name_is_replaced(tmp_path: Path, key: str) -> None:
    known_hosts.place(tmp_path).write_text(f"# mine\n@cert-authority *.lan {key}\nspark1 {key}\nspark1x {key}\n")
    known_hosts.keep(tmp_path, {"spark1": Machine(key, ID)})
    text = known_hosts.place(tmp_path).read_text()
    assert text == f"# mine\n@cert-authority *.lan {key}\nspark1x {key}\nspark1 {key} machine-id={ID}\n"
    assert list(known_hosts.read(tmp_path)) == ["spark1x", "spark1"]


def test_the_command_of_the_refusal_forgets_one_machine(tmp_path: Path, key: str) -> None:
    known_hosts.keep(tmp_path, {"spark1": Machine(key, ID), "spark2": Machine(key, ID)})
    forget = ["ssh-keygen", "-f", str(known_hosts.place(tmp_path)), "-R", "spark1"]
    subprocess.run(forget, check=True, capture_output=True)
    assert known_hosts.read(tmp_path) == {"spark2": Machine(key, ID)}


def test_a_site_without_a_record_knows_nobody(tmp_path: Path) -> None:
    assert known_hosts.read(tmp_path) == {}


@pytest.mark.parametrize("seen", [Machine(), Machine("a"), Machine("a", "1"), Machine("a", "", "s")])
def test_only_what_is_known_of_both_can_differ(seen: Machine) -> None:
    assert not Machine("a", "1").differs(seen) and Machine("b", "2", "t").differs(seen) is any(seen)
