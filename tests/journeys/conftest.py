"""Every journey begins in an empty home, with a terminal. Nothing of ours is imported but the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.journeys.terminal import SIZES, Terminal


class Opens(Protocol):
    def __call__(self, home: Path | None = None, **env: str) -> Terminal: ...


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


@pytest.fixture(params=SIZES, ids=lambda size: "x".join(map(str, size)))
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    return request.param


@pytest.fixture
def terminal(home: Path) -> Iterator[Terminal]:
    """80 columns, 24 lines."""
    made = Terminal(home)
    yield made
    made.close()


@pytest.fixture
def sized(home: Path, size: tuple[int, int]) -> Iterator[Terminal]:
    """The same journey in both windows."""
    made = Terminal(home, size)
    yield made
    made.close()
