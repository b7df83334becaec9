"""The listener's own words and frames; test_cablings_heard.py has it listen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.loading import module

links = module("listen")


def lldp_frame(name: bytes) -> bytes:
    def part(kind: int, value: bytes) -> bytes:
        return (kind << 9 | len(value)).to_bytes(2, "big") + value

    chassis = bytes.fromhex("48a98a000001")
    parts = part(1, b"\x04" + chassis) + part(2, b"\x05qsfp1") + part(3, b"\0\x78") + part(5, name) + part(0, b"")
    return links.LLDP_GROUP + chassis + links.LLDP.to_bytes(2, "big") + parts


@pytest.mark.parametrize("cut", [0, 1, 13, 15, 17, 20, 24, 30])
def test_a_broken_frame_is_no_crash(cut: int) -> None:
    assert set(links.lldp(lldp_frame(b"x\xff\x00")[:cut])) == {"chassis", "port", "system"}
    whole = links.frame("02:00:00:00:00:01", {"site": "home", "node": "spark1", "port": "a"})
    assert links.heard(whole) == {"site": "home", "node": "spark1", "port": "a"}
    assert len(whole) >= 60 and links.heard(whole[:cut]) is None


def test_what_is_no_words_of_ours_is_not_heard() -> None:
    head = b"\xff" * 12 + b"\x88\xb5"
    for said in (b"other", links.MARK + b"[1]", links.MARK + b"{}", links.MARK + b"\xff"):
        assert links.heard(head + said) is None


def test_only_neighbours_that_answer_now_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A STALE entry may be of a cable that was moved since."""
    rows = [
        {"dev": "a", "lladdr": "02:00:00:00:00:01", "state": ["REACHABLE"]},
        {"dev": "a", "lladdr": "02:00:00:00:00:02", "state": ["STALE"]},
        {"dev": "a", "state": ["FAILED"]},
        {"dev": "wlan0", "lladdr": "02:00:00:00:00:03", "state": ["REACHABLE"]},
    ]
    monkeypatch.setattr(links, "run", lambda *_: json.dumps(rows))
    assert links.neighbours(["a", "b"]) == [{"interface": "a", "mac": "02:00:00:00:00:01"}]
    monkeypatch.setattr(links, "run", lambda *_: "")
    assert links.neighbours(["a"]) == []


def test_ports_that_are_not_there_are_not_listened_on(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/carrier").write_text("1\n")
    (tmp_path / "a/speed").write_text("200000\n")
    assert links.links(tmp_path, ["a"]) == {"a": {"carrier": True, "speed": 200_000}}
