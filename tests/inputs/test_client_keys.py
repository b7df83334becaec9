"""keys.yml: what it may say, and where it is wrong, by line."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import client_keys
from sparkloom.inputs.client_keys import Key
from sparkloom.onnode import key_table

HASH = client_keys.hashed("sk-a")
OTHER = client_keys.hashed("sk-b")
NOW = datetime.datetime(2026, 11, 25, 12, tzinfo=datetime.UTC)


def written(folder: Path, text: str) -> Path:
    file = folder / "keys.yml"
    file.write_text(f"---\nclient_keys:\n{text}")
    file.chmod(0o600)
    return file


def test_a_site_without_the_file_has_no_keys(tmp_path: Path) -> None:
    assert client_keys.read(tmp_path / "keys.yml") == (None, [])
    assert client_keys.place("inventories/home") == Path("inventories/home/group_vars/all/keys.yml")


def test_an_empty_list_is_one(tmp_path: Path) -> None:
    file = tmp_path / "keys.yml"
    file.write_text("---\nclient_keys: []\n")
    assert client_keys.read(file)[1] == []


def test_an_entry(tmp_path: Path) -> None:
    text = (
        f"  - name: alice\n    hash: {HASH}\n    models: [qwen, org/other]\n    requests_per_minute: 60\n"
        "    tokens_per_minute: 200000\n    expires: 2027-01-31\n    made: 2026-11-25\n"
    )
    _, (key,) = client_keys.read(written(tmp_path, text))
    assert key == Key(
        name="alice", hash=HASH, models=["qwen", "org/other"], requests_per_minute=60, tokens_per_minute=200_000,
        expires="2027-01-31", made="2026-11-25",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        (f"  - name: alice\n    hash: {HASH}\n    model: qwen\n", 5, 5, "unknown key 'client_keys.0.model'; did you"),
        ("  - name: alice\n", 3, 5, "key 'client_keys.0.hash' is missing"),
        ("  - name: alice\n    hash: sk-a\n", 4, 5, "client_keys.0.hash: String should match"),
        (f"  - name: Alice\n    hash: {HASH}\n", 3, 5, "client_keys.0.name: String should match"),
        (f"  - name: alice\n    hash: {HASH}\n    expires: soon\n", 5, 5, "'soon' is no day; write one as 2027-01-31"),
        (f"  - name: alice\n    hash: {HASH}\n    requests_per_minute: 0\n", 5, 5, "greater than or equal to 1"),
        (
            f"  - name: alice\n    hash: {HASH}\n  - name: alice\n    hash: {OTHER}\n",
            5,
            5,
            "name 'alice' stands in line 3",
        ),
        (
            f"  - name: alice\n    hash: {HASH}\n  - name: bob\n    hash: {HASH}\n",
            6,
            5,
            "hash that of 'alice' stands in line 4",
        ),
    ],
)
def test_what_is_wrong_is_named_by_line(tmp_path: Path, text: str, line: int, column: int, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        client_keys.read(file)
    (problem,) = caught.value.problems[:1]
    assert (problem.file, problem.line, problem.column) == (str(file), line, column), problem
    assert said in problem.message


def test_a_key_opens_until_its_last_day_is_over() -> None:
    key = Key(name="a", hash=HASH, expires="2026-11-25")
    assert not key.ended(datetime.datetime(2026, 11, 25, 23, 59, 59, tzinfo=datetime.UTC))
    assert key.ended(datetime.datetime(2026, 11, 26, tzinfo=datetime.UTC))
    assert Key(name="a", hash=HASH).ends is None


def found(file: Path) -> list[tuple[str, str, int]]:
    source, keys = client_keys.read(file)
    listed = client_keys.findings(file, source, keys, NOW)
    return [(one.rule, one.severity, int(one.where.rsplit(":", 2)[1])) for one in listed]


def test_findings_have_places(tmp_path: Path) -> None:
    text = (
        f"  - name: alice\n    hash: {HASH}\n    expires: 2026-11-24\n"
        f"  - name: bob\n    hash: {OTHER}\n    expires: 2026-12-01\n    models: [qwen, gone]\n"
        f"  - name: carol\n    hash: {client_keys.hashed('sk-c')}\n    models: []\n"
    )
    file = written(tmp_path, text)
    ended = [("expired-key", "error", 3), ("key-ends-soon", "info", 6)]
    assert found(file) == [*ended, ("key-without-models", "error", 10)]
    file.chmod(0o640)
    assert found(file)[0] == ("open-file", "warning", 1)


def test_keys_are_of_256_bits_and_never_the_same() -> None:
    made = {key_table.generate() for _ in range(50)}
    assert len(made) == 50 and all(key.startswith("sk-") and len(key) == 46 for key in made)


@pytest.mark.parametrize(("text", "day"), [("90d", "2027-02-23"), ("2026-11-25", "2026-11-25"), ("1d", "2026-11-26")])
def test_days(text: str, day: str) -> None:
    assert client_keys.days(text, NOW.date()) == day


@pytest.mark.parametrize(("text", "said"), [("2026-11-24", "is over"), ("0d", "is no day"), ("90", "is no day")])
def test_what_is_no_day_to_come(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        client_keys.days(text, NOW.date())
