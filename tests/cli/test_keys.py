"""`sparkloom keys`: shown once, kept as a hash, in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkloom.cli import keys
from sparkloom.inputs import client_keys
from sparkloom.onnode import key_table
from sparkloom.onnode.key_table import Entry
from tests import inventories
from tests.cli.window import piped


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return inventories.own(tmp_path, "home")


def test_from_a_key_to_none(home: Path) -> None:
    file = client_keys.place(home)
    limits = ["--models", "qwen,glm", "--requests", "60", "--tokens", "200000", "--expires", "90d"]
    made = piped("keys", "add", "alice", "-i", str(home), *limits)
    assert made.code == 0, made.errors
    key = made.text.split()[0]
    assert key.startswith("sk-") and key not in file.read_text() and client_keys.hashed(key) in file.read_text()
    assert "qwen, glm" in made.text and "60 requests a minute and 200,000 tokens a minute" in made.text
    listed = piped("keys", "list", "-i", str(home))
    assert listed.code == 0 and "alice" in listed.text and "qwen, glm" in listed.text and key not in listed.text
    gone = piped("keys", "revoke", "alice", "-i", str(home))
    assert gone.code == 0 and "no key of alice any more" in gone.text
    assert "no keys yet" not in piped("keys", "list", "-i", str(home), "--json").text
    assert client_keys.read(file)[1] == []


def test_as_json(home: Path) -> None:
    made = json.loads(piped("keys", "add", "bob", "-i", str(home), "--json").text)
    assert set(made) >= {"name", "models", "key", "file", "expires", "requests_per_minute"} and made["models"] == "all"
    listed = json.loads(piped("keys", "list", "-i", str(home), "--json").text)
    assert [row["name"] for row in listed["keys"]] == ["bob"] and listed["findings"] == []
    assert made["key"] not in json.dumps(listed) and "sha256" not in json.dumps(listed)


def test_a_right_is_written_only_where_it_is_given(home: Path) -> None:
    file = client_keys.place(home)
    assert piped("keys", "add", "anna", "--offline", "-i", str(home)).code == 0 and "admin" not in file.read_text()
    assert piped("keys", "add", "root", "--admin", "--offline", "-i", str(home)).code == 0
    assert [(key.name, key.admin) for key in client_keys.read(file)[1]] == [("anna", False), ("root", True)]
    listed = piped("keys", "list", "-i", str(home)).lines
    assert listed[1].split()[-1] == "-" and listed[2].split()[-1] == "yes"


def test_renewed_with_the_same_limits(home: Path) -> None:
    file = client_keys.place(home)
    first = piped("keys", "add", "alice", "--requests", "9", "--expires", "30d", "--offline", "-i", str(home)).text
    again = piped("keys", "renew", "alice", "--offline", "-i", str(home)).text
    (key,) = client_keys.read(file)[1]
    assert first.split()[0] != again.split()[0] and key.hash == client_keys.hashed(again.split()[0])
    assert key.requests_per_minute == 9 and "9 requests a minute" in again
    assert piped("keys", "renew", "bob", "--offline", "-i", str(home)).code == 2


def test_the_site_s_own_is_renewed_in_its_file(home: Path) -> None:
    settings, own = home / "group_vars" / "all" / "cluster.yml", home / "own-key"
    settings.write_text(f"{settings.read_text()}\ngateway_key_file: {own}\n")
    renew = ("keys", "renew", "owner", "--offline", "-i", str(home))
    assert piped(*renew).code == 2, "there is none yet"
    own.write_text("sk-before-0123456789abcdef\n")
    own.chmod(0o600)
    made = piped(*renew)
    assert made.code == 0 and "sk-" not in made.text and own.read_text() != "sk-before-0123456789abcdef\n"
    (key,) = client_keys.read(client_keys.place(home))[1]
    assert key.name == "owner" and key.hash == client_keys.hashed(own.read_text().strip()) and key.expires
    for words in (("add", "owner"), ("revoke", "owner")):
        refused = piped("keys", *words, "--offline", "-i", str(home))
        assert refused.code == 2 and "sparkloom keys renew owner" in refused.errors


def test_what_the_page_made_and_took_is_listed_and_revoked_here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    piped("keys", "add", "bob", "--offline", "-i", str(home))
    (bob,) = client_keys.read(client_keys.place(home))[1]
    carol = Entry(key_table.digest("sk-carol"), "carol", models="glm,small", ends=1_803_427_200, admin=1, by="alice")
    monkeypatch.setattr(keys, "_given", lambda where: ([bob.entry._replace(taken="alice"), carol], ""))
    told = {row["name"]: row for row in json.loads(piped("keys", "list", "-i", str(home), "--json").text)["keys"]}
    assert told["bob"]["revoked_by"] == "alice" and told["bob"]["made_by"] is None
    assert (told["carol"]["models"], told["carol"]["expires"]) == (["glm", "small"], "2027-02-23")
    assert told["carol"]["made_by"] == "alice" and told["carol"]["admin"] is True
    text = piped("keys", "list", "-i", str(home)).text
    assert "revoked by alice" in text and "on the page by alice" in text
    brought: list[str] = []

    def bring(*words: Any, revoked: str) -> keys.Brought:
        brought.append(revoked)
        return keys.Brought("done")

    monkeypatch.setattr(keys, "_bring", bring)
    assert piped("keys", "revoke", "carol", "-i", str(home)).code == 0 and brought == ["carol"]
    assert piped("keys", "revoke", "nobody", "-i", str(home)).code == 2 and brought == ["carol"]


def test_a_key_that_has_ended_is_a_finding(home: Path) -> None:
    file = client_keys.place(home)
    file.write_text(f"---\nclient_keys:\n  - name: old\n    hash: {client_keys.hashed('x')}\n    expires: 2020-01-01\n")
    listed = piped("keys", "list", "-i", str(home))
    assert listed.code == 1 and "(over)" in listed.text and f"{file}:3:5" in listed.text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "Alice"], "name: String should match"),
        (["add", "a", "--requests", "0"], "requests_per_minute: Input should be greater than or equal to 1"),
        (["add", "a", "--expires", "2020-01-01"], "'2020-01-01' is over"),
        (["add", "a", "--models", "no model"], "models"),
        (["revoke", "a"], "no key is called 'a'; there are none"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(home: Path, words: list[str], said: str) -> None:
    done = piped("keys", *words, "-i", str(home))
    assert done.code == 2 and said in done.errors and "Traceback" not in done.errors
    assert not client_keys.place(home).exists()


def test_the_shipped_inventory_is_nobody_s_site() -> None:
    done = piped("keys", "list")
    assert done.code == 2 and "whose keys? -i names its inventory" in done.errors
