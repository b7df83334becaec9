"""The stand-in's verdict on the shared list of command lines: the real parser's, in its words, with its exit status."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from scripts.oracle import fetch
from sparkloom.inputs import inventory, profile
from sparkloom.inputs.catalogs.releases import nearest
from sparkloom.launch import resolve
from testbed.make import engine_image
from tests.forks import without_own
from tests.inputs.catalogs.cases import cases
from tests.testbed.standin import (
    ROOT,
    Config,
    catalog,
    environment,
    facts,
    judge,
    main,
    precedents,
    refuse,
    stages,
)

POSTED = [
    "--model-path", "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4", "--trust-remote-code",
    "--quantization", "modelopt_fp4", "--tp-size", "4", "--disable-deep-gemm",
]  # fmt: skip


@pytest.fixture(scope="module")
def real(request: pytest.FixtureRequest) -> None:
    try:
        for engine, release in (("sglang", "0.5.12"), ("vllm", "0.19.0")):
            fetch.fetch(engine, release)
            fetch.fetch_dependencies(engine)
    except fetch.FetchError as error:
        pytest.skip(f"a release is not here and cannot be fetched: {error}")


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "scripts"))


def spoken(argv: list[str]) -> list[str]:
    """The words behind the program, as the image's entry points hand them on."""
    return argv[3:] if argv[0] == "python3" else argv[1:]


@pytest.mark.oracle
@pytest.mark.parametrize(("engine", "release"), [("sglang", "0.5.12"), ("vllm", "0.19.0")])
def test_every_line_that_the_real_parser_rejects_is_rejected_here(engine: str, release: str, real: None) -> None:
    listed = [case for case in cases(engine) if case.argv[0] in ("python3", "vllm")]
    refused = 0
    for case, verdict in zip(listed, judge.verdicts(engine, release, [spoken(c.argv) for c in listed]), strict=True):
        if case.holds("accepted", release):
            assert judge.accepted(engine, verdict), case.id
            continue
        refused += 1
        with pytest.raises(judge.BadArguments) as said:
            judge.accepted(engine, verdict)
        assert said.value.status == 2
        assert (case.text("error", release) or "error:") in str(said.value), case.id
    assert refused > 10


@pytest.mark.oracle
def test_the_posted_line_ends_with_the_parsers_message_and_status_2(real: None) -> None:
    command = [sys.executable, "-m", "sglang.launch_server", *POSTED]
    done = subprocess.run(command, env=environment(STANDIN_RELEASE="0.5.12"), capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "launch_server.py: error: unrecognized arguments: --disable-deep-gemm"


@pytest.mark.parametrize("engine", ["trtllm", "llamacpp"])
def test_engines_without_a_parser_are_judged_by_their_list(engine: str) -> None:
    release = {"trtllm": "1.3.0rc9", "llamacpp": "b8399"}[engine]
    for case in cases(engine):
        words = case.argv if case.argv[0] == "rpc-server" else case.argv[1:]
        if case.holds("accepted", release):
            catalog.parse(engine, release, words)
        else:
            with pytest.raises(catalog.BadLine):
                catalog.parse(engine, release, words)


@pytest.mark.parametrize(
    ("engine", "words", "said", "status"),
    [
        ("trtllm", ["m/m", "--tp-size", "1"], "Error: No such option: --tp-size", 2),
        ("trtllm", ["m/m", "--port", "x"], "Invalid value for '--port': 'x' is not a valid integer.", 2),
        ("trtllm", ["m/m", "--backend", "x"], "'x' is not one of '_autodeploy', 'pytorch'", 2),
        ("trtllm", ["--port", "1"], "Missing argument 'MODEL'.", 2),
        ("trtllm", ["m/m", "n/n"], "Got unexpected extra argument (n/n)", 2),
        ("trtllm", ["m/m", "--port"], "Option '--port' requires an argument.", 2),
        ("llamacpp", ["--gpu-layer", "9"], "error: invalid argument: --gpu-layer", 1),
        ("llamacpp", ["--port", "x"], 'error while handling argument "--port"', 1),
        ("llamacpp", ["--port"], "expected value for argument", 1),
    ],
)
def test_their_words_and_status(engine: str, words: list[str], said: str, status: int) -> None:
    with pytest.raises(catalog.BadLine) as found:
        catalog.parse(engine, {"trtllm": "1.3.0rc9", "llamacpp": "b8399"}[engine], words)
    assert said in str(found.value)
    assert found.value.status == status


@pytest.mark.oracle
def test_a_forks_own_flags_are_not_the_releases_to_judge(monkeypatch: pytest.MonkeyPatch, real: None) -> None:
    """An image under a fork's name takes them; all else is judged, and the log says what was not."""
    words = ["serve", "m/m", "--mxfp4-backend", "CUTLASS", "--max-model-len", "4096"]
    monkeypatch.delenv("STANDIN_FORK", raising=False)
    with pytest.raises(judge.BadArguments, match="--mxfp4-backend"):
        judge.judge("vllm", "0.19.0", words)
    monkeypatch.setenv("STANDIN_FORK", "--mxfp4-backend --mxfp4-layers")
    values = judge.judge("vllm", "0.19.0", words)
    assert values["max_model_len"] == 4096 and values["mxfp4_backend"] == "CUTLASS"
    with pytest.raises(judge.BadArguments, match="--no-such-flag"):
        judge.judge("vllm", "0.19.0", [*words, "--no-such-flag"])
    env = environment(STANDIN_RELEASE="0.19.0", STANDIN_FORK="--mxfp4-backend", STANDIN_LOAD_SECONDS="0")
    entry = 'from standin.main import main; main("vllm")'
    started = [sys.executable, "-c", entry, *words, "--host", "no-such-address"]
    said = subprocess.run(started, env=env, capture_output=True, text=True, timeout=60).stdout
    assert "own parser accepted the command line, but for what its fork adds: --mxfp4-backend" in said


def test_an_image_takes_what_the_profiles_of_its_fork_say_that_it_adds() -> None:
    added = {image.reference.split("/")[-1]: image.adds for image in engine_image.wanted()}
    assert added["vllm-node-b12x:latest"] == ("--attention-backend", "--linear-backend", "--moe-backend")
    assert added["sglang:dev-qwen38-next-local"] == ("--ple-offload-backend", "--ple-offload-embedding")
    assert added["vllm-openai:v0.32.0"] == ()


def test_a_table_that_a_fork_leaves_on_disk_takes_no_memory() -> None:
    """Its checkpoint is larger than a Spark; SGLang's cookbook serves it on one."""
    model = facts.of("RadixArk/Qwen3.8-Flash-Next-NVFP4")
    one = Config("sglang", "0.5.19", "m", "m", "127.0.0.1", 1)
    assert stages._weights(one, model) > stages.LARGEST
    left = replace(one, values={"ple_offload_backend": "file"})
    assert stages._weights(left, model) < 90


@pytest.mark.oracle
@pytest.mark.slow
def test_every_shipped_profile_starts_and_none_meets_a_failed_row(monkeypatch: pytest.MonkeyPatch, real: None) -> None:
    here = inventory.load(ROOT / "inventories" / "kind")
    plans = [(profile.load(name), resolve.resolve(profile.load(name), here)) for name in profile.names()]
    lines: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for loaded, plan in plans:
        engine = loaded.profile.engine
        lines[engine.name, nearest(engine.name, engine.release).version].append((loaded, plan))
    bad = []
    for (engine, release), group in lines.items():
        argvs = [spoken(without_own(plan.ranks[0].argv, loaded.profile.engine.fork)) for loaded, plan in group]
        if engine in judge.PROGRAMS:
            made = [judge.accepted(engine, verdict) for verdict in judge.verdicts(engine, release, argvs)]
        else:
            made = [catalog.parse(engine, release, argv) for argv in argvs]
        for (loaded, plan), values in zip(group, made, strict=True):
            monkeypatch.setenv("STANDIN_CARRIES", " ".join(loaded.profile.engine.carries))
            settings = main.BUILDERS[engine](release, values)
            environ = {one.name: str(one.value) for one in plan.ranks[0].env}
            settled, _ = refuse.settle(settings, facts.of(settings.model), environ)
            found = precedents.find(settled, "IB")
            bad += [f"{loaded.name}: {found.source}"] if found.outcome != "ok" else []
    assert bad == []
