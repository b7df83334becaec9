"""The API key: made once, readable by its owner alone, refused when it is not."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.render import keys


def test_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "site/api-key"
    key, made = keys.ensure(path)
    assert made and keys.USABLE.fullmatch(key) and len(key) > 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert keys.ensure(path) == (key, False)
    assert [entry.name for entry in path.parent.iterdir()] == ["api-key"]


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert keys.ensure(tmp_path / "api-key", dry=True)[1]
    assert not (tmp_path / "api-key").exists()


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "api-key"
    keys.ensure(path)
    path.chmod(0o644)
    with pytest.raises(InputError, match="mode 0644, expected 0600"):
        keys.read(path)


@pytest.mark.parametrize("text", ["short", "with blank inside it", "x" * 600, 'quote"s-and-more-of-them', ""])
def test_what_no_engine_could_read_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "api-key"
    keys.write(path, text)
    with pytest.raises(InputError, match="no usable API key"):
        keys.read(path)


@pytest.mark.parametrize("key", ["1234567890123456", "sk-abc_DEF-0123456789", "1e5" * 8, "true" * 4])
def test_engines_read_back_the_same_text(key: str) -> None:
    data = keys.engine_data({keys.BARE_FILE: key})
    assert yaml.safe_load(data[keys.ENGINE_FILE]) == {"api-key": key} and data[keys.BARE_FILE] == key


def test_the_engine_s_own_key_is_made_once_and_is_nobody_else_s(tmp_path: Path) -> None:
    made = keys.engine_data(None)
    assert keys.USABLE.fullmatch(made[keys.BARE_FILE]) and keys.engine_data(made) == made
    assert keys.engine_data({keys.BARE_FILE: "cut"})[keys.BARE_FILE] not in ("cut", made[keys.BARE_FILE])
    client, _ = keys.ensure(tmp_path / "api-key")
    assert client not in str(made)
