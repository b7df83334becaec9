"""The stand-in's verdict on the shared list of command lines: the real parser's, in its words, with its exit status."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from scripts.oracle import fetch
from sparkloom import cluster, launch, profile
from sparkloom.engines.releases import nearest
from tests.engines.cases import cases
from tests.testbed.standin import ROOT, catalog, environment, facts, judge, main, refuse

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


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize(("engine", "release"), [("sglang", "0.5.12"), ("vllm", "0.19.0")])
def test_every_line_that_the_real_parser_rejects_is_rejected_here(engine: str, release: str, real: None) -> None:
    def verdict(argv: list[str]) -> str | None:
        words = argv[3:] if argv[0] == "python3" else argv[1:] if argv[0] == "vllm" else argv
        try:
            judge.judge(engine, release, words)
        except judge.Refused as refusal:
            assert refusal.status == 2
            return str(refusal)
        return None

    listed = cases(engine)
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda case: verdict(case.argv), listed))
    refused = 0
    for case, said in zip(listed, verdicts, strict=True):
        if case.holds("accepted", release):
            assert said is None, f"{case.id}: {said}"
        else:
            refused += 1
            assert said is not None and (case.text("error", release) or "error:") in said, f"{case.id}: {said}"
    assert refused > 10


@pytest.mark.oracle
def test_the_posted_line_ends_with_the_parsers_message_and_status_2(real: None) -> None:
    command = ["python3", "-m", "sglang.launch_server", *POSTED]
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
@pytest.mark.slow
def test_every_shipped_profile_starts_and_none_meets_a_failed_row(monkeypatch: pytest.MonkeyPatch, real: None) -> None:
    here = cluster.load(ROOT / "inventories" / "kind")

    def problem(name: str) -> str | None:
        loaded = profile.load(name)
        engine = loaded.profile.engine
        plan = launch.resolve(loaded, here)
        argv, release = list(plan.ranks[0].argv), nearest(engine.name, engine.release).version
        try:
            values = judge.judge(engine.name, release, argv[3:] if argv[0] == "python3" else argv[1:])
            made = main.BUILDERS[engine.name](release, values)
            if "sglang#27998" in engine.carries:
                return None  # judged in its own image; see test_engine_refuse
            refuse.settle(made, facts.of(made.model), {one.name: str(one.value) for one in plan.ranks[0].env})
        except (judge.Refused, refuse.Refusal) as refusal:
            return f"{name}: {refusal}"
        found = main.precedents.find(made, "IB")
        return f"{name}: {found.source}" if found.outcome != "ok" else None

    with ThreadPoolExecutor(2) as pool:
        assert list(filter(None, pool.map(problem, profile.names()))) == []
