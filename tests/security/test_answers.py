"""A taken-over Spark answers: nothing that it says becomes a template, a program or an access on this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.inputs import answers, lock_file
from sparkloom.site import new_site, sparks
from sparkloom.site.cabling import look
from sparkloom.site.k3s import access
from tests.k3s_signer import authority, signing
from tests.places import REPO

SAID = {
    "name": "spark-a", "address": "192.0.2.11", "interface": "enP7s7", "port": "enp1s0f0np0",
    "machine-id": "0123456789abcdef" * 2, "serial": "1993A-0001",
}  # fmt: skip
TEMPLATE = "{{ lookup('pipe', 'touch MARK') }}"
HOSTILE = {
    "template": TEMPLATE,
    "second key": f'X, ansible_python_interpreter: "{TEMPLATE}"',
    "mapping": f"X}}, extra: {{a: {TEMPLATE}",
    "anchor": "&a X",
    "tag": "!!python/object/apply:os.system [id]",
    "colours": "X\x1b[2J\x1b]0;owned\x07",
    "return": "X\rY",
    "long": "X" * 4000,
    "option": "-oProxyCommand=id",
}


def told(**values: str) -> sparks.Spark:
    said = {**SAID, **values}
    port = f"port {said['port']} 0x15b3 0x1021 1"
    lines = [f"{key} {said[key]}" for key in SAID if key != "port"]
    return sparks._parsed("192.0.2.11", "\n".join(["machine aarch64", "gpu NVIDIA GB10", *lines, port]))


@pytest.mark.parametrize("attack", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("key", SAID)
def test_what_a_spark_says_of_itself_is_its_kind_or_refused(key: str, attack: str) -> None:
    """`address` of a taken-over Spark gave code on the owner's machine at `up`."""
    assert told().trouble == ""
    said = attack.replace("X", SAID[key])
    spark = told(**{key: said})
    kept = [spark.name, spark.address, spark.interface, *spark.linked, *spark.machine]
    assert spark.trouble or all(word in SAID.values() for word in kept if word), spark
    if spark.trouble:
        with pytest.raises(InputError):
            new_site.judge([spark])


def test_hosts_yml_is_written_by_a_dumper(tmp_path: Path) -> None:
    """The owner's own words, too: they are one value, whatever they hold."""
    spark = sparks.Spark("a b: {c}, d", "spark-a", "enP7s7", "192.0.2.11")
    content = yaml.safe_load(new_site.hosts([spark], "ada: {x}"))
    assert content["all"]["vars"] == {"ansible_user": "ada: {x}"}
    assert content["all"]["children"]["sparks"]["hosts"]["spark-a"]["ansible_host"] == "a b: {c}, d"


def test_anybody_may_announce_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"=;eth0;IPv4;s;_ssh._tcp;local;spark-{n}.local;{said};22;" for n, said in enumerate(HOSTILE.values())]
    monkeypatch.setattr(sparks.shutil, "which", lambda name: "/bin/browser")
    monkeypatch.setattr(sparks, "_heard", lambda browser, service: lines)
    monkeypatch.setattr(sparks, "_outward", lambda: [])
    assert sparks.announced() == []


@pytest.mark.parametrize("attack", HOSTILE.values(), ids=HOSTILE)
def test_what_fabric_yml_takes_from_a_port(attack: str) -> None:
    port = {"interface": "enp1s0f0np0", "pci": "0000:01:00.0"}
    links = {"spark-a": {"links": {}, "heard": {}, "lldp": {}, "neighbours": {}}}
    assert look.merge({"spark-a": {"ports": [port]}}, links)
    for key, usual in port.items():
        with pytest.raises(InputError, match=r"spark-a:.*expected"):
            look.merge({"spark-a": {"ports": [{**port, key: attack.replace("X", usual)}]}}, links)


@pytest.mark.parametrize("attack", HOSTILE.values(), ids=HOSTILE)
def test_what_the_locks_take_from_a_node(tmp_path: Path, attack: str) -> None:
    file = tmp_path / "images.yml"
    for keep, entry in (
        (lock_file.keep, lock_file.Image("lmsysorg/sglang", "v1", attack, "2026-11-25", "spark-a")),
        (lock_file.keep, lock_file.Model("org/model", attack, "2026-11-25", "spark-a")),
    ):
        with pytest.raises(InputError, match=r"spark-a:.*expected"):
            keep(file, entry)  # type: ignore[operator]
    assert not file.exists()


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", "touch MARK"]}
KUBECONFIG = yaml.safe_dump({"clusters": [{"cluster": {"insecure-skip-tls-verify": True}}], "users": [{"exec": EXEC}]})
API, WHO, SITE = "https://192.0.2.1:6443", "sparkloom:ada@laptop", "sparkloom-home"
ANSWERS: dict[str, Callable[[str], str]] = {
    "nothing": lambda told: "",
    "a template": lambda told: TEMPLATE,
    "a kubeconfig": lambda told: KUBECONFIG,
    "a certificate of another key": lambda told: authority() + authority(),
    "no authority": lambda told: told.partition(access.END)[0] + access.END,
    "an authority of nobody": lambda told: told.partition(access.END)[0] + access.END + KUBECONFIG,
}


@pytest.mark.parametrize("attack", ANSWERS.values(), ids=ANSWERS)
def test_of_the_first_server_two_certificates_are_taken(tmp_path: Path, attack: Callable[[str], str]) -> None:
    """Its whole kubeconfig was kept once: `exec:` in it was a program on this machine at the next `kubectl`."""
    target = tmp_path / "kubeconfig"
    with pytest.raises(InputError, match=r"the first server"):
        access.renew(str(target), WHO, API, SITE, signing(change=attack))
    assert not target.exists()


def test_whatever_else_it_says_is_no_part_of_a_kubeconfig(tmp_path: Path) -> None:
    target = tmp_path / "kubeconfig"
    access.renew(str(target), WHO, API, SITE, signing(change=lambda told: told + KUBECONFIG))
    made = yaml.safe_load(target.read_text())
    assert set(made["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert set(made["clusters"][0]["cluster"]) == {"server", "certificate-authority-data"}
    assert made["clusters"][0]["cluster"]["server"] == API and "touch" not in target.read_text()


def test_ansible_reads_what_init_wrote_and_runs_nothing(tmp_path: Path) -> None:
    """Ansible itself as the judge: an inventory made of a hostile answer is not there, one of a usual answer is."""
    mark = tmp_path / "mark"
    spark = told(address=f'192.0.2.11, ansible_python_interpreter: "{TEMPLATE.replace("MARK", str(mark))}"')
    with pytest.raises(InputError):
        new_site.write(tmp_path / "home", [spark], "ada", "nvidia--minimax-m2.5-nvfp4")
    assert not (tmp_path / "home").exists()
    new_site.write(tmp_path / "home", [told()], "ada", "nvidia--minimax-m2.5-nvfp4")
    inventory = [REPO / ".venv/bin/ansible-inventory", "-i", tmp_path / "home", "--host", "spark-a"]
    done = subprocess.run(inventory, capture_output=True, text=True, timeout=300, cwd=REPO)
    assert '"management_address": "192.0.2.11"' in done.stdout, done.stderr
    assert not mark.exists() and answers.fault(answers.ADDRESS, "192.0.2.300")


LIAR = """#!/bin/sh
echo '{"answers": [{"changed": false, "add_host": {"host_name": "evil", "groups": ["all"]}}], "ago": [0]}'
"""
LIED_TO = """
- {hosts: all, gather_facts: false, tasks: [{sparkloom_node: {do: memory}}]}
- {hosts: all, gather_facts: false, tasks: [{ansible.builtin.debug: {msg: "{{ groups.all }}"}}]}
"""


def test_a_node_s_answer_adds_no_host_to_the_run(tmp_path: Path) -> None:
    """On the old code the next play ran on it too, with any connection that the node chose: this machine's own."""
    (tmp_path / "liar").write_text(LIAR)
    (tmp_path / "liar").chmod(0o755)
    (tmp_path / "play.yml").write_text(LIED_TO)
    (tmp_path / "hosts").write_text(f"node ansible_connection=local ansible_python_interpreter={tmp_path}/liar\n")
    command = [REPO / ".venv/bin/ansible-playbook", "-i", tmp_path / "hosts", tmp_path / "play.yml"]
    environment = {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "default"}
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "evil" not in done.stdout, done.stdout
