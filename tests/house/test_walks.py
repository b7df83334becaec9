"""docs/architecture.md names the functions on three ways through the house: each of them is there."""

from __future__ import annotations

import re
import subprocess
import sys

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


def test_who_tells_of_a_served_group_leans_on_what_says_what_one_is() -> None:
    """As the drawing of it shows, which is made from the imports."""
    drawn = subprocess.run([sys.executable, "scripts/lint/floor_plan.py"], cwd=REPO, capture_output=True, check=True)
    lines = drawn.stdout.decode().partition("who leans on it\n\n")[2].splitlines()
    lean = {words[0]: set(words[1:]) for words in map(str.split, lines)}
    whole = {"Wanted", "Placed", "Observed", "site/groups"}
    assert all(lean[who] == whole for who in ("serve", "status", "doctor", "waker", "router", "teardown", "logs"))
    assert lean["page"] == {"Observed"}, "in its pod it has the standard library and what a look sees"
