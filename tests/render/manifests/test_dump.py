"""The YAML writer: what is read back is what was written, for every reader."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkloom.render.manifests import to_yaml

TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS
FLAT = st.dictionaries(TEXTS, SCALARS, max_size=3)
VALUES = SCALARS | FLAT | st.lists(SCALARS | FLAT | st.lists(SCALARS, max_size=2), max_size=3)
WORDS = ["1e5", "1e-5", "0o17", "0x1f", "1_000", "12:30:45", "123e456", "2026-11-21", "yes", "Off", "y", "N", "NaN"]
SIGNS = ["null", "~", ".inf", "-", "=", "<<", "#x", "a:", "a: b", "a #b", "{a}", "[a]", "*a", "&a", "!a", "%a", "@a"]


@settings(max_examples=200)
@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4))
def test_reads_back_as_it_was(data: dict[str, Any]) -> None:
    assert list(yaml.safe_load_all(to_yaml([data]))) == [data]


@pytest.mark.parametrize("text", [*WORDS, *SIGNS, "'", '"', "", " a"])
def test_no_reader_takes_text_for_something_else(text: str) -> None:
    """Quoted, so that YAML 1.1, 1.2 and Go's mixture of both agree."""
    (line,) = to_yaml([{"a": text}]).splitlines()[1:]
    assert line[3] in "'\""
    assert yaml.safe_load(line) == {"a": text}


def test_long_texts_are_blocks() -> None:
    assert to_yaml([{"a": "one\n  two\n\nthree\n"}]) == "---\na: |\n  one\n    two\n\n  three\n"
