"""The stand-in takes and refuses a configuration as K3s does, and is one file that runs by itself."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from sparkloom.site.k3s import access, steps
from testbed.make import k3s
from tests.plugins.loading import module


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("k3s") / "k3s"
    k3s.standin(target, k3s.release())
    return target


def parse(program: Path, command: str, config: dict[str, Any], tmp_path: Path, *words: str) -> tuple[str, str]:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import arguments\n"
        "try: print(json.dumps(arguments.parse(sys.argv[2], sys.argv[4:], sys.argv[3])))\n"
        "except arguments.BadFlag as refusal: print(refusal)"
    )
    done = subprocess.run([sys.executable, "-c", code, program, command, path, *words], capture_output=True, text=True)
    return done.stdout.strip(), done.stderr.strip()


def test_it_is_one_executable_file_and_the_same_each_time(program: Path, tmp_path: Path) -> None:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"k3s version {k3s.release()} ")
    k3s.standin(tmp_path / "k3s", k3s.release())
    assert (tmp_path / "k3s").read_bytes() == program.read_bytes()


def test_a_server_skips_what_it_does_not_know_and_an_agent_ends(program: Path, tmp_path: Path) -> None:
    config = {"node-name": "a", "no-such-key": 1}
    out, err = parse(program, "server", config, tmp_path)
    assert out == '{"node-name": "a"}' and "Unknown flag --no-such-key found in config.yaml, skipping" in err
    assert parse(program, "agent", config, tmp_path)[0] == "flag provided but not defined: -no-such-key"
    assert parse(program, "agent", {"cluster-init": True}, tmp_path)[0].endswith("not defined: -cluster-init")


def test_a_flag_on_the_command_line_must_be_known_to_both(program: Path, tmp_path: Path) -> None:
    assert parse(program, "server", {}, tmp_path, "--nope=1")[0] == "flag provided but not defined: -nope"


def test_values_are_read_by_type_and_lists_grow(program: Path, tmp_path: Path) -> None:
    config = {"tls-san": ["a", "b"], "cluster-init": True, "https-listen-port": 7443}
    out, _ = parse(program, "server", config, tmp_path, "--tls-san=c")
    assert out == '{"cluster-init": true, "https-listen-port": 7443, "tls-san": ["a", "b", "c"]}'
    assert "parse error" in parse(program, "server", {"cluster-init": "perhaps"}, tmp_path)[0]


def test_drop_ins_come_after_the_file(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "config.yaml.d"
    folder.mkdir()
    (folder / "10.yaml").write_text("node-name: other\nnode-label+: [c=d]\n")
    out, _ = parse(program, "agent", {"node-name": "a", "node-label": ["a=b"]}, tmp_path)
    assert out == '{"node-label": ["a=b", "c=d"], "node-name": "other"}'


def test_drop_ins_are_read_by_name_whatever_the_case_of_their_ending(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "config.yaml.d"
    folder.mkdir()
    (folder / "10.YML").write_text("node-name: first\n")
    (folder / "20.yaml").write_text("node-name: second\n")
    (folder / "30.txt").write_text("node-name: none\n")
    assert parse(program, "agent", {}, tmp_path)[0] == '{"node-name": "second"}'
    (folder / "30.yml").write_text("node-name: third\n")
    assert parse(program, "agent", {}, tmp_path)[0] == '{"node-name": "third"}'


JOIN = """
import os, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[1])
folder = Path(sys.argv[2])
import certs
certs.DATA, certs.TLS = folder, folder / "server/tls"
for name in ("CA", "CA_KEY", "SERVER", "SERVER_KEY", "CLIENT_CA", "CLIENT_CA_KEY", "ADMIN", "ADMIN_KEY"):
    setattr(certs, name, certs.TLS / getattr(certs, name).name)
import node, server
server.SERVER, server.OBJECTS = folder / "server", folder / "objects.json"
server.KUBECONFIG, node.PASSWORD = folder / "k3s.yaml", folder / "password"
state = server.State()
state.passwords = {"server": "s", "node": "n"}
server.Handler.state = state
certs.provide(["127.0.0.1"])
web = server.served(0)
address, ca = f"127.0.0.1:{web.server_address[1]}", certs.CA.read_bytes()

def told(login, interface="lo"):
    try:
        node.configure({"node-name": "spark2", "flannel-iface": interface}, address, ca, login)
    except node.NotYetError as refusal:
        return str(refusal)
    return "let in"

print(told(("node", "wrong")))
print(told(("node", "n"), "enP7s8"))
print(told(("node", "n")))
print(told(("node", "n")))
node.PASSWORD.unlink()
print(told(("node", "n")))
node.ask(address, "/api/v1/nodes/spark2", ca, ("server", "s"), {"metadata": {"labels": {"mine": "1", "old": "1"}}})
new = {"metadata": {"name": "spark2", "labels": {"old": "2"}}}
print(node.relabelled(new, address, ca, ("node", "n"))["metadata"]["labels"])
node.ask(address, "/api/v1/nodes/spark2", ca, ("server", "s"), method="DELETE")
print(told(("node", "n")))
server.write_kubeconfig({}, ca, certs.ADMIN.read_bytes(), certs.ADMIN_KEY.read_bytes(), address)
import kubectl
print(kubectl.fetch(kubectl.opened(server.KUBECONFIG), "/api/v1/nodes").decode())
kubectl.ADMIN = server.KUBECONFIG
sys.stdin = open(folder / "asked.json")
name = "csr/sparkloom-1"
for words in (["apply", "-f", "-"], ["certificate", "approve", name], ["wait", name, "--for=jsonpath={.status}"],
              ["get", name, "-o", "jsonpath={.status.certificate}"]):
    assert kubectl.main([f"--kubeconfig={kubectl.ADMIN}", *words]) == 0, words
"""


def test_it_refuses_a_node_in_the_words_of_the_real_one(program: Path, tmp_path: Path) -> None:
    """What the real v1.32.0 said, at level info, for ever (testbed's notes of it: docs/k3s.md)."""
    asked = tmp_path / "asked"
    openssl = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run([*openssl, "-subj", "/CN=ada", "-keyout", tmp_path / "key", "-out", asked], check=True)
    items = access._objects("ada", "sparkloom-1", asked.read_bytes())
    (tmp_path / "asked.json").write_text(json.dumps({"items": items}))
    done = subprocess.run([sys.executable, "-c", JOIN, program, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    token, port, new, again, reinstalled, labels, forgotten, admin, signed = done.stdout.splitlines()
    admitted = x509.load_pem_x509_certificate(base64.b64decode(signed))
    assert admitted.subject.rfc4514_string() == "CN=ada"
    assert admitted.not_valid_after_utc - admitted.not_valid_before_utc == access.LIFE
    assert token == "failed to retrieve configuration from server: not authorized"
    assert port == "unable to find interface enP7s8: route ip+net: no such network interface"
    assert new == again == forgotten == "let in"
    assert '"kind": "NodeList"' in admin, "with the client's certificate of the administrator's file"
    assert reinstalled.startswith("Node password rejected, duplicate hostname or contents of")
    assert labels == "{'mine': '1', 'old': '2'}", "labels of the settings are set at each start, others stay"
    known = {line: [cause["id"] for cause, *_ in named([line])] for line in (token, port, reinstalled)}
    assert list(known.values()) == [["k3s-not-authorized"], ["k3s-no-interface"], ["k3s-node-password"]]


def named(lines: list[str]) -> Any:
    """As the product names it."""
    return module("k3s_node", "host").named(lines, steps.causes())
