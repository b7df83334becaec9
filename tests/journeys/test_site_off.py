"""A site that does not answer: nothing hangs, everything says where to look, and what needs only a file is done."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.journeys.conftest import Sparks
from tests.journeys.sites import off
from tests.journeys.terminal import PROGRAMS, Terminal
from tests.places import REPO

SITE = "-i inventories/evening"


@pytest.mark.parametrize(
    "command",
    ["status", "logs", "stop all", "start", "usage", "fleet plan --running", "allreduce openai--gpt-oss-120b--2node"],
)
def test_what_asks_the_cluster_says_that_none_answers(terminal: Terminal, command: str) -> None:
    off(terminal.home)
    terminal.type(f"sparkloom {command} {SITE}", 2).has("Connection refused", "kubeconfig")


def test_sparks_that_answer_tell_what_the_cluster_does_not(home: Path, sparks: Sparks) -> None:
    """Four real sshd, and an API server that is gone: nothing was known of anything then."""
    hosts = off(home) / "hosts.yml"
    hosts.write_text(re.sub(r", ansible_port: \d+", "", hosts.read_text()))
    terminal = Terminal(home, path=f"{sparks.path}:{PROGRAMS}")
    seen = terminal.type(f"sparkloom status {SITE}", 1)
    seen.has("Connection refused", "spark1", "spark4", "no rank was started here", "not known without the API")
    told = json.loads(terminal.type(f"sparkloom status {SITE} --json", 1, copied=True).text)
    assert told["serving"] is None and all(said[-1] == "no rank was started here" for said in told["nodes"].values())
    terminal.type(f"sparkloom logs glm {SITE}", 1).has("no rank was started here", "Connection refused")


def test_status_as_json_and_watched(terminal: Terminal) -> None:
    off(terminal.home)
    told = json.loads(terminal.type(f"sparkloom status {SITE} --json 2>/dev/null", 2, copied=True).text)
    assert told["error"] == "unusable input" and "Connection refused" in told["problems"][0]["message"]
    terminal.begin(f"sparkloom status --watch {SITE}")
    terminal.sees("refused")
    terminal.interrupt()
    assert terminal.end(None, copied=True).code in (1, 2, 130)


def test_the_kubeconfig_is_missing_or_nonsense(terminal: Terminal) -> None:
    off(terminal.home)
    for spoilt in ("echo nonsense >", "echo [ >", "echo 'users: 3' >", ": >", "head -c 999 /dev/urandom >", "rm"):
        terminal.type(f"{spoilt} .kube/sparkloom-evening")
        terminal.type(f"sparkloom status {SITE}", 2).has(".kube/sparkloom-evening", "kubeconfig")


def test_doctor_names_every_part_that_does_not_answer(terminal: Terminal) -> None:
    off(terminal.home)
    seen = terminal.type(f"sparkloom doctor {SITE}", 1)
    seen.has(
        "spark1", "does not answer on SSH at 127.0.0.11 port", "(Connection refused)", "hosts.yml", "not as planned"
    )
    terminal.type(f"sparkloom bench {SITE}", 2).has("127.0.0.11", "does not answer")


def test_a_name_that_nobody_knows_is_said_in_words_with_its_cure(terminal: Terminal) -> None:
    hosts = off(terminal.home) / "hosts.yml"
    hosts.write_text(re.sub(r"ansible_host: 127.0.0.1(\d)", r"ansible_host: spark\1.invalid", hosts.read_text()))
    seen = terminal.type(f"sparkloom doctor {SITE}", 1)
    seen.has(
        "does not answer on SSH at spark1.invalid", "(name not found)", "ansible_host", "-i names another inventory"
    )
    assert "-vvv" not in seen.text and "resolve hostname" not in seen.text and "FAIL" not in seen.text


def test_up_stops_at_what_does_not_answer_and_changes_nothing(terminal: Terminal) -> None:
    off(terminal.home)
    seen = terminal.type(f"sparkloom up {SITE}", 1)
    seen.has("Connection refused", "ansible_host and ansible_user in hosts.yml", "not up after", "up.log")
    assert "Refuse a run" in seen.words and "Prepare every node" not in seen.words, "it was not begun"


def test_up_on_two_sparks_takes_what_fits_them_and_says_so(terminal: Terminal) -> None:
    hosts = off(terminal.home) / "hosts.yml"
    hosts.write_text(re.sub(r"^ +spark[34]: .*\n", "", hosts.read_text(), flags=re.M))
    seen = terminal.type(f"sparkloom up {SITE}", 1)
    seen.has("super-120b-a12b-nvfp4--ep4 asks for more than the 2 Sparks of 'evening'", "fits and is served")


@pytest.mark.parametrize("play", ["preflight", "switch"])
def test_a_playbook_stops_there_too(terminal: Terminal, play: str) -> None:
    off(terminal.home)
    profile = "-e profile=openai--gpt-oss-120b" if play == "switch" else ""
    terminal.type(f"cd {REPO}")
    command = f"ansible-playbook -i ~/inventories/evening playbooks/{play}.yml {profile}"
    seen = terminal.type(command, None, copied=True)  # Ansible draws its own lines
    assert seen.code in (2, 4)
    seen.has("Connection refused")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            "teardown.yml --limit spark4 -e teardown_serving=true",
            ("leaves out spark1, spark2, spark3", "For all of them: "),
        ),
        ("stop.yml -l '!spark1' -e group=all", ("leaves out spark1", "operation_leave_out=true")),
        (
            "teardown.yml -e teardown_serving=true",
            ("Connection refused", "Nothing was taken away", "teardown_cluster=true"),
        ),
    ],
)
def test_nothing_ends_that_was_not_meant_or_cannot_be_reached(terminal: Terminal, typed: str, told: tuple) -> None:
    off(terminal.home)
    terminal.type(f"cd {REPO}")
    terminal.type(f"ansible-playbook -i ~/inventories/evening playbooks/{typed}", 2, copied=True).has(*told)


def test_a_key_is_made_limited_and_revoked_without_the_cluster(terminal: Terminal) -> None:
    site = off(terminal.home)
    keys = site / "group_vars/all/keys.yml"
    made = terminal.type(f"sparkloom keys add anna --offline {SITE}").lines
    assert made[0].startswith("sk-") and made[0] not in keys.read_text() and keys.stat().st_mode & 0o077 == 0
    terminal.type(f"sparkloom keys add anna --offline {SITE}", 2).has("'anna' has a key already", "revoke anna")
    limits = "--requests 5 --tokens 1000 --expires 2d --models glm"
    terminal.type(f"sparkloom keys add bob --offline {limits} {SITE}").has("bob", "glm")
    listed = {
        one["name"]: one
        for one in json.loads(terminal.type(f"sparkloom keys list --json {SITE}", copied=True).text)["keys"]
    }
    assert (listed["bob"]["requests_per_minute"], listed["bob"]["tokens_per_minute"]) == (5, 1000)
    terminal.type(f"sparkloom keys list {SITE}").has("anna", "bob", "glm")
    for option, words in (
        ("--expires yesterday", "yesterday"),
        ("--requests 0", "requests_per_minute"),
        ("--tokens many", "--tokens"),
        ("--models ''", "--models"),
    ):
        terminal.type(f"sparkloom keys add eve --offline {option} {SITE}", 2).has(words)
    terminal.type(f"sparkloom keys add 'Eve X' --offline {SITE}", 2).has("'Eve X'")
    terminal.type(f"sparkloom keys revoke nobody --offline {SITE}", 2).has("nobody", "anna")
    terminal.type(f"sparkloom keys revoke anna --offline {SITE}").has("no key of anna any more")
    assert "anna" not in keys.read_text()


def test_a_key_is_kept_when_the_cluster_was_not_told(terminal: Terminal) -> None:
    site = off(terminal.home)
    seen = terminal.type(f"sparkloom keys add anna {SITE}", 1).has("sk-", "Connection refused", "gateway.yml")
    assert seen.lines[0].startswith("sk-") and "anna" in (site / "group_vars/all/keys.yml").read_text()
    terminal.type(f"sparkloom keys revoke anna {SITE}", 1).has("Connection refused")
    assert "anna" not in (site / "group_vars/all/keys.yml").read_text()


def test_an_inventory_with_a_slip_is_told_by_place(terminal: Terminal) -> None:
    site: Path = off(terminal.home)
    hosts, cluster = site / "hosts.yml", site / "group_vars/all/cluster.yml"
    whole = hosts.read_text()
    for old, new, words in (
        ("spark2: {", "spark2: [", "hosts.yml:"),
        ("fabric_index: 2", "fabric_index: 1", "fabric_index"),
        ("management_address: 127.0.0.12", "management_address: 127.0.0.1222", "127.0.0.1222"),
        ("fabric_index: 2", "fabric_index: two", "two"),
        ("    sparks:", "    sparkles:", "sparks"),
    ):
        hosts.write_text(whole.replace(old, new, 1))
        terminal.type(f"sparkloom plan glm-4.7-nvfp4 {SITE}", 2).has(words)
    hosts.write_text(whole)
    cluster.write_text(cluster.read_text().replace("namespace:", "namespaces:"))
    terminal.type(f"sparkloom plan glm-4.7-nvfp4 {SITE}", 2).has("did you mean 'namespace'", "cluster.yml:")
    terminal.type("sparkloom plan glm-4.7-nvfp4 -i inventories/nowhere", 2).has("no such inventory folder")
    terminal.type("sparkloom up", 2).has("which site?", "-i")
