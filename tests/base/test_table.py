"""A table that its window has no room for becomes words, and they fit it whatever the letters."""

from __future__ import annotations

import pytest

from sparkloom.base import table


@pytest.mark.parametrize("letters", ["a model of many words " * 6, "漢字の模型 " * 20])
def test_words_fit_the_window(letters: str) -> None:
    shown = table.lines(("model", "facts"), [(letters.strip(), letters.strip())], 40)
    assert len(shown) > 6 and max(map(table.columns, shown)) <= 40, shown
    assert "".join(shown).replace(" ", "").count(letters.replace(" ", "")) >= 1
