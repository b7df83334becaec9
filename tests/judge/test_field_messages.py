"""Lines from public threads: each is named with its cause first, by patterns that were not written from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkloom.judge import diagnose, log_causes, rules
from tests.places import DATA

JUDGED: list[dict[str, Any]] = [
    json.loads(line) for line in (DATA / "field_messages.jsonl").read_text(encoding="utf-8").splitlines()
]
SEEN = [(message["cause"], message["line"]) for message in log_causes.seen()]


def named(line: str) -> list[str]:
    text = f"INFO 01-01 00:00:00 [api_server.py:1] serving\n{line}\nINFO 01-01 00:00:09 [launcher.py:9] bye\n"
    return [match["rule"] for match in diagnose.diagnose(text)["matches"]]


@pytest.mark.parametrize(("cause", "line"), SEEN, ids=[f"{cause}-{at}" for at, (cause, _) in enumerate(SEEN)])
def test_what_a_cause_was_written_from(cause: str, line: str) -> None:
    assert named(line)[:1] == [cause]


@pytest.mark.parametrize("message", JUDGED, ids=lambda message: message["source"])
def test_a_line_that_no_pattern_was_written_from(message: dict[str, Any]) -> None:
    assert named(message["line"])[:1] == [message["cause"]][: bool(message["cause"])]


def test_enough_lines_each_with_a_source_and_no_line_twice() -> None:
    seen, judged = {line for _, line in SEEN}, {message["line"] for message in JUDGED}
    assert len(seen) + len(judged) >= 100 and len(judged) >= 50
    assert not seen & judged - {
        "ValueError: No available memory for the cache blocks. Try increasing "
        "`gpu_memory_utilization` when initializing the engine."
    }
    assert all(message["source"] for message in JUDGED)
    assert all(message["source"] for message in log_causes.seen())


def test_causes_and_rules_share_no_name_and_every_cause_says_what_to_do() -> None:
    causes = log_causes.every()
    assert not {cause.id for cause in causes} & {rule.id for rule in rules.every()}
    assert all(cause.why and cause.fix for cause in causes)
    assert {message["cause"] for message in log_causes.seen()} == {cause.id for cause in causes}
    known = {cause.id for cause in causes} | {rule.id for rule in rules.every()}
    assert {message["cause"] for message in JUDGED} - {""} <= known


def test_a_cause_stands_before_its_consequences() -> None:
    text = "\n".join(
        [
            "(EngineCore pid=9) ValueError: No available memory for the cache blocks.",
            *["(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above."] * 9,
        ]
    )
    assert named(text) == ["vllm-no-cache-memory", "vllm-engine-failed"]
