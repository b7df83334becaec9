"""llama.cpp's image: with RPC, for this GPU, with Python; its programs stand where the catalog says, by both names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts.image import __main__ as command
from scripts.image import llamacpp
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.launch import engines

RPC = "unsloth--nemotron-3-ultra-550b-a55b-gguf--2node"
BUILD, RUN = "sha256:" + "ab" * 32, "sha256:" + "cd" * 32


def test_it_is_built_with_rpc_for_sm121_and_runs_with_python() -> None:
    text = llamacpp.dockerfile(profile.load(RPC), BUILD, RUN)
    first, last = text.split("\nFROM ")[1:]
    assert "-DGGML_RPC=ON" in first and "-DCMAKE_CUDA_ARCHITECTURES=121a-real" in first
    assert "--branch b8399 " in first and f"@{BUILD} AS build" in first
    assert f"@{RUN}\n" in last and " python3" in last and "COPY --from=build /app /app" in last
    assert f"docker build -t {profile.load(RPC).profile.engine.image} ." in text


@pytest.mark.parametrize(("digest", "run"), [("", RUN), (BUILD, ""), ("b8399", RUN)])
def test_both_bases_are_pinned(digest: str, run: str) -> None:
    with pytest.raises(InputError, match="is no image digest"):
        llamacpp.context(profile.load(RPC), digest, run)


@pytest.mark.parametrize("called", ["rpc-server", "ggml-rpc-server"])
def test_the_build_s_own_words_leave_every_program_under_every_name(tmp_path: Path, called: str) -> None:
    """The step of the Dockerfile itself, run on what such a build leaves."""
    made = tmp_path / "build/bin"
    made.mkdir(parents=True)
    for name, text in (("llama-server", "echo ' --rpc SERVERS'"), (called, "echo lends"), ("libggml-rpc.so", "")):
        (made / name).write_text(f"#!/bin/sh\n{text}\n")
        (made / name).chmod(0o755)
    words = llamacpp.gather("b8399").replace("/app", str(tmp_path / "app"))
    subprocess.run(["sh", "-ec", words], cwd=tmp_path, check=True)
    paths = [path for names in engines.catalog("llamacpp", "b8399").programs.values() for path in names]
    assert all((tmp_path / path.lstrip("/")).resolve().is_file() for path in paths)
    (made / "llama-server").write_text("#!/bin/sh\necho no such thing\n")
    assert subprocess.run(["sh", "-ec", words], cwd=tmp_path).returncode, "a build without RPC ends here"


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["context", RPC, "--digest", BUILD, "--run-digest", RUN, "-o", str(tmp_path / "made")]
    assert command.main(words) == 0
    assert [file.name for file in (tmp_path / "made").iterdir()] == ["Dockerfile"]
    assert command.main(["context", RPC]) == 2 and "--digest" in capsys.readouterr().err
