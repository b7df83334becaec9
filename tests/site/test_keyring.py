"""keys.yml, changed: what a person wrote stays, and nobody else reads it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import client_keys
from sparkloom.inputs.client_keys import Key
from sparkloom.site import keyring

WRITTEN = """\
---
# Ours. Ask Alice before you change it.
client_keys:
  # the boss
  - name: alice   # since ever
    hash: {alice}
    models: [qwen]   # not the large one
  - name: "bob"
    hash: {bob}
    models: all
"""


def key(name: str, **more: object) -> Key:
    return Key.model_validate({"name": name, "hash": client_keys.hashed(f"sk-{name}"), **more})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "group_vars" / "all" / "keys.yml"
    made.parent.mkdir(parents=True)
    made.write_text(WRITTEN.format(alice=key("alice").hash, bob=key("bob").hash))
    return made


def test_the_first_key_makes_the_file(tmp_path: Path) -> None:
    made = tmp_path / "group_vars" / "all" / "keys.yml"
    keyring.add(made, key("alice", expires="2027-01-31", made="2026-11-25"))
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert [entry.name for entry in made.parent.iterdir()] == ["keys.yml"]
    assert "docs/endpoint.md" in made.read_text() and "sk-" not in made.read_text()
    assert client_keys.read(made)[1] == [key("alice", expires="2027-01-31", made="2026-11-25")]


def test_one_more_leaves_the_rest_as_it_was(file: Path) -> None:
    before = file.read_text()
    keyring.add(file, key("carol", requests_per_minute=3))
    after = file.read_text()
    assert after.startswith(before.rstrip("\n")) and "name: carol" in after[len(before) - 1 :]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [one.name for one in client_keys.read(file)[1]] == ["alice", "bob", "carol"]


def test_one_less_leaves_the_rest_as_it_was(file: Path) -> None:
    before = file.read_text()
    assert keyring.revoke(file, "bob").name == "bob"
    assert file.read_text() == before[: before.index('  - name: "bob"')]
    assert keyring.revoke(file, "alice").name == "alice"
    assert client_keys.read(file)[1] == [] and "Ask Alice" in file.read_text()
    keyring.add(file, key("dave"))
    assert [one.name for one in client_keys.read(file)[1]] == ["dave"] and "Ask Alice" in file.read_text()


def test_a_second_key_of_one_name_is_refused_by_line(file: Path) -> None:
    before = file.read_text()
    with pytest.raises(InputError, match=r"keys.yml:8:5: 'bob' has a key already; .* bob-laptop") as caught:
        keyring.add(file, key("bob"))
    assert caught.value.problems[0].rule == "duplicate-key" and file.read_text() == before


def test_who_has_none_cannot_lose_one(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no key is called 'alise'; did you mean 'alice'"):
        keyring.revoke(file, "alise")
    with pytest.raises(InputError, match="no key is called 'alice'; there are none"):
        keyring.revoke(tmp_path / "none.yml", "alice")


def test_a_file_that_is_wrong_is_not_written_over(file: Path) -> None:
    file.write_text(file.read_text() + "    colour: blue\n")
    for change in (lambda: keyring.add(file, key("carol")), lambda: keyring.revoke(file, "bob")):
        with pytest.raises(InputError, match=r"keys.yml:11:5: unknown key"):
            change()
    assert "colour: blue" in file.read_text()
