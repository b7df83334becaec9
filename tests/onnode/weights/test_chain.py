"""Four stores in a chain, in one process: the real agent, the real client, a hub that misbehaves on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import snapshot_download

from sparkloom.inputs import profile
from sparkloom.launch import downloads
from sparkloom.onnode.weights import check, main, peer, serve
from sparkloom.onnode.weights.job import Job
from sparkloom.onnode.weights.layout import Store
from testbed.standins.hub import repository, weights
from testbed.standins.hub.faults import Faults
from testbed.standins.hub.repository import Repository
from testbed.standins.hub.server import Hub

LOADED = profile.load("nvidia--nemotron-3-super-120b-a12b-nvfp4")
MODEL = LOADED.profile.model
SHARD = "model-00002-of-00003.safetensors"
NAMES = ("spark1", "spark2", "spark3", "spark4")
Serve = Callable[..., Hub]


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    return repository.make(tmp_path / "data", MODEL, weights.Shape(3, 3_000_000))


@pytest.fixture
def hub(tmp_path: Path, made: Repository) -> Iterator[Serve]:
    hubs: list[Hub] = []

    def start(*tokens: str, **faults: Any) -> Hub:
        found = Hub(("127.0.0.1", 0), tmp_path / "data", Faults(**faults), tokens)
        threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
        hubs.append(found)
        return found

    yield start
    for found in hubs:
        found.shutdown()
        found.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody lingers in a test, and an answer stands still for less than that, as on a node; servers are closed."""
    monkeypatch.setattr(main, "LINGER", 1.0)
    monkeypatch.setattr(serve, "PATIENCE", 0.1)
    monkeypatch.setattr(main, "REPORT", 0.05)
    monkeypatch.setattr(peer, "SILENCE", 3.0)
    started: list[serve.Server] = []
    start = serve.start

    def remember(job: Job) -> list[serve.Server]:
        started.extend(start(job))
        return started

    monkeypatch.setattr(serve, "start", remember)
    yield
    for server in started:
        server.shutdown()
        server.server_close()


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def hub_source(hub: Hub, token: str = "") -> dict[str, Any]:
    endpoint = f"http://127.0.0.1:{hub.server_address[1]}"
    return {"kind": "hub", "endpoint": endpoint, "plain_http": ["127.0.0.1"], "token": token, "client": ""}


def jobs(tmp_path: Path, source: dict[str, Any], count: int = 4, revision: str | None = None) -> list[Job]:
    """The chain as the plan makes it, on one address with a port per node."""
    ports = [free_port() for _ in range(count)]
    found = []
    for place in range(count):
        before = {"kind": "peer", "name": NAMES[place - 1], "addresses": ["127.0.0.1"], "port": ports[place - 1]}
        spec = {
            "job": "job",
            "secret": "of this run",
            "peers": ["127.0.0.1"],
            "store": str(tmp_path / NAMES[place]),
            "models": [{**downloads.wanted(LOADED)[0], "revision": revision}],
            "source": before if place else source,
            "listen": ["127.0.0.1"],
            "port": ports[place],
            "connections": 3,
            "downstream": place < count - 1,
        }
        found.append(Job(spec, tmp_path / f"run-{place}"))
    return found


def run(chain: list[Job]) -> list[Job]:
    """The first begins; what it lists is what the controller tells the others."""
    threads = [threading.Thread(target=main.transfer, args=(job,), daemon=True) for job in chain]
    threads[0].start()
    chain[0].listed.wait(30)
    for job, thread in zip(chain[1:], threads[1:], strict=True):
        job.spec["manifests"] = chain[0].manifests or {MODEL.id: "0" * 64}
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return chain


def states(chain: list[Job]) -> list[tuple[str, str]]:
    return [(job.state, job.cause) for job in chain]


def looked(tmp_path: Path, node: str, revision: str | None = None, **more: bool) -> dict[str, Any]:
    return check.check(Store(tmp_path / node), MODEL.id, revision, **more)


def test_every_node_has_what_the_hub_made_and_the_hub_sent_it_once(
    tmp_path: Path, made: Repository, hub: Serve
) -> None:
    served = hub()
    chain = run(jobs(tmp_path, hub_source(served)))
    assert states(chain) == [("done", "")] * 4
    commit = made.branches["main"]
    for node in NAMES:
        store = Store(tmp_path / node)
        for file in made.commits[commit]:
            content = made.location(commit, file.path).read_bytes()
            assert (store.snapshot(MODEL.id, commit) / file.path).read_bytes() == content
        assert (store.link(MODEL.id) / "config.json").exists()
        assert looked(tmp_path, node)["ok"]
        assert not list(store.root.rglob("*.part"))
    size = sum(file.size for file in made.commits[commit])
    assert served.counters.bytes == size
    assert [job.status()["have"] for job in chain] == [size] * 4


def test_an_offline_engine_finds_the_snapshot(tmp_path: Path, made: Repository, hub: Serve) -> None:
    run(jobs(tmp_path, hub_source(hub()), 2))
    found = snapshot_download(MODEL.id, cache_dir=tmp_path / "spark2", local_files_only=True)
    assert Path(found).name == made.branches["main"]


def test_a_second_run_moves_nothing_and_reads_no_weights(
    tmp_path: Path, hub: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(jobs(tmp_path, hub_source(hub()), 2))
    monkeypatch.setattr(check, "sha256", lambda path: pytest.fail("hashed again"))
    assert looked(tmp_path, "spark2")["ok"]
    again = run(jobs(tmp_path, {"kind": "own"}, 2))
    assert [job.status()["moved"] for job in again] == [0, 0]


def test_a_flipped_bit_is_named_and_only_its_file_comes_again(tmp_path: Path, hub: Serve) -> None:
    run(jobs(tmp_path, hub_source(hub()), 2))
    blob = (Store(tmp_path / "spark2").link(MODEL.id) / SHARD).resolve()
    content = bytearray(blob.read_bytes())
    content[1_000_000] ^= 4
    blob.write_bytes(content)
    answer = looked(tmp_path, "spark2")
    assert not answer["ok"]
    assert [problem.split(":")[0] for problem in answer["problems"]] == [SHARD]
    again = run(jobs(tmp_path, {"kind": "own"}, 2))
    assert states(again) == [("done", "")] * 2
    assert again[1].status()["moved"] == len(content)
    assert looked(tmp_path, "spark2", deep=True)["ok"]


def test_a_bit_that_rots_without_a_trace_is_found_when_asked_for(tmp_path: Path, hub: Serve) -> None:
    import os

    run(jobs(tmp_path, hub_source(hub()), 1))
    blob = (Store(tmp_path / "spark1").link(MODEL.id) / SHARD).resolve()
    before = blob.stat()
    content = bytearray(blob.read_bytes())
    content[5] ^= 1
    blob.write_bytes(content)
    os.utime(blob, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert looked(tmp_path, "spark1")["ok"]
    assert not looked(tmp_path, "spark1", deep=True)["ok"]


def test_a_missing_file_and_a_wrong_revision_are_named(tmp_path: Path, made: Repository, hub: Serve) -> None:
    run(jobs(tmp_path, hub_source(hub()), 1))
    assert "no verified snapshot" in looked(tmp_path, "spark1", "0" * 40)["problems"][0]
    assert made.branches["main"] in looked(tmp_path, "spark1", "0" * 40)["problems"][0]
    (Store(tmp_path / "spark1").link(MODEL.id) / SHARD).resolve().unlink()
    assert looked(tmp_path, "spark1")["problems"] == [f"{SHARD} is missing"]


def test_what_an_earlier_run_left_is_not_fetched_again(tmp_path: Path, made: Repository, hub: Serve) -> None:
    served = hub()
    entry = made.file(made.branches["main"], SHARD)
    assert entry is not None and entry.sha256
    blobs = Store(tmp_path / "spark1").repository(MODEL.id) / "blobs"
    blobs.mkdir(parents=True)
    whole = made.location(made.branches["main"], SHARD).read_bytes()
    (blobs / f"{entry.sha256}.part").write_bytes(whole[:2_000_000])
    assert states(run(jobs(tmp_path, hub_source(served), 2))) == [("done", "")] * 2
    assert served.counters.by_path[SHARD] == len(whole) - 2_000_000


def test_a_spoilt_beginning_is_noticed_at_the_end_and_fetched_again(
    tmp_path: Path, made: Repository, hub: Serve
) -> None:
    entry = made.file(made.branches["main"], SHARD)
    assert entry is not None and entry.sha256
    blobs = Store(tmp_path / "spark2").repository(MODEL.id) / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{entry.sha256}.part").write_bytes(b"x" * 1_000)
    chain = run(jobs(tmp_path, hub_source(hub()), 3))
    assert states(chain) == [("done", "")] * 3
    assert looked(tmp_path, "spark3", deep=True)["ok"]


def test_a_hub_that_sends_another_byte_is_refused_by_node_and_file(tmp_path: Path, hub: Serve) -> None:
    chain = run(jobs(tmp_path, hub_source(hub(corrupt=SHARD)), 3))
    assert [state for state, _ in states(chain)] == ["failed"] * 3
    assert SHARD in chain[0].cause and "sha256" in chain[0].cause and "damaged" in chain[0].cause
    assert "spark1" in chain[1].cause and SHARD in chain[1].cause
    assert chain[2].cause == chain[1].cause  # the first cause, not a tale of who told whom
    assert not looked(tmp_path, "spark3")["ok"]


def test_a_cut_connection_goes_on(
    tmp_path: Path, made: Repository, hub: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 100_000)
    served = hub(cut_after=1_000_000, cut_times=2)
    assert states(run(jobs(tmp_path, hub_source(served), 2))) == [("done", "")] * 2
    assert served.counters.bytes == sum(file.size for file in made.commits[made.branches["main"]])


def test_a_gated_model_is_refused_with_its_page(tmp_path: Path, hub: Serve) -> None:
    repository.make(tmp_path / "data", MODEL, weights.Shape(3, 3_000_000), gated=True)
    served = hub("hf_accepted")
    refused = run(jobs(tmp_path, hub_source(served, "hf_canary"), 1))[0]
    assert f"/{MODEL.id}" in refused.cause and "licence" in refused.cause and "HF_TOKEN" in refused.cause
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and b"hf_canary" in path.read_bytes()]
    assert not kept
    assert states(run(jobs(tmp_path, hub_source(served, "hf_accepted"), 1))) == [("done", "")]


def test_a_missing_shard_and_an_unknown_revision_end_it(tmp_path: Path, hub: Serve) -> None:
    lacking = run(jobs(tmp_path, hub_source(hub(missing=SHARD)), 2))
    assert SHARD in lacking[0].cause and SHARD in lacking[1].cause
    unknown = run(jobs(tmp_path, hub_source(hub()), 1, "nightly"))[0]
    assert "no revision 'nightly'" in unknown.cause


def test_no_room_is_said_before_the_first_byte(tmp_path: Path, hub: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        f_bavail, f_frsize = 1, 4096

    served = hub()
    monkeypatch.setattr("os.statvfs", lambda path: Full)
    refused = run(jobs(tmp_path, hub_source(served), 1))[0]
    assert "free" in refused.cause and "cluster.model_store" in refused.cause
    assert not any(path.endswith(".safetensors") for path in served.counters.by_path)


def test_a_folder_is_imported_and_a_missing_shard_of_its_index_refused(tmp_path: Path, made: Repository) -> None:
    source = made.root / made.branches["main"]
    chain = run(jobs(tmp_path, {"kind": "folder", "path": str(source)}, 3, "a" * 40))
    assert states(chain) == [("done", "")] * 3
    assert looked(tmp_path, "spark3", "a" * 40, deep=True)["ok"]
    (source / SHARD).unlink()
    refused = run(jobs(tmp_path / "other", {"kind": "folder", "path": str(source)}, 1))[0]
    assert SHARD in refused.cause and "index" in refused.cause


def test_a_node_that_is_away_is_named(tmp_path: Path) -> None:
    second = jobs(tmp_path, {"kind": "own"}, 2)[1]
    started = time.monotonic()
    second.spec["manifests"] = {MODEL.id: "0" * 64}
    run([second])
    assert "spark1" in second.cause and "doctor" in second.cause
    assert time.monotonic() - started < 15


def test_a_manifest_cannot_write_outside_its_snapshot(tmp_path: Path) -> None:
    from sparkloom.onnode.weights.layout import Snapshot, StoreError

    evil = {"path": "../../../etc/passwd", "size": 1, "blob": "a" * 40, "sha256": "a" * 64}
    with pytest.raises(StoreError, match="no path in a snapshot"):
        Snapshot.of({"id": "a/b", "commit": "c" * 40, "files": [evil]})


def test_status_is_json_that_a_follower_reads(tmp_path: Path, hub: Serve) -> None:
    job = run(jobs(tmp_path, hub_source(hub()), 1))[0]
    said = json.loads((job.run / "status.json").read_text())
    assert (said["state"], said["have"], said["files_done"]) == ("done", said["total"], said["files"])


def test_a_port_that_is_held_a_moment_longer_is_waited_for(tmp_path: Path, hub: Serve) -> None:
    import socket

    chain = jobs(tmp_path, hub_source(hub()), 2)
    holder = socket.create_server(("127.0.0.1", chain[0].spec["port"]))
    threading.Timer(1.0, holder.close).start()
    assert states(run(chain)) == [("done", "")] * 2


def test_a_removed_model_leaves_nothing_and_others_stay(tmp_path: Path, hub: Serve) -> None:
    from sparkloom.onnode.weights import layout
    from sparkloom.onnode.weights.names import StoreError

    run(jobs(tmp_path, hub_source(hub()), 1))
    store = Store(tmp_path / "spark1")
    assert [row["id"] for row in layout.listing(store)] == [MODEL.id]
    assert layout.remove(store, ["nobody/nothing"]) == []
    with pytest.raises(StoreError, match="org/name"):
        layout.remove(store, ["../.."])
    assert looked(tmp_path, "spark1")["ok"]
    assert layout.remove(store, [MODEL.id]) == [MODEL.id]
    assert not [path for path in store.root.rglob("*") if path.is_file() or path.is_symlink()]
