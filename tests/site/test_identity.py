"""Whose box is this: what is told of machines that are not in their place."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from sparkloom.inputs.known_hosts import Machine
from sparkloom.site import identity
from sparkloom.site.tasks import identity as tasks
from tests.plugins.loading import context

SITE = Path("inventories/home")
KEYS = {f"spark{n}": f"ssh-ed25519 {'A' * 40}{n}AAA" for n in range(1, 5)}
KNOWN = {name: Machine(key, name[-1] * 32, f"S{name[-1]}") for name, key in KEYS.items()}
AT = {name: f"192.0.2.1{name[-1]}" for name in KNOWN}


def told(**seen: Machine) -> str:
    return identity.strange(SITE, KNOWN, seen, AT)


def test_machines_in_their_places_are_not_spoken_of() -> None:
    assert told(**KNOWN) == "" and told(spark9=Machine(KEYS["spark1"])) == "", "a name without a record is new"
    assert told(spark1=Machine(KEYS["spark1"])) == "", "by what can be asked before a login"


def test_all_that_changed_places_are_named_with_both_names() -> None:
    turned = dict(zip(KNOWN, [Machine(KEYS[f"spark{n}"]) for n in (3, 4, 2, 1)], strict=True))
    cause, fix = told(**turned).splitlines()
    for name, other in zip(KNOWN, (3, 4, 2, 1), strict=True):
        assert f"{name}'s address ({AT[name]}) is answered by spark{other}" in cause
    assert "nothing was written" in cause and fix.startswith("-> ") and f"{SITE}/hosts.yml" in fix
    assert "replaced" not in fix


def test_a_stranger_is_asked_about_beside_one_that_moved() -> None:
    new = Machine(f"ssh-ed25519 {'B' * 44}")
    cause, fix = told(spark1=Machine(KEYS["spark2"]), spark2=new).splitlines()
    assert "spark1's address (192.0.2.11) is answered by spark2, spark2's address (192.0.2.12)" in cause
    assert f"(found {new.fingerprint}, expected {KNOWN['spark2'].fingerprint} " in cause
    assert "replaced or installed anew: ssh-keygen -f inventories/home/known_hosts -R spark2, and" in fix


def test_a_copied_disk_is_told_by_its_board() -> None:
    seen = KNOWN["spark1"]._replace(serial="S9")
    assert re.search(r"found SHA256:\S+ machine-id=1+ serial=S9, expected SHA256:\S+ .*serial=S1\b", told(spark1=seen))


def test_ssh_reads_the_file_whatever_its_path_holds() -> None:
    words = shlex.split(identity.strict(Path("/srv/my site/100%"), "spark1"))
    assert 'UserKnownHostsFile="/srv/my site/100%%/known_hosts"' in words and "HostKeyAlias=spark1" in words
    assert "StrictHostKeyChecking=yes" in words


def test_nobody_at_an_address_is_left_out() -> None:
    assert identity.presented({"spark1": ["false"], "spark2": ["no-such-program"]}) == {}


# ssh, as far as a key goes: it finds any alias, and every question leaves one machine less that is on.
SSH = """#!/bin/sh
for name; do case $name in UserKnownHostsFile=*) file=${{name#*=}};; esac; done
on={}/$name
[ -s $on ] || exit 255
sed -i 1d $on
echo "$name ssh-ed25519 {}" > $file
"""


def test_whoever_is_switched_off_is_waited_for_by_the_way_that_ssh_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An alias of ~/.ssh/config is no host's name: nobody was waited for, and the server went first."""
    (tmp_path / "ssh").write_text(SSH.format(tmp_path, KEYS["spark1"].split()[1]))
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(tasks.time, "sleep", lambda seconds: None)
    hosts = {name: {"ansible_host": f"alias-of-{name}"} for name in ("spark2", "spark3")}
    for name in hosts:
        (tmp_path / f"alias-of-{name}").write_text("asked\n" * 3)
    found = tasks.away(context({"hostvars": hosts}), [*hosts])
    assert found == {} and [path.read_text() for path in sorted(tmp_path.glob("alias-of-*"))] == ["", ""]
    (tmp_path / "alias-of-spark3").write_text("asked\n")
    late = tasks.away(context({"hostvars": hosts}), [*hosts], seconds=-1)
    assert late["failed"] and "found spark3 on after" in late["msg"]
