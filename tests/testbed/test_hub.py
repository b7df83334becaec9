"""The hub under the real huggingface_hub client: what it asks for is answered, what it does not check is known."""

from __future__ import annotations

import hashlib
import json
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    LocalEntryNotFoundError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from sparkloom.inputs import profile
from testbed.standins.hub import repository, weights
from testbed.standins.hub.faults import Faults
from testbed.standins.hub.repository import Repository
from testbed.standins.hub.server import Hub

MODEL = profile.load("nvidia--nemotron-3-super-120b-a12b-nvfp4").profile.model
SHAPE = weights.Shape(shards=3, shard_bytes=300_000)
SHARD = "model-00002-of-00003.safetensors"
Serve = Callable[..., tuple[Hub, str]]


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    return repository.make(tmp_path / "data", MODEL, SHAPE)


@pytest.fixture
def serve(tmp_path: Path, made: Repository) -> Iterator[Serve]:
    hubs: list[Hub] = []

    def start(*tokens: str, **faults: object) -> tuple[Hub, str]:
        hub = Hub(("127.0.0.1", 0), tmp_path / "data", Faults(**faults), tokens)  # type: ignore[arg-type]
        threading.Thread(target=hub.serve_forever, args=(0.01,), daemon=True).start()
        hubs.append(hub)
        return hub, f"http://127.0.0.1:{hub.server_address[1]}"

    yield start
    for hub in hubs:
        hub.shutdown()
        hub.server_close()


def get(url: str, cache: Path, **more: object) -> Path:
    found = snapshot_download(MODEL.id, endpoint=url, cache_dir=cache, **{"token": False, **more})  # type: ignore[arg-type]
    return Path(str(found))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_snapshot_arrives_as_it_was_made(made: Repository, serve: Serve, tmp_path: Path) -> None:
    _, url = serve()
    snapshot = get(url, tmp_path / "cache")
    commit = made.branches["main"]
    assert snapshot.name == commit
    for file in made.commits[commit]:
        assert (snapshot / file.path).read_bytes() == made.location(commit, file.path).read_bytes()
        assert (snapshot / file.path).resolve().name == (file.sha256 or file.oid)


def test_weights_are_valid_safetensors_and_the_index_names_every_tensor(made: Repository) -> None:
    folder = made.root / made.branches["main"]
    mapping = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    named = {}
    for shard in folder.glob("*.safetensors"):
        raw = shard.read_bytes()
        (length,) = struct.unpack("<Q", raw[:8])
        table = json.loads(raw[8 : 8 + length])
        table.pop("__metadata__")
        assert max(entry["data_offsets"][1] for entry in table.values()) == len(raw) - 8 - length
        named |= dict.fromkeys(table, shard.name)
    assert named == mapping
    assert json.loads((folder / "config.json").read_text())["architectures"] == [MODEL.architecture]


def test_the_seed_is_the_commit_and_sparse_files_cost_no_disk(tmp_path: Path) -> None:
    unpinned = MODEL.model_copy(update={"revision": None})
    commits = [
        repository.make(tmp_path / name, unpinned, weights.Shape(1, 40_000, seed)).branches["main"]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert commits[0] == commits[1] != commits[2]
    big = repository.make(tmp_path / "d", MODEL, weights.Shape(1, 64 << 20, sparse=True))
    shard = next(big.root.rglob("*.safetensors")).stat()
    assert shard.st_size > 60 << 20
    assert shard.st_blocks * 512 < 1 << 20


def test_branches_move_and_commits_stay(made: Repository, serve: Serve, tmp_path: Path) -> None:
    _, url = serve()
    first = made.branches["main"]
    second = repository.make(tmp_path / "data", MODEL, weights.Shape(3, 300_000, seed=2)).branches["main"]
    api = HfApi(endpoint=url, token=False)
    assert api.model_info(MODEL.id).sha == second
    assert api.model_info(MODEL.id, revision=first[:8]).sha == first
    assert get(url, tmp_path / "cache", revision=first).name == first
    with pytest.raises(RevisionNotFoundError):
        api.model_info(MODEL.id, revision="nightly")
    with pytest.raises(RepositoryNotFoundError):
        HfApi(endpoint=url, token="any").model_info("nobody/nothing")


def test_the_hub_tells_sha256_and_size_of_large_files(made: Repository, serve: Serve) -> None:
    _, url = serve()
    folder = made.root / made.branches["main"]
    rows = {row.path: row for row in HfApi(endpoint=url, token=False).list_repo_tree(MODEL.id, recursive=True)}
    assert rows[SHARD].lfs is not None and rows[SHARD].lfs.sha256 == sha256(folder / SHARD)
    assert rows[SHARD].size == (folder / SHARD).stat().st_size
    assert rows["config.json"].lfs is None


def test_a_cut_connection_is_resumed_from_where_it_broke(
    made: Repository, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The client writes whole pieces only and loses the last one's beginning; 10 MB would be all of these files.
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 20_000)
    hub, url = serve(cut_after=100_000, cut_times=2)
    snapshot = get(url, tmp_path / "cache", max_workers=1)
    sizes = {file.path: file.size for file in made.commits[made.branches["main"]]}
    assert sha256(snapshot / SHARD) == sha256(made.location(made.branches["main"], SHARD))
    assert {path: hub.counters.by_path[path] for path in sizes} == sizes  # a restart would have sent bytes twice


def test_the_client_does_not_notice_a_flipped_byte(made: Repository, serve: Serve, tmp_path: Path) -> None:
    """Why the product hashes by itself: the client compares sizes only."""
    _, url = serve(corrupt=SHARD)
    snapshot = get(url, tmp_path / "cache")
    assert (snapshot / SHARD).resolve().name != sha256(snapshot / SHARD)


def test_a_missing_shard_fails(serve: Serve, tmp_path: Path) -> None:
    _, url = serve(missing=SHARD)
    with pytest.raises((RemoteEntryNotFoundError, LocalEntryNotFoundError)):
        get(url, tmp_path / "cache")


def test_a_gated_model_asks_for_a_token_that_was_accepted(serve: Serve, tmp_path: Path) -> None:
    repository.make(tmp_path / "data", MODEL, SHAPE, gated=True)
    _, url = serve("hf_accepted")
    for number, token in enumerate((False, "hf_other")):
        with pytest.raises(GatedRepoError) as refused:
            get(url, tmp_path / f"cache{number}", token=token)
        assert refused.value.response.status_code == (401, 403)[number]
    assert get(url, tmp_path / "cache", token="hf_accepted").is_dir()


def test_ranges_are_exact(made: Repository, serve: Serve) -> None:
    _, url = serve()
    whole = made.location(made.branches["main"], SHARD).read_bytes()
    address = f"{url}/{MODEL.id}/resolve/main/{SHARD}"
    for header, part in (("bytes=5-9", whole[5:10]), ("bytes=299000-", whole[299000:])):
        answer = requests.get(address, headers={"Range": header}, timeout=10)
        assert (answer.status_code, answer.content) == (206, part)
    assert requests.get(address, headers={"Range": f"bytes={len(whole)}-"}, timeout=10).status_code == 416


def test_the_rate_holds_over_all_connections(serve: Serve, tmp_path: Path) -> None:
    import time

    _, url = serve(rate=2_000_000)
    started = time.monotonic()
    get(url, tmp_path / "cache")
    assert time.monotonic() - started > 0.35  # 0.9 MB


def test_what_a_profile_pins_is_made_beside_what_was_there(tmp_path: Path) -> None:
    """A hub's data outlives a profile: one that was given a revision since is served all the same (red before)."""
    from testbed.standins.hub.catalog import Catalog

    catalog = Catalog(tmp_path, weights.Shape(1, 20_000))
    before = repository.make(tmp_path, MODEL.model_copy(update={"revision": None}), catalog.shape).branches["main"]
    catalog.ensure(MODEL.id)
    held = repository.load(repository.folder(tmp_path, MODEL.id))
    assert MODEL.revision and set(held.commits) == {before, MODEL.revision} and held.branches["main"] == MODEL.revision


def test_a_models_weights_are_made_when_a_profile_names_it(tmp_path: Path) -> None:
    from testbed.standins.hub.catalog import Catalog

    catalog = Catalog(tmp_path, weights.Shape(1, 20_000))
    for name in profile.names():
        model = profile.load(name).profile.model
        catalog.ensure(model.id)
        made = repository.every(tmp_path)[model.id]
        assert model.file is None or made.file(made.branches["main"], model.file)
    catalog.ensure("nobody/nothing")
    assert "nobody/nothing" not in repository.every(tmp_path)
