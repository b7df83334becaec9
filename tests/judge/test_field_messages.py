"""Lines from public threads: each is named with its cause first, by patterns that were not written from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.judge import diagnose, log_causes, rules
from sparkloom.onnode.rank import causes
from sparkloom.render.manifests import supervision
from tests.places import DATA


def messages(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "field_messages.jsonl").read_text(encoding="utf-8").splitlines()]


JUDGED, WRITTEN_FROM = messages(DATA), messages(log_causes.DATA)
ROUNDS = yaml.safe_load((DATA / "log_rounds.yml").read_text(encoding="utf-8"))
THREADS = yaml.safe_load((DATA / "log_threads.yml").read_text(encoding="utf-8"))
SOURCE_LINES = yaml.safe_load((DATA / "cause_lines.yml").read_text(encoding="utf-8"))
SEEN = [(message["cause"], message["line"]) for message in WRITTEN_FROM]


def named(line: str) -> list[str]:
    text = f"INFO 01-01 00:00:00 [api_server.py:1] serving\n{line}\nINFO 01-01 00:00:09 [launcher.py:9] bye\n"
    return [match["rule"] for match in diagnose.diagnose(text)["matches"]]


@pytest.mark.parametrize(("cause", "line"), SEEN, ids=[f"{cause}-{at}" for at, (cause, _) in enumerate(SEEN)])
def test_what_a_cause_was_written_from(cause: str, line: str) -> None:
    assert named(line)[:1] == [cause]


@pytest.mark.parametrize("message", JUDGED, ids=lambda message: message["source"])
def test_a_line_that_no_pattern_was_written_from(message: dict[str, Any]) -> None:
    assert named(message["line"])[:1] == [message["cause"]][: bool(message["cause"])]


@pytest.mark.parametrize("message", ROUNDS, ids=lambda message: message["source"])
def test_a_thread_of_a_round(message: dict[str, Any]) -> None:
    assert message["unseen"] in ("right", "wrong", "unknown")
    assert named(message["log"])[:1] == [message["cause"]][: bool(message["cause"])]


@pytest.mark.parametrize("cause", SOURCE_LINES)
def test_a_line_as_the_program_has_it(cause: str) -> None:
    assert named(SOURCE_LINES[cause])[:1] == [cause]


@pytest.mark.parametrize("line", [*SOURCE_LINES.values(), *(message["log"] for message in [*ROUNDS, *THREADS])])
def test_a_line_has_one_name(line: str) -> None:
    """`weights-exceed-memory` once stood beside `cuda-out-of-memory`."""
    told = [match for match in diagnose.diagnose(line)["matches"] if match["ends"]]
    assert len({match["line_number"] for match in told}) == len(told)


def test_enough_lines_each_with_a_source_and_no_line_twice() -> None:
    seen, judged = {line for _, line in SEEN}, {message["line"] for message in JUDGED}
    assert len(seen) + len(judged) >= 100 and len(judged) >= 50
    assert not seen & judged - {
        "ValueError: No available memory for the cache blocks. Try increasing "
        "`gpu_memory_utilization` when initializing the engine."
    }
    assert all(message["source"] for message in JUDGED + WRITTEN_FROM)


def test_causes_and_rules_share_no_name_and_every_cause_says_what_to_do() -> None:
    causes = log_causes.every()
    assert not {cause.id for cause in causes} & {rule.id for rule in rules.every()}
    assert all(cause.why and cause.fix for cause in causes)
    known = {cause.id for cause in causes} | {rule.id for rule in rules.every()}
    met = {message["cause"] for message in [*WRITTEN_FROM, *ROUNDS]}
    assert met | set(SOURCE_LINES) == met | {cause.id for cause in causes}, "each cause has a line that it names"
    assert met <= known | {""} and not set(SOURCE_LINES) - known
    assert {message["cause"] for message in JUDGED} - {""} <= known


def test_a_cause_stands_before_its_consequences() -> None:
    text = "\n".join(
        [
            "(EngineCore pid=9) ValueError: No available memory for the cache blocks.",
            *["(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above."] * 9,
        ]
    )
    assert named(text) == ["vllm-no-cache-memory", "vllm-engine-failed"]


@pytest.mark.parametrize("engine", ["sglang", "vllm", "trtllm"])
def test_the_supervisor_in_the_pod_names_the_same_causes(engine: str) -> None:
    """One copy of the patterns: what `diagnose` would say of a log, rank 0's last words say by themselves."""
    patterns = json.loads(supervision.patterns(engine))
    other = {rule.id for rule in rules.every() if rule.scope.engine not in ("*", engine)}
    lines = [*SEEN, *((message["cause"], message["line"]) for message in JUDGED)]
    compared = 0
    for line in [line for cause, line in lines if cause]:
        known = [match for match in diagnose.diagnose(line)["matches"] if match["rule"] not in other]
        if known and known[0]["severity"] != "info":
            compared += 1
            assert causes.named([line], patterns).startswith(f"{known[0]['rule']}: "), line
    assert compared > 60


def test_a_line_that_only_says_that_something_failed_is_no_cause_of_the_supervisor_s() -> None:
    """Two failures in a row with one cause end a start: a sentence that every failure shares would end any."""
    patterns = json.loads(supervision.patterns("vllm"))
    lines = [
        "ValueError: the frobnicator is bent",
        "RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    assert "vllm-engine-failed" not in causes.named(lines, patterns)


def test_of_two_causes_the_supervisor_names_the_one_that_diagnose_shows_first() -> None:
    lines = ["OSError: [Errno 98] Address already in use", "torch.OutOfMemoryError: CUDA out of memory."] * 2
    lines.append("torch.OutOfMemoryError: CUDA out of memory.")
    first = diagnose.diagnose("\n".join(lines))["matches"][0]["rule"]
    assert causes.named(lines, json.loads(supervision.patterns("vllm"))).startswith(f"{first}: ")
