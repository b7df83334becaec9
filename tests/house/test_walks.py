"""docs/architecture.md names the functions on three ways through the house: each of them is there."""

from __future__ import annotations

import re

import pytest

from tests.places import REPO

WALKS = (REPO / "docs" / "architecture.md").read_text().partition("## Four walks")[2].partition("\n## ")[0]
STOPS = re.findall(r"`((?:[\w-]+/)+\w+\.py)` `(?:\w+\.)?(\w+)`", WALKS)


@pytest.mark.parametrize(("module", "function"), STOPS)
def test_a_stop_is_there(module: str, function: str) -> None:
    text = (REPO / "scripts" / "sparkloom" / module).read_text()
    assert re.search(rf"^ *def {function}\(", text, re.MULTILINE)


def test_no_walk_enters_a_room_twice() -> None:
    walks = WALKS.split("\n**")[1:]
    assert len(walks) == 4
    for walk in walks:
        rooms = [stop.group(1) for stop in re.finditer(r"^\d\. `(\w+)/", walk, re.MULTILINE)]
        assert 3 <= len(rooms) == len(set(rooms)) <= 12, rooms
