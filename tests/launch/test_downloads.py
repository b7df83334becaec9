"""The chain as data, what a person is told, and the way a node's program is reached."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import inventory, profile
from sparkloom.launch import downloads
from sparkloom.onnode.weights.names import StoreError
from sparkloom.render import pack
from sparkloom.site.store import follow
from sparkloom.site.store.remote import Remote

CLUSTER = inventory.load()
NODES = [node.name for node in CLUSTER.nodes]
ULTRA = profile.load("nvidia--nemotron-3-ultra-550b-a55b-nvfp4")
SETTINGS = downloads.Settings(port=20900, connections=8)


def answer(ok: bool, commit: str | None = "a" * 40) -> list[dict[str, Any]]:
    problems = [] if ok else ["model-1.safetensors: missing"]
    row = {"id": ULTRA.profile.model.id, "commit": commit, "manifest": f"of {commit}" if ok else ""}
    return [{**row, "ok": ok, "problems": problems, "bytes": 352e9}]


def chain(
    states: dict[str, list[dict[str, Any]]], settings: downloads.Settings = SETTINGS
) -> dict[str, dict[str, Any]]:
    return downloads.chain(CLUSTER, downloads.wanted(ULTRA), NODES, states, settings)


def test_the_hub_is_asked_by_one_node_and_the_others_follow_each_other() -> None:
    specs = chain({node: answer(False, None) for node in NODES})
    assert list(specs) == NODES
    assert [spec["source"]["kind"] for spec in specs.values()] == ["hub", "peer", "peer", "peer"]
    assert [spec["source"].get("name") for spec in specs.values()] == [None, *NODES[:-1]]
    assert [spec["downstream"] for spec in specs.values()] == [True, True, True, False]


def test_weights_travel_over_both_rails_by_the_functions_that_stay_on_the_host() -> None:
    specs = chain({node: answer(False, None) for node in NODES})
    source = specs[NODES[1]]["source"]
    assert source["addresses"] == specs[NODES[0]]["listen"]
    assert len(source["addresses"]) == len(CLUSTER.fabric.rails)
    from sparkloom.launch import fabric

    ends = fabric.plan(CLUSTER).of(NODES[0], CLUSTER.fabric.check_vf)
    assert source["addresses"] == [end.address for end in ends]


def test_a_node_that_has_all_hands_it_on_and_no_hub_is_asked() -> None:
    states = {node: answer(node == NODES[2]) for node in NODES}
    specs = chain(states)
    assert list(specs) == [NODES[2], NODES[0], NODES[1], NODES[3]]
    assert specs[NODES[2]]["source"] == {"kind": "own"}
    assert specs[NODES[3]]["models"][0]["revision"] == "a" * 40
    assert all(spec["source"]["kind"] != "hub" for spec in specs.values())


def test_nodes_that_have_the_same_are_left_alone_and_another_commit_is_not_the_same() -> None:
    assert chain({node: answer(True) for node in NODES}) == {}
    states = {node: answer(True, "b" * 40 if node == NODES[1] else "a" * 40) for node in NODES}
    assert list(chain(states)) == [NODES[0], NODES[1]]


def test_an_update_and_an_import_change_the_first_source_only() -> None:
    states = {node: answer(True) for node in NODES}
    update = chain(states, downloads.Settings(port=1, connections=1, update=True))
    assert [spec["source"]["kind"] for spec in update.values()] == ["hub", "peer", "peer", "peer"]
    folder = chain(
        {node: answer(False, None) for node in NODES},
        downloads.Settings(port=1, connections=1, folder="/mnt/usb"),
    )
    assert folder[NODES[0]]["source"] == {"kind": "folder", "path": "/mnt/usb"}


def test_the_same_work_has_the_same_name_in_every_run() -> None:
    states = {node: answer(False, None) for node in NODES}
    again = chain(states, downloads.Settings(port=20900, connections=4))
    assert {spec["job"] for spec in again.values()} == {spec["job"] for spec in chain(states).values()}


def test_a_gguf_profile_takes_its_parts_and_nothing_else() -> None:
    import fnmatch

    want = downloads.wanted(profile.load("unsloth--nemotron-3-ultra-550b-a55b-gguf--2node"))[0]
    here = "UD-IQ2_M/NVIDIA-Nemotron-3-Ultra-550B-A55B-UD-IQ2_M-00004-of-00005.gguf"
    other = "UD-Q4_K_M/NVIDIA-Nemotron-3-Ultra-550B-A55B-UD-Q4_K_M-00001-of-00009.gguf"
    assert any(fnmatch.fnmatch(here, pattern) for pattern in want["include"])
    assert not any(fnmatch.fnmatch(other, pattern) for pattern in want["include"])


def test_what_is_wrong_is_told_with_node_and_file_and_what_is_right_in_one_line() -> None:
    states = {node: answer(node != NODES[1]) for node in NODES}
    told = downloads.announcement(NODES, states, chain(states))
    assert f"{NODES[1]}: model-1.safetensors: missing" in told
    assert f"what it has -> {NODES[0]} -> {NODES[1]}" in told
    fine = {node: answer(True) for node in NODES}
    assert "\n" not in downloads.announcement(NODES, fine, {})
    assert "352.0 GB" in downloads.announcement(NODES, fine, {})


def test_the_program_runs_from_its_archive_and_refuses_in_words(tmp_path: Path) -> None:
    program = pack.program("weights").keep(tmp_path)
    assert program == pack.program("weights").keep(tmp_path)

    def ask(command: str, asked: object) -> Any:
        ran = subprocess.run(
            [sys.executable, "-S", program, command], input=json.dumps(asked), capture_output=True, text=True
        )
        return json.loads(ran.stdout)

    wanted = {"store": str(tmp_path / "hub"), "models": downloads.wanted(ULTRA)}
    assert "no verified snapshot" in ask("check", wanted)["answer"][0]["problems"][0]
    assert ask("list", wanted) == {"answer": []}


def test_the_clients_archive_is_importable_and_holds_no_machine_code(tmp_path: Path) -> None:
    archive = pack.client(tmp_path)
    assert not [name for name in zipfile.ZipFile(archive).namelist() if name.endswith((".so", ".pyc"))]
    code = "import huggingface_hub, sys; huggingface_hub.HfApi; print(huggingface_hub.__file__)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(archive)}, capture_output=True, text=True
    )
    assert ran.stdout.startswith(str(archive)), ran.stderr


class Node:
    """A node's shell, as far as a store program is asked for."""

    def __init__(self, has: bool, said: str = '{"answer": 1}') -> None:
        self.has, self.said, self.lines = has, said, []

    def __call__(self, line: str, data: bytes | None) -> dict[str, Any]:
        self.lines.append((line, data))
        if "cat >" in line:
            self.has = True
            return {"rc": 0, "stdout": "", "stderr": ""}
        return {"rc": 0 if self.has else 66, "stdout": self.said if self.has else "", "stderr": "sudo: no"}


def test_the_program_is_sent_once_and_secrets_go_by_standard_input(tmp_path: Path) -> None:
    local = tmp_path / "weights-0123.pyz"
    local.write_bytes(b"program")
    node = Node(has=False)
    remote = Remote("spark1", node, local)
    assert remote.ask("start", {"token": "hf_canary"}) == 1
    assert remote.ask("status") == 1
    assert [data for line, data in node.lines if "cat >" in line] == [b"program"]
    assert not any("hf_canary" in line for line, _ in node.lines)
    assert any(b"hf_canary" in (data or b"") for _, data in node.lines)


@pytest.mark.parametrize(("said", "words"), [('{"error": "no room"}', "spark1: no room"), ("boom", "spark1: ")])
def test_a_refusal_carries_the_nodes_name(tmp_path: Path, said: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        Remote("spark1", Node(True, said), tmp_path / "weights-0.pyz").ask("check")


def test_progress_says_bytes_rate_and_time_left_and_ends_with_a_verdict() -> None:
    moving = {"state": "moving", "have": 12e9, "total": 352e9, "rate": 2e9, "files_done": 3, "files": 70}
    assert (
        follow.line("spark2", moving)
        == "spark2  [................]  12.0 GB of 352.0 GB  2.0 GB/s  2 min 50 s left  3/70 files"
    )
    said: list[str] = []
    states = iter([moving, moving, {"state": "failed", "cause": "why"}])
    last = follow.follow("spark2", lambda: next(states), said.append, pause=0.001)
    assert follow.ended("spark2", last) == "spark2: why"


def test_what_the_site_serves_is_not_removed() -> None:
    from sparkloom.base.errors import InputError

    models = downloads.wanted(ULTRA)
    downloads.removable(models, ["org/other"])
    with pytest.raises(InputError, match=r"cluster\.yml"):
        downloads.removable(models, ["org/other", ULTRA.profile.model.id])


def test_a_listing_names_node_size_and_snapshot() -> None:
    row = {"id": "org/name", "commit": "a" * 40, "bytes": 75e9, "current": False}
    told = downloads.contents({"spark1": [row], "spark2": []}).splitlines()
    assert told == ["spark1     75.0 GB  org/name at aaaaaaaaaaaa  not used by name", "spark2  nothing verified"]
