"""`sparkloom bench` against the pacing server: figures against what was really sent, and every way to fail named."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.measure.bench.conftest import COMMAND, Paced, serving

KEYS = {"concurrency", "requests", "ok", "output_tokens", "ttft_ms", "itl_ms", "decode_tok_s", "sum_tok_s",
        "wall_tok_s", "guard"}  # fmt: skip
PROVENANCE = {"profile", "profile_hash", "image", "image_digest", "argv", "env", "driver", "nccl", "transport", "rails"}


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# How exact the figures are is what scripts/bench/load.py shows; here a busy machine may take a tenth of half a second,
# and counting chunks instead of tokens would still be off by four.
def true_rate(truth: list[dict[str, Any]]) -> float:
    return mean([(sum(t["tokens"]) - t["tokens"][0]) / (t["sent"][-1] - t["sent"][0]) for t in truth])


def test_the_contract_s_shape_and_the_truth(paced: Paced, tmp_path: Path) -> None:
    paced.truth()
    data = paced.bench("-n", "1,3", "-o", str(tmp_path), "--max-tokens", "100", "--requests", "3")
    truth = paced.truth()
    assert [level["concurrency"] for level in data["levels"]] == [1, 3] and data["valid"] and data["complete"]
    for level, sent in zip(data["levels"], (truth[:3], truth[3:]), strict=True):
        assert set(level) >= KEYS and level["ok"] == 3 and level["output_tokens"] == 300
        assert set(level["ttft_ms"]) == set(level["itl_ms"]) == {"mean", "p50", "p95", "p99"}
        assert level["decode_tok_s"] == pytest.approx(true_rate(sent), rel=0.1)
        first = mean([t["sent"][0] - t["asked"] for t in sent]) * 1000
        assert first - 1 < level["ttft_ms"]["mean"] < first + 60, "a busy machine is late, never early"
        assert level["guard"]["verdict"] == "ok" and level["tokens_from"] == {"engine": 3}
        assert level["engine"]["generated"] >= 300 and "note" not in level["engine"]
    assert set(data["provenance"]) >= PROVENANCE
    assert all(str(data["provenance"][key]).startswith("unknown, because") for key in PROVENANCE)
    (kept,) = tmp_path.glob("bench-*.json")
    assert json.loads(kept.read_text())["levels"] == data["levels"]


@pytest.mark.parametrize(
    "knobs", ["per_chunk=4", "per_chunk=4,first_chunk=1", "per_chunk=4,counts=1", "tail=1,split=7"]
)
def test_bursts_do_not_bend_the_figures(paced: Paced, knobs: str) -> None:
    found = list[tuple[float, float]]()
    while len(found) < 3 and (not found or found[-1][0] != pytest.approx(found[-1][1], rel=0.1)):  # a busy machine
        paced.truth()
        level = paced.bench("--model", f"pacing,{knobs}", "--max-tokens", "96")["levels"][0]
        assert level["output_tokens"] == 192 + 2 * ("tail" in knobs)
        found.append((level["decode_tok_s"], true_rate(paced.truth())))
    assert found[-1][0] == pytest.approx(found[-1][1], rel=0.1), found
    assert level["itl_ms"]["mean"] == pytest.approx(1000 / found[-1][1], rel=0.1)


def test_the_first_reasoning_token_is_the_first_token_and_a_role_is_none(paced: Paced) -> None:
    for knobs in ("reasoning=12", "role=1,ttft=0.3", "role=0"):
        level = paced.bench("--model", f"pacing,{knobs}")["levels"][0]
        assert level["ttft_ms"]["p50"] >= (300 if "0.3" in knobs else 50)
        assert level["per_request"][0]["chunks"] == 24
    assert level["ttft_ms"]["p50"] < 300


def test_missing_usage_is_said(paced: Paced) -> None:
    limit = paced.bench("--model", "pacing,usage=0")
    assert limit["levels"][0]["tokens_from"] == {"limit": 2} and limit["levels"][0]["estimated"]
    shorter = paced.run("--model", "pacing,usage=0,tokens=20,per_chunk=2")
    assert shorter.returncode == 1 and "~20" in shorter.stdout and "no token counts" in shorter.stdout


@pytest.mark.parametrize(
    ("knobs", "error", "words"),
    [
        ("status=500", "http-500", "as told"),
        ("status=429", "http-429", "Retry-After: 7"),
        ("cut_after=8", "cut", "after 8 chunks"),
        ("error_after=8", "engine-error", "the engine broke"),
        ("stall_after=8,ping=0.1", "stall", "after 8 chunks"),
        ("ttft=30", "no-token", "no token within 1 s"),
        ("garbage=bytes", "garbled", "expected an HTTP/1.1 answer"),
        ("tokens=0", "empty", "without a single token"),
    ],
)
def test_failures_have_names(paced: Paced, knobs: str, error: str, words: str) -> None:
    options = ("--stall-timeout", "1", "--first-timeout", "1")
    data = paced.bench("--model", f"pacing,{knobs}", *options, code=1)
    level = data["levels"][0]
    assert level["ok"] == 0 and level["errors"] == {error: 2} and not data["valid"]
    assert words in level["per_request"][0]["detail"]


@pytest.mark.parametrize("form", ["flood", "loop"])
def test_garbage_is_never_a_valid_run(paced: Paced, form: str) -> None:
    done = paced.run("--model", f"pacing,garbage={form},rate=4000", "--max-tokens", "1500")
    assert done.returncode == 1 and "garbage" in done.stdout and "not valid" in done.stdout


def test_slow_headers_and_idle_connections_that_close(paced: Paced) -> None:
    assert paced.bench("--model", "pacing,slow_headers=0.03,split=3")["valid"]
    for keep_alive in ("0", "2"):
        level = paced.bench("--model", f"pacing,keep_alive={keep_alive},tokens=4", "--requests", "6")["levels"][0]
        assert level["ok"] == 6


def test_the_open_loop_counts_the_wait(paced: Paced) -> None:
    words = ("--rate", "200", "--requests", "12", "--in-flight", "2", "--max-tokens", "20")
    level = paced.bench(*words)["levels"][0]
    assert (level["mode"], level["ok"], level["most_in_flight"], level["sum_tok_s"]) == ("open", 12, 2, None)
    waits = [row["started_late_ms"] for row in level["per_request"]]
    assert max(waits) > 500 and level["ttft_ms"]["p99"] > 500, "twelve at once, two at a time, 0.15 s each"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_keeps_what_is_done(paced: Paced, tmp_path: Path, number: signal.Signals) -> None:
    words = [COMMAND, "bench", "--url", paced.url, "-n", "1,2", "--warmup", "0", "--requests", "2",
             "--max-tokens", "400", "-o", str(tmp_path), "--json"]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not list(tmp_path.glob("bench-*.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)
        process.send_signal(number)
        text, said = process.communicate(timeout=20)
    assert process.returncode == 128 + number and "Traceback" not in said and number.name in said
    data = json.loads(text)
    assert [(level["ok"], level["partial"]) for level in data["levels"]] == [(2, False), (0, True)]
    assert data["levels"][1]["per_request"][0]["chunks"] > 0 and not data["complete"]
    assert json.loads(next(tmp_path.glob("bench-*.json")).read_text())["levels"] == data["levels"]


def test_a_key_is_sent_and_never_shown(tmp_path: Path) -> None:
    with serving("rate=400", "ttft=0.01", "--key", "s3cret-Word", "--metrics", "vllm") as server:
        refused = server.run(env={**os.environ, "SPARKLOOM_API_KEY": ""})
        assert refused.returncode == 2 and "wants a key" in refused.stderr
        data = server.bench(env={**os.environ, "SPARKLOOM_API_KEY": "s3cret-Word"})
        assert data["valid"] and data["levels"][0]["accept_length"] == pytest.approx(3.0, abs=0.2)
        (tmp_path / "key").write_text("s3cret-Word\n")
        done = server.run("--api-key-file", str(tmp_path / "key"), "-o", str(tmp_path / "out"))
        everything = done.stdout + done.stderr + json.dumps(data) + next((tmp_path / "out").iterdir()).read_text()
        assert done.returncode == 0 and "s3cret" not in everything


def test_tls_with_a_certificate_of_one_s_own(tmp_path: Path) -> None:
    pem = tmp_path / "server.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", pem,
         "-out", tmp_path / "ca.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    assert ssl.create_default_context(cafile=tmp_path / "ca.pem")
    pem.write_text(pem.read_text() + (tmp_path / "ca.pem").read_text())
    with serving("rate=400", "ttft=0.01", "split=11", "--tls", str(pem), scheme="https") as server:
        refused = server.run()
        assert refused.returncode == 2 and "certificate" in refused.stderr
        assert server.bench("--ca", str(tmp_path / "ca.pem"), "--requests", "6")["levels"][0]["ok"] == 6


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--url", "ftp://x"), "--url"),
        (("--url", "http://user:pw@localhost"), "secret-in-url"),
        (("--url", "http://localhost:1"), "does not answer"),
        (("--url", "http://localhost:1", "-n", "0"), "--concurrency"),
        (("--url", "http://localhost:1", "--rate", "x"), "--rate"),
        (("--url", "http://localhost:1", "--max-tokens", "1"), "--max-tokens"),
        (("--url", "http://localhost:1", "--prompts", "/nowhere"), "/nowhere"),
        (("--url", "http://localhost:1", "--ca", "/nowhere"), "no TLS"),
    ],
)
def test_unusable_options_are_one_line(words: tuple[str, ...], named: str) -> None:
    done = subprocess.run([COMMAND, "bench", *words], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2 and named in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


HEAVY = {
    "pydantic", "rich", "ansible", "yaml", "kubernetes", "requests", "typer", "ssl", "asyncio", "hashlib",
    "dataclasses", "inspect", "importlib.metadata", "encodings.idna",
}  # fmt: skip


def test_a_run_loads_nothing_heavy(paced: Paced) -> None:
    code = (
        "import sys\nfrom sparkloom.cli.program import main\n"
        f"sys.argv[1:] = ['bench', '--url', '{paced.url}', '-n', '1', '--max-tokens', '8', '--warmup', '0', '-q']\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0\n"
        f"heavy = {HEAVY} & set(sys.modules)\n"
        # getrusage would give the size of the process that started this one, where that was larger
        "rss = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "sys.stderr.write(f'{sorted(heavy)} {int(rss.split()[1]) // 1024}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    heavy, rss = done.stderr.splitlines()[-1].rsplit(" ", 1)
    assert heavy == "[]" and int(rss) <= 60
