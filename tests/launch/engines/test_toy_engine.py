"""A new engine is one new folder and nothing else: written here, found there, served on paper by every command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from sparkloom import case
from sparkloom.cli import program
from sparkloom.inputs import profile
from sparkloom.launch import engines

ADAPTER = '''
"""Toy: one program that hums, alone or with the others over NCCL."""

from sparkloom.launch.engines import base


class Toy(base.Adapter):
    name = "toy"

    def derived(self, loaded, topology):
        return [base.engine_setting("model", loaded.profile.model.id, "what it hums"), *base.listening(self.port)]

    def argv(self, settings, topology, place, release):
        return ("toy-serve", *base.words(settings), "--rank", str(place.rank))

    def environment(self, topology, place):
        return [*base.offline_environment(), *base.nccl_environment(topology, place)]


ADAPTER = Toy()
'''
FACTS = """
port: 4242
schedulers: ["toy::hum"]
reserved: [model]
"""
MEMORY = '''
"""All that is free holds one request."""

from sparkloom.launch.memory import constants
from sparkloom.launch.memory.fit import Ledger, available, requests, weigh
from sparkloom.launch.memory.constants import Requirements


def requirements(view):
    return Requirements(1.0, "", False, view.whole("ears") or 4096, "ears", 2.0, 4.0, 1, "")


def fit(view, needs):
    ledger = Ledger()
    free = available(view, ledger, constants.BARE_HOST_GIB)
    return requests(view, needs, ledger, free - weigh(view, ledger))
'''
MEASURE = '{"about": "/hum", "gauges": {"toy:running": ["running", "sum"]}}'
ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, and a profile of four Sparks that asks for it."""
    folder = tmp_path / "engines" / "toy"
    folder.mkdir(parents=True)
    files = {
        "__init__.py": "",
        "adapter.py": ADAPTER,
        "engine.yml": FACTS,
        "memory.py": MEMORY,
        "measure.json": MEASURE,
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(folder.parent)])
    engine = {"name": "toy", "release": "1.2", "image": "registry.local/toy:1.2"}
    own = {
        "summary": "a toy",
        "extends": ULTRA,
        "engine": engine,
        "launch": {"parallel": {"nodes": 4, "tp": 4, "ep": 4}, "ears": 2048},
    }
    path = tmp_path / "own.yml"
    path.write_text(yaml.safe_dump(own))
    return path


def ran(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status and what was said, of the real program in this process, where the folder is known."""
    monkeypatch.setattr(sys, "argv", ["sparkloom", *words])
    try:
        program.main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    return code, *capsys.readouterr()


def test_a_toy_is_served_on_paper(
    toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*words: str) -> str:
        code, out, err = ran(monkeypatch, capsys, words[0], str(toy), *words[1:])
        assert code == 0, out + err
        return out

    assert engines.names() == ("llamacpp", "sglang", "toy", "trtllm", "vllm")
    assert [item for item in json.loads(said("lint", "--json")) if item["severity"] == "error"] == []
    plan = json.loads(said("plan", "--json"))
    assert plan["fits"] is True and plan["launch"]["engine"] == "toy" and plan["limits"]["max_running_requests"] == 1
    assert json.loads(said("argv", "--rank", "2", "--json")) == [
        "toy-serve", "--model", "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4", "--host", "0.0.0.0", "--port", "4242",
        "--ears", "2048", "--rank", "2",
    ]  # fmt: skip
    assert json.loads(said("env", "--rank", "2", "--json"))["NCCL_NET"] == "IB"
    objects = list(yaml.safe_load_all(said("render")))
    sets = [item["spec"]["template"]["spec"]["containers"][0] for item in objects if item["kind"] == "StatefulSet"]
    assert len(sets) == 4 and all(container["securityContext"] == {"privileged": True} for container in sets)
    assert [engine["about"] for engine in engines.measured()] == ["/props", "/get_server_info", "/hum", "/version"]


@pytest.mark.parametrize("command", ["lint", "plan", "argv --rank 0", "env --rank 0", "render"])
def test_a_folder_that_is_not_there_is_refused_at_its_place(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = profile.load(ULTRA).document.data
    path = tmp_path / "own.yml"
    path.write_text(yaml.safe_dump({**data, "engine": {**data["engine"], "name": "sglan"}}, sort_keys=False))
    word, *rest = command.split()
    code, _, err = ran(monkeypatch, capsys, word, str(path), *rest)
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "name: sglan" in text)
    assert code == 2 and err.count("\n") == 1
    assert f"own.yml:{line}:" in err and "did you mean 'sglang'?" in err and "[unknown-engine]" in err


def test_it_shares_a_spark_without_being_told_how(toy: Path) -> None:
    """An engine's memory.py may have nothing to say of shares."""
    view = case.judge(str(toy)).launch.view()
    assert engines.shared(view, 110.0)[1] == {}
    assert engines.fit(engines.shared(view, 20.0)[0]).fits is False
