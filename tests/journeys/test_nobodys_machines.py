"""The shipped example's addresses are a stranger's: nothing that is typed ever connects to one.

The addresses are this machine's own here, in a network that leads nowhere else, and its kernel counts what is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.sites import KUBECONFIG
from tests.journeys.terminal import Terminal
from tests.journeys.test_poor_machines import apart
from tests.later import LATER
from tests.places import REPO

EXAMPLE = REPO / "inventories/gb10"
RECIPES = REPO / "tests/journeys/recipes"
PROFILE = "openai--gpt-oss-120b--2node"
REFUSED = ("group_vars/all/cluster.yml", "example: true", "sparkloom init")
ASKING = (
    "status", "status --watch", "status --json", "logs", "usage", "doctor", "doctor --json", "bench", "up", "up -K",
    "stop all", "start all", "keys list", "keys add anna", "keys revoke anna", "keys renew anna", "connect openai",
    "fabric discover", "fleet plan --running", f"allreduce {PROFILE}", "image build llama.cpp-b8399",
)  # fmt: skip
COMPUTING = (
    f"plan {PROFILE}", f"lint {PROFILE}", f"show manifests {PROFILE}", f"show argv {PROFILE} --rank 1", "fabric",
    "fleet plan", "profiles --fits --context 4k", f"export {PROFILE} --as compose", "metrics rules --out rules.yml",
    f"show env {PROFILE} --rank 1", f"argv {PROFILE} --rank 1", f"env {PROFILE} --rank 1", f"render {PROFILE}",
    f"evidence find {PROFILE}",
    f"import {RECIPES}/compose.yml", f"profile new {RECIPES}/config.json",
)  # fmt: skip
PLAYBOOKS = ("site.yml", *sorted(f"playbooks/{file.name}" for file in (REPO / "playbooks").glob("*.yml")))


@pytest.fixture
def nowhere(home: Path) -> Iterator[Terminal]:
    """Where spark1.local to spark4.local and all that they stand for are here, and nobody listens."""
    made = apart(home, "--net", "--mount", PWD=str(home))
    addresses = [f"192.168.1.{n}" for n in range(11, 15)]
    names = [f"{address} spark{n}.local" for n, address in enumerate(addresses, 1)]
    (home / "hosts").write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
    (home / ".kube").mkdir()
    (home / ".kube/sparkloom-gb10").write_text((KUBECONFIG % 6443).replace("127.0.0.1", addresses[0]))
    made.type("mount --bind hosts /etc/hosts; ip link set lo up")
    for address in (*addresses, *resolvers()):
        made.type(f"ip address add {address}/32 dev lo")
    yield made
    made.close()


def resolvers() -> set[str]:
    """Who is asked for names: here too, so that a question is counted."""
    said = Path("/etc/resolv.conf").read_text(encoding="utf-8")
    return {name for name in re.findall(r"^nameserver (\d[\d.]+)", said, re.M) if not name.startswith("127.")}


def sent(terminal: Terminal) -> int:
    """Connections begun and datagrams sent in this network since it is there: the kernel's own count."""
    said = terminal.type("cat /proc/net/snmp", copied=True).text
    count = 0
    for protocol, name in (("Tcp", "ActiveOpens"), ("Udp", "OutDatagrams")):
        names, values = (line.split() for line in re.findall(rf"^{protocol}: (.*)", said, re.M))
        count += int(values[names.index(name)])
    return count


def test_a_command_that_asks_machines_refuses_the_example(nowhere: Terminal) -> None:
    for command in ASKING:
        seen = nowhere.type(f"sparkloom {command} -i {EXAMPLE}", 2, copied="--json" in command).has(*REFUSED)
        assert "password" not in seen.words
        if "--json" not in command and "--watch" not in command:  # the file itself, and the refusal is not in another
            assert seen.words.count("[") == 1 and ":1:1" not in seen.text, seen.text
    nowhere.type("sparkloom status", 2).has(*REFUSED)  # which is meant where none is named
    grid = {"name": "x", "profile": PROFILE, "axes": {"env.A": ["1"]}, "inventory": str(EXAMPLE)}
    (nowhere.home / "grid.json").write_text(json.dumps(grid))
    nowhere.type("sparkloom matrix grid.json run", 2).has(*REFUSED)
    assert sent(nowhere) == 0
    # a server that somebody names is asked, and the site's part of the record says why it is not known
    nowhere.type(f"sparkloom bench --url http://127.0.0.1:9 -i {EXAMPLE}", 2).has("127.0.0.1:9", "does not answer")


def test_what_only_computes_goes_on(nowhere: Terminal) -> None:
    for command in COMPUTING:
        nowhere.type(f"sparkloom {command} -i {EXAMPLE} > out 2>&1; test $? -lt 2")
        assert "example: true" not in (nowhere.home / "out").read_text()
    assert sent(nowhere) == 0


@pytest.mark.slow
@pytest.mark.parametrize("check", ["", pytest.param("--check", marks=LATER)])
def test_no_playbook_connects_to_it(nowhere: Terminal, check: str) -> None:
    nowhere.type(f"cd {REPO}")
    for play in PLAYBOOKS:
        words = f"ansible-playbook -i {EXAMPLE} {play} -e profile={PROFILE} {check}"
        seen = nowhere.type(words, None, copied=True)
        if seen.code or not check:  # a dry benchmark does nothing
            seen.has(*REFUSED)
        assert sent(nowhere) == 0, seen.text


def test_a_copy_without_the_mark_does_connect_and_is_counted(nowhere: Terminal) -> None:
    """Else the counts above would say nothing."""
    nowhere.type(f"cp -r {EXAMPLE} mine; sed -i '/^example: /d' mine/group_vars/all/cluster.yml")
    before = 0
    for command, code in (("bench", 2), ("status", 2), ("doctor", 1)):
        nowhere.type(f"sparkloom {command} -i mine", code)
        assert sent(nowhere) > before, command
        before = sent(nowhere)
