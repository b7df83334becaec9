"""An evening of looking: what there is, what fits, two launches compared, a log that somebody sent."""

from __future__ import annotations

import json
from pathlib import Path

from tests.journeys.terminal import Seen, Terminal

LOG = """2026-11-25T19:02:11.113Z INFO 11-25 19:02:11 api_server.py:1289] vLLM API server version 0.19.0
\x1b[1;36m(EngineCore_0 pid=123)\x1b[0;0m INFO 11-25 19:02:40 gpu_model_runner.py] Starting to load model
\x1b[1;36m(EngineCore_0 pid=123)\x1b[0;0m torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
RuntimeError: Engine core initialization failed. See root cause above.
"""


def test_what_there_is_and_what_fits(sized: Terminal) -> None:
    seen = sized.type("sparkloom profiles").has("openai--gpt-oss-120b", "nvidia--glm-4.7-nvfp4", "4 Sparks of 'gb10'")
    told = json.loads(sized.type("sparkloom profiles --json", copied=True).text)
    models = {one["model"] for one in told}
    assert named(seen) == len(models)  # every model is one line
    piped = sized.type("sparkloom profiles | cat", copied=True)
    assert named(piped) == len(told)
    assert named(sized.type("sparkloom profiles --fits")) == len(told)
    sized.type("sparkloom profiles --fits --nodes 1").has("openai--gpt-oss-120b")
    sized.type("sparkloom profiles --fits --nodes 1 --concurrency 4000 --context 1000000", 1).has("no shipped profile")
    sized.type("sparkloom lint glm", 2).has("nvidia--glm-4.7-nvfp4", "write more of one")
    sized.type("sparkloom plan glm-4.7-nvfp4").has("should start", "memory fits", "what a Spark has")
    sized.type("sparkloom plan gtp-oss", 2).has("nearest", "gpt-oss")
    sized.type("sparkloom image list").has("pinned")
    sized.type("sparkloom fabric", None)
    sized.type("sparkloom fleet plan", None)


def named(seen: Seen) -> int:
    """Lines that begin with a profile's name."""
    return sum("--" in line.split(" ")[0].lstrip("-") for line in seen.lines)


def test_two_launches_are_compared(terminal: Terminal) -> None:
    one, two = "openai--gpt-oss-120b", "openai--gpt-oss-120b--2node"
    terminal.type(f"sparkloom evidence compare {one} {two}", None).has("57.5", "69.0", "nodes")
    terminal.type(f"sparkloom evidence find {one}")
    terminal.type("sparkloom evidence best GLM-4.7")
    terminal.type("sparkloom evidence best nobody", 2).has("'nobody'", "GLM-4.7")
    fits = [
        json.loads(terminal.type(f"sparkloom plan {one} --json --set {value}", code, copied=True).text)["fits"]
        for value, code in (("launch.gpu_memory_utilization=0.7", 0), ("launch.gpu_memory_utilization=1.6", 1))
    ]
    assert fits == [True, False]
    terminal.type(f"sparkloom plan {one} --set launch.gpu_memory_utilization=1.6", 1).has("does not fit", "-> 0.9")
    terminal.type(f"sparkloom plan {one} --set nonsense", 2).has("nonsense")
    terminal.type(f"sparkloom plan {one} --set launch.nonsense=1", 2).has("nonsense")
    terminal.type(f"sparkloom plan {one} --sessions 4 --context 30000").has("4 sessions of 30,000 tokens: fit")
    terminal.type(f"sparkloom argv {one} --rank 0 > argv; bash -n argv")
    terminal.type(f"sparkloom argv {one} --rank 7", 2).has("7")


def test_a_failed_start_from_its_log(terminal: Terminal) -> None:
    (terminal.home / "engine.log").write_text(LOG)
    terminal.type("sparkloom diagnose engine.log", 1).has("out of memory", "fix:")
    terminal.type("gzip -k engine.log; zcat engine.log.gz | sparkloom diagnose -", 1).has("fix:")
    terminal.type("sparkloom diagnose engine.log.gz", 1).has("fix:")
    told = json.loads(terminal.type("sparkloom diagnose engine.log --json", 1, copied=True).text)
    assert told["matches"][0]["fix"]
    terminal.type("echo all is well > fine.log; sparkloom diagnose fine.log").has("no known cause")
    terminal.type("sparkloom diagnose nowhere.log", 2).has("nowhere.log")
    terminal.type("sparkloom nccl-log engine.log", 2).has("NCCL")
    terminal.type("printf 'to be or not to be\\n' | sparkloom guard -", None)


def test_findings_are_a_sentence_a_fix_and_a_place_and_more_with_v(sized: Terminal) -> None:
    seen = sized.type("sparkloom lint glm-4.7-nvfp4--mtp gpt-oss-120b--2node")
    seen.has("fix:", "model_profiles/", "rules,", "do not apply", "-v:")
    assert "known from:" not in seen.text and "fork-unchecked" not in seen.text
    sized.type("sparkloom lint -v openai--gpt-oss-120b").has(
        "rule: fork-unchecked", "known from: eugr/spark-vllm-docker"
    )
    sized.type("sparkloom plan openai--gpt-oss-120b").has("fix: engine.digest", "-v:")
    sized.type("sparkloom plan -v openai--gpt-oss-120b").has("rule: tag-without-version", "known from:")
    piped = sized.type("sparkloom lint openai--gpt-oss-120b | cat", copied=True)
    piped.has("[fork-unchecked]", "known from: eugr/spark-vllm-docker")


def test_fine_says_what_was_looked_at(terminal: Terminal) -> None:
    terminal.type("sparkloom lint radixark--qwen3.8-27b-nvfp4").has("no findings", "rules,", "do not apply")
    stream = """{"content": "The sea is wide."}"""
    terminal.type(f"sparkloom guard - <<< '{stream}'").has("ok: 16 characters", "0 findings")


def test_what_it_prints_is_text_for_every_reader(home: Path) -> None:
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        terminal = Terminal(home, **env)
        terminal.begin("sparkloom plan glm-4.7-nvfp4")
        terminal.program.expect(r"@@(\d+) \$ ")
        colours = [word for word in str(terminal.program.before).split("\x1b[")[1:] if word[0] in "345"]
        assert not colours, (env, colours[:3])
        terminal.close()
    terminal = Terminal(home, LANG="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    terminal.type("sparkloom plan glm-4.7-nvfp4").has("WWWW")
    terminal.type("sparkloom plan glm-4.7-nvfp4 | cat -v > piped; grep -c '\\^\\[' piped", 1).has("0")
    terminal.type("sparkloom lint > one; sparkloom lint 2>&1 | cat > two; cmp one two")
    terminal.type("sparkloom profiles | head -2; echo ${PIPESTATUS[0]}", copied=True).has(" 0")
    terminal.type("sparkloom profiles >&-; echo $?").has("0")
    terminal.type("sparkloom plan nobody 2>&-", 2)
    terminal.type("sparkloom profiles > /dev/full", 2).has("No space left")
    terminal.type("stty cols 40; sparkloom plan glm-4.7-nvfp4 | head -1; stty cols 80")
    terminal.close()
