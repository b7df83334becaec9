"""The hub as the source, through the real client against the test bed's hub: headers come, weights do not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs.checkpoint import as_model, reading
from testbed.standins.hub import repository
from testbed.standins.hub.faults import Faults
from testbed.standins.hub.repository import Repository
from testbed.standins.hub.server import Hub
from tests.inputs.checkpoint import files

MODEL = "acme/Small-MoE"
COMMIT = "c" * 40
Serve = Callable[..., Hub]


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    root = repository.folder(tmp_path / "data", MODEL)
    # wide enough that a shard is much larger than what a header takes
    config = {**files.SMALL, "hidden_size": 512, "moe_intermediate_size": 512, "vocab_size": 2048}
    files.write(root / COMMIT, config, files.tensors(config))
    rows = [repository.describe(root / COMMIT, path) for path in sorted((root / COMMIT).iterdir())]
    built = Repository(MODEL, root, branches={"main": COMMIT}, commits={COMMIT: rows})
    built.save()
    return built


@pytest.fixture
def serve(tmp_path: Path, made: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    hubs: list[Hub] = []
    monkeypatch.setenv("HF_TOKEN", "")

    def start(*tokens: str, **faults: object) -> Hub:
        hub = Hub(("127.0.0.1", 0), tmp_path / "data", Faults(**faults), tokens)  # type: ignore[arg-type]
        threading.Thread(target=hub.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.server_address[1]}")
        hubs.append(hub)
        return hub

    yield start
    for hub in hubs:
        hub.shutdown()
        hub.server_close()


def test_a_model_on_the_hub_reads_as_in_its_folder(made: Repository, serve: Serve) -> None:
    hub = serve()
    found, here = reading.read(MODEL), reading.read(str(made.root / COMMIT))
    assert (found.id, found.revision) == (MODEL, COMMIT)
    assert found.parameters == here.parameters and found.group_bytes == here.group_bytes
    assert f"commit {COMMIT}" in found.where and as_model.of(found).data["revision"] == COMMIT
    for row in made.commits[COMMIT]:
        if row.path.endswith(".safetensors"):
            assert row.size > 500_000
            assert hub.counters.by_path[row.path] <= 110_000, "the weights were read"


def test_a_missing_revision_names_the_page(serve: Serve) -> None:
    serve()
    with pytest.raises(InputError, match="has no revision 'nightly'"):
        reading.read(MODEL, "nightly")


def test_a_model_that_is_not_there(serve: Serve) -> None:
    serve()
    with pytest.raises(InputError, match="no such model"):
        reading.read("acme/nothing")


def test_a_gated_model_says_what_to_do(made: Repository, serve: Serve) -> None:
    made.gated = True
    made.save()
    serve("hf_accepted")
    with pytest.raises(InputError, match=r"is gated.*accept its licence.*HF_TOKEN"):
        reading.read(MODEL)


def test_a_gated_model_with_a_token_is_noted(made: Repository, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    made.gated = True
    made.save()
    serve("hf_accepted")
    monkeypatch.setattr("huggingface_hub.utils._headers.get_token", lambda: "hf_accepted")
    assert reading.read(MODEL).gated


def test_no_hub_names_the_folder_as_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"does not answer.*name a folder with the model's config\.json"):
        reading.read(MODEL)


def test_a_shard_that_breaks_off_is_said(serve: Serve) -> None:
    serve(cut_after=50, cut_times=99)
    with pytest.raises(InputError):
        reading.read(MODEL)
