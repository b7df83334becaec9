"""The pages stay short, each stands on one shelf, and each word of ours is explained once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.places import REPO

DOCS = REPO / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
SHELVES = ("Get started", "Do", "Know", "Reference")
GENERATED = "*Generated "  # begins a line of a page that is a table from its top to its end
OUTSIDE = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "inventories/gb10/README.md", "molecule/README.md")
LINK = re.compile(r"\]\((?!https?:)([\w./-]+)(?:#([\w-]+))?\)")
WORD = re.compile(r"^\| ([a-z][a-z -]*) \| \S.*\.", re.M)


def lines(page: Path) -> list[str]:
    return page.read_text(encoding="utf-8").splitlines()


def test_the_readme_is_read_in_one_go() -> None:
    assert len(lines(REPO / "README.md")) <= 90


def test_no_page_is_longer_than_150_lines() -> None:
    """But for tables that a program makes whole, as long as what they list."""
    long = {str(page.relative_to(DOCS)): len(lines(page)) for page in PAGES if len(lines(page)) > 150}
    made = {name for name in long if any(line.startswith(GENERATED) for line in lines(DOCS / name))}
    assert long.keys() <= made, long
    assert all(name.startswith("reference/") for name in made)


def stands(shelf: Any) -> Iterator[str]:
    if isinstance(shelf, str):
        yield shelf
    else:
        for part in shelf.values() if isinstance(shelf, dict) else shelf:
            yield from stands(part)


def test_every_page_stands_on_one_shelf_and_in_the_list() -> None:
    nav = tomllib.loads((REPO / "zensical.toml").read_text())["project"]["nav"]
    told = list(stands(nav))
    assert sorted(told) == sorted(str(page.relative_to(DOCS)) for page in PAGES)
    assert [name for part in nav for name in part][1:] == list(SHELVES)
    listed = re.findall(r"\]\(([\w./-]+\.md)\)", (DOCS / "README.md").read_text())
    assert set(listed) == set(told) - {"README.md"}


def headings(page: Path) -> set[str]:
    titles = (line.lstrip("# ").lower() for line in lines(page) if line.startswith("#"))
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_link_from_outside_the_site_leads_somewhere(name: str) -> None:
    """`make lint` follows the links inside of it."""
    for path, anchor in LINK.findall((REPO / name).read_text()):
        target = (REPO / name).parent / path
        assert target.exists(), path
        assert not anchor or anchor in headings(target), f"{path}#{anchor}"


def test_every_word_of_ours_is_explained_once() -> None:
    words = WORD.findall((DOCS / "words.md").read_text().partition("|--|--|")[2])
    assert 0 < len(words) <= 40
    assert words == sorted(set(words))
