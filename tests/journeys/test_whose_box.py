"""After a power cut the router gave every Spark another one's address: nothing is written before that is told."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.conftest import Sparks
from tests.journeys.sites import silent
from tests.journeys.terminal import Terminal
from tests.journeys.test_first_evening import _state
from tests.places import REPO

SITE = "-i inventories/home"
PROFILE = "nvidia--nemotron-3-nano-omni-30b-a3b-reasoning-nvfp4"
TURNED = (3, 4, 2, 1)  # who answers at the addresses of 1, 2, 3, 4
KEY = re.compile(r"^SHA256:[A-Za-z0-9+/]{43}$")


@pytest.fixture
def owner(tmp_path: Path, programs: Path, sparks: Sparks) -> Iterator[Terminal]:
    """Their home is a long one: ssh's sockets had no room there."""
    home = tmp_path / ("a-home-of-many-letters-" * 4)
    collections = home / ".local/share/sparkloom"
    collections.mkdir(parents=True)
    (collections / "collections").symlink_to(REPO / ".venv/collections")  # fetched once before
    made = Terminal(home, path=f"{sparks.path}:{programs}")
    sparks.begin()
    yield made
    made.close()


def init(owner: Terminal, sparks: Sparks) -> Path:
    """The site's known_hosts."""
    reached = " ".join(f"-a {address}" for address in sparks.addresses)
    words = owner.type(f"sparkloom init home {reached} --user nvidia --profile {PROFILE} --yes").text.split()
    assert [word for word in words if KEY.match(word)] == [fingerprint(sparks, n) for n in range(1, 5)]
    return owner.home / "inventories/home/known_hosts"


def fingerprint(sparks: Sparks, n: int) -> str:
    file = sparks.path.parent / f"spark-{n}.key.pub"
    return subprocess.run(["ssh-keygen", "-lf", str(file)], capture_output=True, text=True, check=True).stdout.split()[
        1
    ]


def renew(sparks: Sparks, n: int) -> None:
    key = sparks.path.parent / f"spark-{n}.key"
    key.unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, input=b"y")


def kept_connections(owner: Terminal) -> list[str]:
    """Of this home's runs."""
    mine = f"HOME={owner.home}\0".encode()
    programs = (place for place in Path("/proc").glob("[0-9]*") if mine in _read(place / "environ"))
    return [title for title in (_read(place / "cmdline").decode() for place in programs) if title.startswith("ssh")]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # it ended
        return b""


def test_boxes_that_changed_places_are_all_named_and_nothing_is_written(owner: Terminal, sparks: Sparks) -> None:
    before = _state()
    record = init(owner, sparks).read_text()
    assert record.count("machine-id=") == 4
    owner.type(f"sparkloom up --tags preflight {SITE}", 1).has(
        "not up after", "cause: all"
    )  # looked at, by their names
    assert kept_connections(owner) == [], "they end with the run"
    sparks.begin(TURNED)
    seen = owner.type(f"sparkloom up {SITE}", 1)
    for n, (other, address) in enumerate(zip(TURNED, sparks.addresses, strict=True), 1):
        seen.has(f"spark-{n}'s address ({address}) is answered by spark-{other}")
    seen.has("nothing was written", "hosts.yml", "ansible_host")
    assert "cause: all" not in seen.text
    owner.begin(f"sparkloom doctor {SITE}")
    owner.end(2, copied=True).has("spark-1's address", "spark-4's address", "is answered by spark-1")
    hosts = owner.home / "inventories/home/hosts.yml"
    by_name = {f"spark-{n}": address for n, address in zip(TURNED, sparks.addresses, strict=True)}
    text = hosts.read_text()
    for name, address in by_name.items():
        text = re.sub(rf"(?<={name}:\n)( +ansible_host:) \S+", rf"\1 {address}", text)
    hosts.write_text(text)
    assert "is answered by" not in owner.type(f"sparkloom up --tags preflight {SITE}", 1).has("cause: all").text
    assert (record, _state()) == (hosts.with_name("known_hosts").read_text(), before)


def test_a_new_box_at_an_old_address_is_asked_about(owner: Terminal, sparks: Sparks) -> None:
    known = init(owner, sparks)
    first = known.read_text()
    renew(sparks, 2)
    sparks.begin()
    seen = owner.type(f"sparkloom up --tags preflight {SITE}", 1)
    seen.has("spark-2's address", "no run has seen", "replaced", "ssh-keygen -f", "-R spark-2", fingerprint(sparks, 2))
    owner.type("ssh-keygen -f inventories/home/known_hosts -R spark-2", copied=True)
    assert "replaced" not in owner.type(f"sparkloom up --tags preflight {SITE}", 1).has("cause: all").text
    now = known.read_text()
    assert sorted(now.splitlines()) != sorted(first.splitlines()) and now.count("machine-id=") == 4


def test_one_address_that_changed_is_named_by_every_command_and_its_box_is_known_again(
    owner: Terminal, sparks: Sparks
) -> None:
    """As a router does that knows one lease less: nobody is at spark-2's address, which has another one."""
    before, known = _state(), init(owner, sparks)
    record = known.read_text()
    silent(owner.home, "home")
    old, new = sparks.addresses[1], "127.0.0.19"
    sparks.begin(at={2: new})
    gone = ("spark-2", f"does not answer on SSH at {old}", "Connection refused", "ansible_host", "hosts.yml")
    owner.type(f"sparkloom up {SITE}", 1).has(*gone)
    owner.type(f"sparkloom doctor {SITE}", 1).has(*gone[:3])
    seen = owner.type(f"sparkloom status {SITE}", 1).has(*gone)
    assert seen.text.count("no rank was started here") == 3, "the others tell"
    hosts = known.with_name("hosts.yml")
    hosts.write_text(hosts.read_text().replace(old, new))
    seen = owner.type(f"sparkloom up --tags preflight {SITE}", 1)
    assert "answered by" not in seen.text and old not in seen.text
    assert owner.type(f"sparkloom status {SITE}", 1).text.count("no rank was started here") == 4
    assert (record, _state()) == (known.read_text(), before)


def test_one_host_key_that_changed_is_named_by_every_command(owner: Terminal, sparks: Sparks) -> None:
    """A system that was installed anew, or somebody between."""
    before, known = _state(), init(owner, sparks)
    record = known.read_text()
    silent(owner.home, "home")
    renew(sparks, 3)
    sparks.begin()
    named = (f"spark-3's address ({sparks.addresses[2]})", "no run has seen", fingerprint(sparks, 3), "-R spark-3")
    owner.type(f"sparkloom up {SITE}", 1).has(*named, "nothing was written")
    owner.type(f"sparkloom doctor {SITE}", 2).has(*named)
    seen = owner.type(f"sparkloom status {SITE}", 1)
    assert seen.text.count("no rank was started here") == 3, "a stranger's words are no Spark's"
    assert (record, _state()) == (known.read_text(), before)


def test_a_site_without_a_record_gets_one_at_its_next_run(owner: Terminal, sparks: Sparks) -> None:
    (sparks.path.parent / "known_hosts").unlink(missing_ok=True)  # of the owner before, who saw another key
    known = init(owner, sparks)
    first = known.read_text()
    known.unlink()
    owner.type(f"sparkloom up --tags preflight {SITE}", 1).has("cause: all")
    assert sorted(known.read_text().splitlines()) == sorted(first.splitlines())
    log = owner.type("grep -A3 'recorded in' build/home/up.log", copied=True)
    log.has("from now on expected", fingerprint(sparks, 1), fingerprint(sparks, 4))
