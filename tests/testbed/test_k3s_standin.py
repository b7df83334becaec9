"""The stand-in takes and refuses a configuration as K3s does, and is one file that runs by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.make import k3s


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("k3s") / "k3s"
    k3s.standin(target, k3s.release())
    return target


def parse(program: Path, command: str, config: dict[str, Any], tmp_path: Path, *words: str) -> tuple[str, str]:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import arguments\n"
        "try: print(json.dumps(arguments.parse(sys.argv[2], sys.argv[4:], sys.argv[3])))\n"
        "except arguments.BadFlag as refusal: print(refusal)"
    )
    done = subprocess.run([sys.executable, "-c", code, program, command, path, *words], capture_output=True, text=True)
    return done.stdout.strip(), done.stderr.strip()


def test_it_is_one_executable_file_and_the_same_each_time(program: Path, tmp_path: Path) -> None:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"k3s version {k3s.release()} ")
    k3s.standin(tmp_path / "k3s", k3s.release())
    assert (tmp_path / "k3s").read_bytes() == program.read_bytes()


def test_a_server_skips_what_it_does_not_know_and_an_agent_ends(program: Path, tmp_path: Path) -> None:
    config = {"node-name": "a", "no-such-key": 1}
    out, err = parse(program, "server", config, tmp_path)
    assert out == '{"node-name": "a"}' and "Unknown flag --no-such-key found in config.yaml, skipping" in err
    assert parse(program, "agent", config, tmp_path)[0] == "flag provided but not defined: -no-such-key"
    assert parse(program, "agent", {"cluster-init": True}, tmp_path)[0].endswith("not defined: -cluster-init")


def test_a_flag_on_the_command_line_must_be_known_to_both(program: Path, tmp_path: Path) -> None:
    assert parse(program, "server", {}, tmp_path, "--nope=1")[0] == "flag provided but not defined: -nope"


def test_values_are_read_by_type_and_lists_grow(program: Path, tmp_path: Path) -> None:
    config = {"tls-san": ["a", "b"], "cluster-init": True, "https-listen-port": 7443}
    out, _ = parse(program, "server", config, tmp_path, "--tls-san=c")
    assert out == '{"cluster-init": true, "https-listen-port": 7443, "tls-san": ["a", "b", "c"]}'
    assert "parse error" in parse(program, "server", {"cluster-init": "perhaps"}, tmp_path)[0]


def test_drop_ins_come_after_the_file(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "config.yaml.d"
    folder.mkdir()
    (folder / "10.yaml").write_text("node-name: other\nnode-label+: [c=d]\n")
    out, _ = parse(program, "agent", {"node-name": "a", "node-label": ["a=b"]}, tmp_path)
    assert out == '{"node-label": ["a=b", "c=d"], "node-name": "other"}'
