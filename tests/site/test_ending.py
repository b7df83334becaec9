"""A task's words and a run's last line, as tables; tests/plugins/test_output.py shows both in real runs."""

from __future__ import annotations

from typing import Any

import pytest

from sparkloom.site.ending import Ending, outcome, words


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"msg": "a\n  -> b\n", "problems": ["a"], "changed": False, "failed": True}, "a\n  -> b"),
        ({"__preflight_verdict.msg": "all hold", "changed": False, "_ansible_verbose_always": True}, "all hold"),
        ({"msg": "non-zero return code", "rc": 3, "stderr": "out of paper\n", "stdout": ""},
         "non-zero return code\nstderr:\nout of paper"),
        ({"msg": "apt failed: no space", "stderr": "no space"}, "apt failed: no space"),
        ({"msg": "crashed", "module_stderr": "Traceback (most recent call last):\n  File x\nValueError: y"},
         "crashed\nmodule_stderr:\nValueError: y"),
        ({"msg": "Assertion failed", "assertion": "a == b", "evaluated_to": False}, "Assertion failed: a == b"),
        ({"msg": "non-zero return code", "cmd": ["sh", "-c", "exit 3"]}, "non-zero return code: sh -c 'exit 3'"),
        ({"msg": ["n  tok/s", "1   20.0"]}, "n  tok/s\n1   20.0"),
        ({"msg": {"a": 1}}, ""),
        ({"censored": "hidden by no_log", "changed": False}, "hidden by no_log"),
        ({"changed": False, "failed": True}, ""),
        ({"msg": "", "rc": 1}, ""),
    ],
)  # fmt: skip
def test_words(result: dict[str, Any], said: str) -> None:
    assert words(result) == said


def test_a_cause_that_the_message_leaves_out_is_told() -> None:
    causes = ["Task failed.", "Module failed.", "Error executing command.", "[Errno 2] No such file: b'/x'"]
    assert words({"msg": "Error executing command."}, causes) == f"Error executing command.\n{causes[-1]}"
    assert words({"msg": "Task failed: it broke"}, ["Task failed.", "it broke"]) == "Task failed: it broke"


def ended(*taken: tuple[str, dict[str, Any]]) -> str:
    ending = Ending()
    for action, result in taken:
        ending.take(action, result)
    return ending.serves()


def run(*asleep: str, **proved: int) -> tuple[str, dict[str, Any]]:
    """As a step of a run answers; how many ranks each group has."""
    told = {
        name: {"ranks": ranks, "transport": "roce: every rank" if ranks > 1 else ""} for name, ranks in proved.items()
    }
    return "groups.plan", {"run": {"proved": told, "asleep": list(asleep), "groups": []}}


def test_what_serves_is_what_this_run_has_proved() -> None:
    opened = ("gateway.prove", {"url": "https://s/v1"})
    assert ended(("groups.listed", {"groups": []})) == "" == ended(run()), "what is planned is no proof"
    assert ended(run(glm=2)) == "glm serves (2 ranks, roce: every rank)"
    assert ended(run(), run(glm=1), opened) == "glm serves at https://s/v1 (1 rank)"
    slept = run("chat", "oss", glm=2, chat=1)
    assert ended(slept) == "glm serves (2 ranks, roce: every rank); asleep, wakes with a request: chat, oss"
    action, held = run(glm=2)
    held["run"]["groups"] = [{"name": "glm", "stopped": ""}, {"name": "chat", "stopped": "anna, 11:20 UTC"}]
    assert ended((action, held)) == "glm serves (2 ranks, roce: every rank); stays stopped: chat (by anna, 11:20 UTC)"
    assert ended(run(glm=2), run(glm=2, chat=1), opened) == (
        "2 groups serve at https://s/v1: glm (2 ranks, roce: every rank), chat (1 rank)"
    )


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (outcome(3.2, {}), "nothing changed (3 s)"),
        (outcome(3.2, {"a": 0}, serves="glm serves"), "nothing changed (3 s); glm serves"),
        (outcome(9, {"b": 2, "a": 1}), "done: 3 changes (a 1, b 2) in 9 s"),
        (outcome(9, {"a": 1}, dry=True), "dry run: 1 change (a 1) would be made (9 s)"),
        (outcome(9, {}, dry=True), "dry run: nothing would change (9 s)"),
        (outcome(9, {"a": 1}, lost={"b", "a"}, serves="glm serves", failed="Look"),
         "failed on a, b at 'Look' after 9 s; mend it, then the same command again"),
    ],
)  # fmt: skip
def test_the_last_line(said: str, line: str) -> None:
    assert said == line
