"""Which commit each model without a revision of its own was at when it was first brought to a site.

A publisher may change what a model's main means at any time, its code included. A launch names the commit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from sparkloom.inputs import answers, lock_file

KEY = "model_lock"


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    commit: str
    when: str
    node: str  # that had it first


def read(file: Path) -> dict[str, Entry]:
    """By the model's id; empty before the first deploy. A commit that is none is refused by name."""
    source, entries = lock_file.entries(file, KEY, Entry.__slots__, Entry)
    for number, entry in enumerate(entries):
        if source and not answers.COMMIT.form.fullmatch(entry.commit):
            message = f"'{entry.commit}' is no commit; expected 40 hex digits, or remove the entry to have it anew"
            raise source.refusal((KEY, number), message, "bad-lock")
    return {entry.id: entry for entry in entries}


def commits(file: Path) -> dict[str, str]:
    return {model: entry.commit for model, entry in read(file).items()}


def keep(file: Path, entry: Entry) -> bool:
    """Adds it or takes its model's place; tells whether the commit differed."""
    answers.require(answers.COMMIT, entry.commit, entry.node)
    known = read(file)
    before = known.get(entry.id)
    if before and before.commit == entry.commit:
        return False
    rows = sorted({**known, entry.id: entry}.values(), key=lambda one: one.id)
    lock_file.write(file, KEY, [asdict(row) for row in rows])
    return True
