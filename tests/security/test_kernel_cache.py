"""What somebody left in an engine's kernel cache is not executed by the next pod, nor is the node's root led astray.

The node's module and the pod's own step are the product's; the engine is whoever writes to the folder.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.rank import kernels
from sparkloom.onnode.rank.plan import GroupPlan
from tests.plugins.loading import module

seal = module("seal")
PLAN = {
    "profile": "p", "engine": "sglang", "release": "0", "image": "i", "port": 1,
    "members": [{"rank": 0, "node": "spark1", "address": "127.0.0.1"}],
}  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """As after a first token."""
    made = tmp_path / "cache"
    (made / "triton/ab").mkdir(parents=True)
    (made / "triton/ab/kernel.so").write_bytes(b"compiled")
    os.utime(made / "triton/ab/kernel.so", ns=(1, 123_456_789_012_345_678))
    (made / "triton/newest").symlink_to("ab")
    return made


def starts(cache: Path) -> str:
    """A pod's first step."""
    return kernels.lay_out(GroupPlan.of({**PLAN, "cache": str(cache), "sealed": f"{cache}.sealed"}))


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def kept(cache: Path, mark: str = "one") -> Path:
    seal.seal(cache, Path(f"{cache}.sealed"), mark)
    return Path(f"{cache}.sealed/current")


def test_what_was_planted_after_the_seal_is_gone_at_the_next_start(cache: Path) -> None:
    kept(cache)
    before = tree(cache)
    (cache / "triton/ab/kernel.so").write_bytes(b"planted!")
    (cache / "evil").mkdir()
    (cache / "evil/more.so").write_bytes(b"planted!")
    (cache / "outside").symlink_to("/etc")
    assert "laid out" in starts(cache)
    assert tree(cache) == before and (cache / "triton/ab/kernel.so").read_bytes() == b"compiled"
    assert (cache / "triton/ab/kernel.so").stat().st_mtime_ns == 123_456_789_012_345_678  # what ninja goes by
    assert (cache / "triton/newest").is_symlink()
    assert Path("/etc/passwd").is_file()


def test_until_something_is_sealed_the_cache_is_left(cache: Path) -> None:
    before = tree(cache)
    assert starts(cache) == "" and tree(cache) == before


def test_what_cannot_be_laid_out_is_compiled_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(cache)

    def full(*words: object, **more: object) -> None:
        (cache / "half.so").write_bytes(b"comp")
        raise shutil.Error([("a", "b", "[Errno 28] No space left on device")])

    monkeypatch.setattr(shutil, "copytree", full)
    assert "No space left" in starts(cache) and not tree(cache)


def test_the_nodes_root_follows_nothing(cache: Path, tmp_path: Path) -> None:
    """The copy is read by the next pod: whatever root is led to would be told to it."""
    (tmp_path / "shadow").write_text("root's own")
    (cache / "file").symlink_to(tmp_path / "shadow")
    (cache / "folder").symlink_to(tmp_path)
    os.mkfifo(cache / "pipe")
    (cache / "tool").write_bytes(b"x")
    (cache / "tool").chmod(0o6755)
    copied = kept(cache)
    assert (copied / "file").is_symlink() and (copied / "folder").is_symlink() and not (copied / "pipe").exists()
    assert (copied / "tool").stat().st_mode & 0o7777 == 0o755
    assert not any(
        path.is_file() and b"own" in path.read_bytes() for path in copied.rglob("*") if not path.is_symlink()
    )


@pytest.mark.parametrize("entry", ["folder", "file"])
def test_an_entry_that_changes_while_it_is_copied_leads_nowhere(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    """Between the look at an entry and its opening, which an attacker needs no luck to meet: there are thousands."""
    secret, looked = tmp_path / "secret", os.stat
    secret.mkdir()
    (secret / "key").write_text("root's own")
    (cache / "folder").mkdir()
    (cache / "file").write_text("compiled")

    def swaps(name: str, **how: Any) -> os.stat_result:
        found = looked(name, **how)
        if name == entry and not (cache / entry).is_symlink():
            (cache / entry).rename(tmp_path / "aside")
            (cache / entry).symlink_to(secret if entry == "folder" else secret / "key")
        return found

    monkeypatch.setattr(os, "stat", swaps)
    with pytest.raises(OSError, match=entry):
        kept(cache)
    assert (cache / entry).is_symlink(), "it was swapped"
    assert tree(Path(f"{cache}.sealed")) == set(), "nothing of a copy that went wrong stays"


def test_a_copy_that_does_not_fit_leaves_the_one_before(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept(cache).resolve()
    monkeypatch.setattr(seal, "SPARE", 2**62)
    with pytest.raises(seal.DoesNotFit, match="may be used"):
        kept(cache, "two")
    place = Path(f"{cache}.sealed")
    assert (place / "current").resolve() == before and {path.name for path in place.iterdir()} == {"one.0", "current"}
    deep = cache
    for _ in range(seal.DEEPEST + 1):
        deep /= "d"
    deep.mkdir(parents=True)
    monkeypatch.setattr(seal, "SPARE", 0)
    with pytest.raises(seal.DoesNotFit, match="within each other"):
        kept(cache, "two")


def test_a_new_copy_replaces_the_old_and_a_broken_run_is_no_obstacle(cache: Path) -> None:
    kept(cache)
    place = Path(f"{cache}.sealed")
    (place / "part/half").mkdir(parents=True)
    (place / "next").symlink_to("nowhere")
    assert seal.sealed_as(place) == "one"
    (cache / "new.so").write_bytes(b"later")
    kept(cache, "one")  # asked for again
    assert (place / "current/new.so").is_file() and seal.sealed_as(place) == "one"
    kept(cache, "two")
    assert seal.sealed_as(place) == "two" and {path.name for path in place.iterdir()} == {"two.0", "current"}
