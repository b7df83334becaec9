"""Other load generators, each in a virtual environment of its own, never dependencies.

They live under $SPARKLOOM_PEERS (~/.cache/sparkloom/peers). Their own versions are pinned here; what came with them is
in freeze.txt beside each.

`command` says how each is told to send N streams of a fixed length, `figures` where its own report has the figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.standins.pacing.conduct import WORDS

HOME = Path(os.environ.get("SPARKLOOM_PEERS") or Path.home() / ".cache" / "sparkloom" / "peers")
HUB = HOME / "hub"  # in the shape of Hugging Face's cache: aiperf takes a tokenizer from nowhere else
WORDS_MODEL = "sparkloom/words"
TOKENIZER = HUB / "hub" / "models--sparkloom--words" / "snapshots" / "0"
REPO = Path(__file__).resolve().parents[2]
PROMPT = 64

# A tokenizer with one token per word of the pacing server: the peers want one, and no download is needed for it.
MAKE_TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
vocabulary = {word: number for number, word in enumerate(["<unk>", "<s>", "</s>", *sys.argv[2:]])}
words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
made = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
made.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
made.save_pretrained(sys.argv[1])
open(sys.argv[1] + "/config.json", "w").write("{}")
"""


@dataclass(frozen=True)
class Peer:
    name: str
    packages: tuple[str, ...]  # the first one is the peer itself
    command: Callable[[int, int, int, Path], list[str]]  # port, streams, tokens, folder for its report
    figures: Callable[[Path, str], dict[str, float]]  # that folder and what it printed
    lives_with: str = ""  # another peer's environment
    alone: bool = False  # without what the package asks for

    @property
    def home(self) -> Path:
        return HOME / (self.lives_with or self.name)

    @property
    def python(self) -> str:
        return str(self.home / "bin" / "python")

    @property
    def installed(self) -> bool:
        return (self.home / "freeze.txt").exists()


def ours(port: int, streams: int, tokens: int, folder: Path) -> list[str]:
    installed = Path(sys.executable).with_name("sparkloom")
    program = [str(installed)] if installed.exists() else [sys.executable, "-m", "sparkloom.cli"]
    url = f"http://127.0.0.1:{port}"
    limits = ["-n", str(streams), "--max-tokens", str(tokens), "--warmup", "0"]
    return [*program, "bench", "--url", url, *limits, "--json", "-q"]


def ours_figures(folder: Path, output: str) -> dict[str, float]:
    level = json.loads(output)["levels"][0]
    return {"ttft_ms": level["ttft_ms"]["mean"], "itl_ms": level["itl_ms"]["mean"], "tok_s": level["decode_tok_s"]}


def bare(port: int, streams: int, tokens: int, folder: Path) -> list[str]:
    python = BARE.python if BARE.installed else sys.executable
    return [python, str(REPO / "scripts/bench/bare_client.py"), str(port), str(streams), str(tokens)]


def sglang_native(port: int, streams: int, tokens: int, folder: Path) -> list[str]:
    return sglang(port, streams, tokens, folder, "native")


def sglang(port: int, streams: int, tokens: int, folder: Path, *native: str) -> list[str]:
    return [
        SGLANG.python, str(REPO / "scripts/bench/sglang_client.py"), *native, "--backend", "sglang-oai-chat",
        "--model", "pacing",
        "--base-url", f"http://127.0.0.1:{port}", "--tokenizer", str(TOKENIZER), "--dataset-name", "random-ids",
        "--random-input-len", str(PROMPT), "--random-output-len", str(tokens), "--random-range-ratio", "1",
        "--num-prompts", str(streams), "--max-concurrency", str(streams), "--warmup-requests", "0",
        "--output-file", str(folder / "report.jsonl"), "--output-details", "--disable-tqdm",
    ]  # fmt: skip


def sglang_figures(folder: Path, output: str) -> dict[str, float]:
    report = json.loads((folder / "report.jsonl").read_text().splitlines()[-1])
    spans = [(sum(gaps), length - 1) for gaps, length in zip(report["itls"], report["output_lens"], strict=True)]
    return {
        "ttft_ms": 1000 * mean(report["ttfts"]),
        "itl_ms": 1000 * sum(span for span, _ in spans) / sum(count for _, count in spans),
        "tok_s": mean([count / span for span, count in spans]),
    }


def aiperf(port: int, streams: int, tokens: int, folder: Path) -> list[str]:
    return [
        str(HOME / "aiperf/bin/aiperf"), "profile", "--model", "pacing", "--url", f"http://127.0.0.1:{port}",
        "--endpoint-type", "chat", "--streaming", "--tokenizer", WORDS_MODEL, "--concurrency", str(streams),
        "--request-count", str(streams), "--isl", str(PROMPT), "--osl", str(tokens), "--ui", "none",
        "--artifact-dir", str(folder),
    ]  # fmt: skip


def aiperf_figures(folder: Path, output: str) -> dict[str, float]:
    report = json.loads(next(folder.rglob("profile_export_aiperf.json")).read_text())
    names = {
        "ttft_ms": "time_to_first_token",
        "itl_ms": "inter_token_latency",
        "tok_s": "output_token_throughput_per_user",
    }
    return {ours: float(report[theirs]["avg"]) for ours, theirs in names.items()}


def guidellm(port: int, streams: int, tokens: int, folder: Path) -> list[str]:
    return [
        str(HOME / "guidellm/bin/guidellm"), "run", "--disable-console",
        "--backend", f"kind=openai_http,target=http://127.0.0.1:{port},model=pacing",
        "--profile", f"kind=concurrent,streams={streams}", "--constraint", f"kind=max_requests,count={streams}",
        "--tokenizer", f"kind=huggingface_auto,model={TOKENIZER}",
        "--data", f"kind=synthetic_text,prompt_tokens={PROMPT},output_tokens={tokens}",
        "--output", f"kind=json,path={folder / 'report.json'}",
    ]  # fmt: skip


def guidellm_figures(folder: Path, output: str) -> dict[str, float]:
    metrics = json.loads((folder / "report.json").read_text())["benchmarks"][0]["metrics"]
    first, between = (
        float(metrics[name]["successful"]["mean"]) for name in ("time_to_first_token_ms", "inter_token_latency_ms")
    )
    return {"ttft_ms": first, "itl_ms": between, "tok_s": 1000 / between}


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


# What the client of sglang imports; the package asks for the whole engine.
SGLANG_CLIENT = (
    "aiohttp", "datasets", "msgspec", "numpy", "orjson", "pillow", "psutil", "pybase64", "pyzmq", "requests", "tqdm",
    "transformers==5.19.0",
)  # fmt: skip
OURS = Peer("sparkloom bench", (), ours, ours_figures)
BARE = Peer("bare", ("uvloop==0.22.1",), bare, lambda _, output: dict(json.loads(output)))
SGLANG = Peer("sglang", ("sglang==0.5.23", *SGLANG_CLIENT), sglang, sglang_figures, alone=True)
PEERS = (
    OURS,
    BARE,
    SGLANG,
    Peer("sglang native", (), sglang_native, sglang_figures, lives_with="sglang"),
    Peer("aiperf", ("aiperf==0.13.0",), aiperf, aiperf_figures),
    Peer("guidellm", ("guidellm==0.8.1",), guidellm, guidellm_figures),
)


def install(names: Collection[str], say: Callable[[str], Any]) -> None:
    """Every named peer that is not there; several gigabytes in all, once."""
    for peer in PEERS:
        if not peer.packages or peer.installed or peer.name not in names:
            continue
        say(f"installing {peer.name} under {peer.home}\n")
        subprocess.run([sys.executable, "-m", "venv", peer.home], check=True)
        first, rest = (peer.packages[:1], peer.packages[1:]) if peer.alone else ((), peer.packages)
        if first:
            _pip(peer, "--no-deps", *first)
        _pip(peer, *rest)
        kept = subprocess.run([peer.python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True)
        (peer.home / "freeze.txt").write_text(kept.stdout)
    owner = next((peer for peer in PEERS if peer.installed and (peer.alone or "aiperf" in peer.name)), None)
    if owner and not TOKENIZER.exists():
        subprocess.run([owner.python, "-c", MAKE_TOKENIZER, str(TOKENIZER), *dict.fromkeys(WORDS)], check=True)
        refs = TOKENIZER.parents[1] / "refs"
        refs.mkdir()
        (refs / "main").write_text("0")


def _pip(peer: Peer, *words: str) -> None:
    subprocess.run([peer.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *words], check=True)
