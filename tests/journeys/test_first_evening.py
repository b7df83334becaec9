"""A first evening: four machines that answer on SSH, an inventory of them, and `up`, which stops at preflight."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.conftest import Sparks
from tests.journeys.terminal import Terminal
from tests.places import REPO

SITE = "-i inventories/home"
ALONE = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"


@pytest.fixture
def owner(home: Path, programs: Path, sparks: Sparks) -> Iterator[Terminal]:
    collections = home / ".local/share/sparkloom"
    collections.mkdir(parents=True)
    (collections / "collections").symlink_to(REPO / ".venv/collections")  # fetched once before
    made = Terminal(home, path=f"{sparks.path}:{programs}")
    yield made
    made.close()


def test_from_four_machines_to_a_refusal_that_says_why(owner: Terminal, sparks: Sparks) -> None:
    before = _state()
    owner.begin("sparkloom init home")
    for question, answer in (
        ("Sparks", " ".join(sparks.addresses)), ("user", "nvidia"), ("profile", ""), ("Sparks' keys", "yes"),
    ):  # fmt: skip
        owner.sees(question)
        owner.sees(": ")
        owner.answer(answer)
    seen = owner.end()
    seen.has("spark-1", "spark-4", "links on enP2p1s0f0np0, enp1s0f0np0", "wrote inventories/home: 4 Sparks")
    served = seen.words.split("serving ")[1].split()[0]  # the proposal: the example's, as there are four
    owner.type(f"sparkloom init home -a {sparks.addresses[0]}", 2).has("is there already")
    owner.type(f"sparkloom plan {served} {SITE}").has("4 nodes of 'home'", "rank 3 on spark-4")
    refused = owner.type(f"sparkloom up {SITE}", 1).has("cause: all", "not up after", "build/home/up.log")
    refused.has("fix: ", "also: ", "expected", "all cgroups", f"the same command again: sparkloom up {SITE}")
    refused.has("weights: ", "GB at ~", "image: ~", "first start: ", "kernels compile, once: up to ~36 min")
    assert len(refused.lines) <= 26, refused.text  # a screen
    kept = "build/home/preflight.txt"
    owner.type(f"grep -e '^FAIL .*rail a' -e '^kernel' {kept}", copied=True).has("rail a: found", "warn")
    assert (owner.home / "build/home/preflight.json").is_file()
    assert _state() == before


def test_keys_that_nobody_confirms_are_written_nowhere(owner: Terminal, sparks: Sparks) -> None:
    """Red before: written without a question, and into the person's own known_hosts too."""
    words = f"sparkloom init home -a {sparks.addresses[0]} --user nvidia --profile {ALONE}"
    for answer in ("no", ""):
        owner.begin(words)
        owner.sees("its SSH host key: SHA256:")
        owner.sees("yes or no: ")
        assert not (owner.home / "inventories").exists()
        owner.answer(answer)
        owner.end(2).has("spark-1", "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")
    assert not (owner.home / "inventories").exists()
    owner.type(f"{words} --yes").has("its SSH host key: SHA256:", "host keys are in inventories/home/known_hosts")
    assert (owner.home / "inventories/home/known_hosts").read_text().startswith("spark-1 ssh-ed25519 ")
    owner.type(f"{words.replace('home', 'piped')} < /dev/null").has("wrote inventories/piped")
    assert not (sparks.path.parent / "known_hosts").exists()


def test_a_key_that_is_another_in_the_person_s_own_record_ends_it(home: Path, programs: Path, sparks: Sparks) -> None:
    shell = ("unshare", "--mount", "bash", "--norc", "--noprofile", "--noediting")
    owner = Terminal(home, path=f"{sparks.path}:{programs}", shell=shell)
    owner.type('sed "s#:/root:#:$HOME:#" /etc/passwd > passwd; mount --bind passwd /etc/passwd')  # where ssh looks
    other, where = (sparks.path.parent / "spark-2.key.pub").read_text(), f"[{sparks.addresses[0]}]:{sparks.port}"
    (home / ".ssh").mkdir()
    (home / ".ssh/known_hosts").write_text(f"{where} {other}")
    words = f"sparkloom init home -a {sparks.addresses[0]} --user nvidia --profile {ALONE} --yes"
    owner.type(words, 2).has("Host key verification failed")
    assert not (home / "inventories").exists()
    owner.type(f"ssh-keygen -R {where}", copied=True)
    before = (home / ".ssh/known_hosts").read_text()
    owner.type(words).has("wrote inventories/home")
    assert (home / ".ssh/known_hosts").read_text() == before
    owner.close()


def test_init_says_what_is_no_spark(home: Path, programs: Path, sparks: Sparks) -> None:
    terminal, one = Terminal(home, path=f"{sparks.path}:{programs}"), f"-a {sparks.addresses[0]}"
    named = "--profile glm-4.7-nvfp4 --user"
    for words, told in (
        (f"-a 127.0.0.99 {named} nvidia", "ssh-copy-id nvidia@127.0.0.99"),
        (f"{one} {one} {named} nvidia", "two machines have the name spark-1"),
        (f"{one} {named} nobody-here", "Permission denied"),
        ("</dev/null", "--address"),
    ):
        terminal.type(f"sparkloom init home {words}", 2).has(told)
    terminal.type(f"sparkloom init 'My Rack' {one}", 2).has("expected a short name")
    assert not (home / "inventories").exists()


def _state() -> list[str]:
    """What a playbook would have touched first, had it been let."""
    places = ("/etc/sysctl.d", "/etc/netplan", "/etc/modules-load.d", "/etc/systemd/system", "/var/lib/rancher")
    return sorted(str(path) for place in places if Path(place).is_dir() for path in Path(place).rglob("*"))
