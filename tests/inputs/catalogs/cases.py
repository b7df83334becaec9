"""The shared list of right and wrong command lines, and what each release says to them.

One line per case in tests/data/argv_cases.jsonl; the stand-in engine is judged by the same list. `accepted`,
`deprecated`, `abbreviated` and `unregistered` name releases: "all", "none" or a range such as ">=0.5.14,<=0.5.19".
`error` is part of the engine's own message and `kind` the sort of problem that our judge names; either may differ by
release.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from packaging.specifiers import SpecifierSet

from tests.places import DATA

FILE = DATA / "argv_cases.jsonl"


@dataclass(frozen=True)
class Case:
    facts: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.facts["id"])

    @property
    def argv(self) -> list[str]:
        return list(self.facts["argv"])

    def holds(self, key: str, release: str) -> bool:
        return within(self.facts.get(key, "none"), release)

    def text(self, key: str, release: str) -> str | None:
        value = self.facts.get(key)
        if isinstance(value, dict):
            return next((text for span, text in value.items() if within(span, release)), None)
        return value


def within(span: str, release: str) -> bool:
    span, release = (re.sub(r"\bb(?=\d{4})", "", text) for text in (span, release))  # llama.cpp counts builds: b8399
    return span == "all" or (span != "none" and SpecifierSet(span).contains(release, prereleases=True))


@lru_cache
def cases(engine: str) -> tuple[Case, ...]:
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return tuple(case for case in (Case(json.loads(line)) for line in lines) if case.facts["engine"] == engine)
