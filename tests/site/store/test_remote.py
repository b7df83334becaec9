"""A node's store is asked without a file of ours on it, and one flipped byte is one node's trouble."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.weights.names import StoreError
from sparkloom.render import pack
from sparkloom.site.checks import serving
from sparkloom.site.store import remote


def here(line: str, data: bytes | None) -> dict[str, Any]:
    """A shell of this machine in place of a node's."""
    ran = subprocess.run(["sh", "-c", line], input=data, capture_output=True, check=False)
    return {"rc": ran.returncode, "stdout": ran.stdout.decode(), "stderr": ran.stderr.decode()}


def test_a_store_is_asked_by_a_program_that_the_node_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the old code the answer was None, told as `no store program of this version` on every node that was well."""
    monkeypatch.setattr(remote, "PLACE", str(tmp_path / "lib"))
    node = remote.Remote("spark1", here, pack.program("weights").keep(tmp_path))
    asked = {"store": str(tmp_path / "store"), "models": [{"id": "a/b", "revision": None}]}
    (answer,) = node.ask("check", asked, bring=False)
    assert answer["problems"] == ["no verified snapshot of a/b at any revision"]
    assert not (tmp_path / "lib").exists() and not (tmp_path / "store").exists()


def test_what_the_program_refuses_is_its_own_word(tmp_path: Path) -> None:
    node = remote.Remote("spark1", here, pack.program("weights").keep(tmp_path))
    with pytest.raises(StoreError, match="spark1: its store program said: usage: store"):
        node.ask("nonsense", bring=False)


def test_one_flipped_byte_is_told_of_its_node_alone() -> None:
    row = {"id": "a/b", "commit": "c" * 40, "manifest": "m", "ok": True, "problems": []}
    whole = {"answer": [row]}
    flipped = {"answer": [{**row, "ok": False, "problems": ["model.safetensors: sha256 1, expected 2"]}]}
    told = {"spark1": whole, "spark2": whole, "spark3": flipped, "spark4": whole}
    (finding,) = serving.weights(list(told), told)
    assert (finding.where, finding.message) == ("spark3", "model.safetensors: sha256 1, expected 2")
