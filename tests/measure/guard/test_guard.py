"""The guard by its labelled cases, by place, by cost, and by input that is no stream."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.measure.guard import Guard, judge_batch, judge_batch_file, judge_file, judge_stream
from testbed.standins.pacing import samples
from tests.later import SKIPPED
from tests.measure.guard import judging, make_cases

CASES = judging.cases()


def feed(text: str, *, seed: int = 0, widest: int = 7, guard: Guard | None = None) -> Guard:
    guard = guard or Guard()
    for piece in judging.pieces(text, random.Random(seed), widest):
        guard.feed(piece)
    return guard


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_labelled_case(case: dict) -> None:
    verdict = judging.judged(case)
    assert (verdict["verdict"] == "garbage") == (case["label"] == "garbage"), (case["note"], verdict)


def test_the_set_is_what_the_script_writes_and_large_enough() -> None:
    assert json.loads(json.dumps(make_cases.every())) == CASES
    labels = [case["label"] for case in CASES]
    assert len(CASES) >= 150 and min(labels.count("garbage"), labels.count("sane")) >= 75
    assert len({case["id"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("seed", range(1000, 1120))
def test_generated_sane_stream(seed: int) -> None:
    assert judging.sane_stream(seed)["verdict"] == "ok"


@pytest.mark.slow
@pytest.mark.more
@SKIPPED
def test_a_thousand_generated_sane_streams() -> None:
    assert [seed for seed in range(1000) if judging.sane_stream(seed)["verdict"] != "ok"] == []


@pytest.mark.parametrize("period", random.Random(3).sample(range(2, 1400), 24))
def test_a_loop_is_seen_soon_and_not_before_it_began(period: int) -> None:
    good = samples.make("prose", 77, 3000)
    unit = samples.make("prose", period, 4000)[500 : 500 + period]
    guard = feed(good + unit * max(40, 9000 // period), widest=1 + period % 11)
    assert guard.verdict is not None and guard.verdict.kind == "loop"
    assert len(good) < guard.verdict.at_char < len(good) + max(700, 16 * period)
    assert guard.verdict.at_chunk < guard.verdict.at_char


@pytest.mark.parametrize("widest", [1, 2, 3, 64, 5000])
def test_the_verdict_does_not_depend_on_how_the_text_is_cut(widest: int) -> None:
    unit = samples.make("prose", 4, 3000)[100:271]  # 28 words: a 4-gram's share stays below 14 %
    assert len(unit.split()) >= 25
    assert feed(unit * 20, widest=widest).finish().kind == "loop"
    assert feed(samples.make("code", 4, 9000), widest=widest).finish().ok


def test_channels_are_judged_apart() -> None:
    guard = Guard()
    for _ in range(200):
        guard.feed("ha ", "content")
        guard.feed("ho ", "reasoning")
    assert guard.verdict is not None and guard.verdict.channel in ("content", "reasoning")
    draft = samples.make("prose", 8, 2500)
    guard = Guard()
    guard.feed(draft, "reasoning")
    guard.feed(draft, "content")
    assert guard.finish().ok


@pytest.mark.parametrize("garbage", ["!", "so it is and ", "the same sentence again. " * 8, None])
@pytest.mark.parametrize("size", [1, 5, 32])
def test_several_chunks_at_a_time_give_the_same_verdict_at_the_same_place(garbage: str | None, size: int) -> None:
    text = samples.make("prose", 9, 2600) + (garbage * (4000 // len(garbage)) if garbage else "")
    chunks = list(judging.pieces(text, random.Random(size), 9))
    one, many = Guard(), Guard()
    for chunk in chunks:
        one.feed(chunk, "reasoning")
    for at in range(0, len(chunks), size):
        many.feed_run(chunks[at : at + size], "reasoning")
    assert one.finish() == many.finish() and one.verdict is not None
    assert one.verdict.kind == ("loop" if garbage else None)


def test_after_the_verdict_nothing_changes_it() -> None:
    guard = feed("!" * 400)
    first = guard.verdict
    assert first is not None and guard.feed(samples.make("prose", 1, 3000)) is first and guard.finish() is first


def test_tokens_without_text() -> None:
    assert Guard().finish({"completion_tokens": 3072}).kind == "no-text"
    assert Guard().finish({"completion_tokens": 1}).ok
    assert Guard().finish().ok


def test_memory_is_bounded() -> None:
    guard = feed("".join(samples.make("prose", seed, 20_000) for seed in range(12)), widest=30)
    text = guard._texts["content"]
    assert text.characters > 200_000
    assert (
        len(text._loops._tail) <= 30_000
        and len(text._stagnation._history) <= 16_384
        and len(text._incoherence._words) <= 768
    )


def test_shapes_of_lines() -> None:
    openai = ["", 'data: {"object": "chat.completion.chunk", "choices": [{"delta": {"role": "assistant"}}]}', ": ping"]
    openai += ['data: {"choices": [{"delta": {"content": "!"}}]}'] * 400
    openai += ['{"choices": [], "usage": {"completion_tokens": 400}}', "data: [DONE]"]
    assert judge_stream(openai).as_dict()["kind"] == "loop"
    tool = '{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{}, "}}]}}]}'
    assert judge_stream([tool] * 300).channel == "tool"
    verdict = judge_stream(['{"content": "Paris."}', '{"usage": {"completion_tokens": 3}}']).as_dict()
    looked = {"looked_at": "6 characters in 1 pieces"}
    assert verdict == {"verdict": "ok", "kind": None, "at_chunk": None, "at_char": None, **looked}


@pytest.mark.parametrize(
    ("ending", "kind", "why"),
    [
        (["data: [DONE]"], None, None),
        ([], "no-end", "without [DONE]"),
        (['data: {"error": {"message": "rank 2 is gone"}}', "data: [DONE]"], "engine-error", "rank 2 is gone"),
        (["event: error", 'data: {"message": "rank 2 is gone"}', "data: [DONE]"], "engine-error", "rank 2 is gone"),
        (['error: {"code": 500, "message": "ggml broke"}', "data: [DONE]"], "engine-error", "ggml broke"),
        (['data: {"choices": [{"finish_reason": "abort"}]}', "data: [DONE]"], "engine-error", "abort"),
    ],
)
def test_a_stream_that_a_dead_rank_cut_is_no_good_one(ending: list[str], kind: str | None, why: str | None) -> None:
    """On the old code each of them was `ok`, and the two with other names were refused as no stream."""
    words = ['data: {"choices": [{"delta": {"content": "All four ranks were there."}}]}', ""]
    verdict = judge_stream([*words, *ending])
    assert (verdict.verdict, verdict.kind) == ("cut" if kind else "ok", kind)
    assert why is None or why in str(verdict.why)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "not valid JSON"),
        ("[1]", "found list"),
        ('{"content": 3}', "content is int"),
        ('{"usage": 7}', "usage is int"),
        ('{"choices": {}}', "choices is dict"),
        ('{"contnet": "x"}', "unknown keys contnet"),
    ],
)
def test_broken_lines_are_refused_with_their_number(line: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        judge_stream(['{"content": "fine"}', "", line], name="rec.jsonl")
    assert caught.value.problems[0].line == 3 and caught.value.problems[0].file == "rec.jsonl"


def test_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        judge_file(str(tmp_path / "none.jsonl"))
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    with pytest.raises(InputError, match="is empty"):
        judge_file(str(empty))
    empty.write_bytes(b'{"content": "\xff"}')
    with pytest.raises(InputError, match="UTF-8"):
        judge_file(str(empty))
    batch = tmp_path / "batch.json"
    for text in ("[" * 100_000, '{"content": 1' + "0" * 5000 + "}"):
        batch.write_text(text)
        for judge in (judge_batch_file, lambda path: judge_file(str(path))):
            with pytest.raises(InputError, match="nested too deep"):
                judge(batch)
    for text, words in (("{", "not valid JSON"), ("{}", "no list"), ('{"requests": []}', "empty"), ("[1]", "no list")):
        batch.write_text(text)
        with pytest.raises(InputError, match=words):
            judge_batch_file(batch)


def test_a_batch_faster_than_memory_allows_is_impossible(tmp_path: Path) -> None:
    requests = [{"tokens_per_sec": 19.5 + n / 10, "output_tokens": 900 + n, "finish_reason": "stop"} for n in range(8)]
    assert judge_batch(requests)["verdict"] == "ok"
    path = tmp_path / "level.json"
    path.write_text(json.dumps({"requests": requests, "bound_tok_s": 147}))
    assert judge_batch_file(path)["kind"] == "impossible-speed"


def test_cost_per_chunk_is_flat() -> None:
    """What grows with the answer is dear every time; a neighbour on this machine is so for some of the tries."""
    assert any(judging.cost(100_000) < 1.6 * judging.cost(1_000) for _ in range(6))


ANSWER = "The harbour was built in 1893 and has been dredged twice since then, as the records say."


def batch(tmp_path: Path, **level: object) -> dict:
    path = tmp_path / "level.json"
    path.write_text(json.dumps(level))
    return judge_batch_file(path)


@pytest.mark.parametrize("told", [{"prompts_distinct": True}, {"prompts_distinct": 8}, {}], ids=str)
def test_one_text_for_distinct_prompts_is_garbage(tmp_path: Path, told: dict) -> None:
    """At different speeds and ended by themselves: nothing else gives them away."""
    names = {} if told else {"prompt": "p{}"}
    requests = [
        {"tokens_per_sec": 19.5 + n / 10, "output_tokens": 90 + n, "finish_reason": "stop", "text": ANSWER}
        | {key: value.format(n) for key, value in names.items()}
        for n in range(8)
    ]
    assert batch(tmp_path, requests=requests, **told)["kind"] == "same-text"
    assert batch(tmp_path, requests=requests, prompts_distinct=False)["verdict"] == "ok"
    requests[0]["text"] = requests[1]["text"] = "Something else, and long enough to be told apart from the others."
    assert batch(tmp_path, requests=requests, **told)["kind"] == "same-text"


def test_one_text_for_one_prompt_or_a_short_answer_is_none(tmp_path: Path) -> None:
    same = [{"tokens_per_sec": 20.0, "output_tokens": 64, "finish_reason": "length", "text": ANSWER} for _ in range(4)]
    assert batch(tmp_path, requests=same, prompts_distinct=1)["verdict"] == "ok"  # greedy decoding, cut off alike
    assert batch(tmp_path, requests=same, prompts_distinct=True)["verdict"] == "garbage"
    yes = {"output_tokens": 2, "finish_reason": "stop", "text": "Yes."}
    short = [yes | {"tokens_per_sec": 20.0 + n} for n in range(4)]
    assert batch(tmp_path, requests=short, prompts_distinct=True)["verdict"] == "ok"


def test_answers_of_different_lengths_may_end_alike(tmp_path: Path) -> None:
    """SGLang itself recited one page from different places on, and three whole answers were called one text."""
    tail = " ".join(f"sentence {n} of the closing that all of them have" for n in range(20))[-400:]
    lengths = (98, 144, 114)
    requests = [
        {"prompt": f"p{n}", "tokens_per_sec": 20.0 + n, "output_tokens": tokens, "finish_reason": "stop"}
        | {"text_tail": tail}
        for n, tokens in enumerate(lengths)
    ]
    assert batch(tmp_path, requests=requests)["verdict"] == "ok"
    as_long = [request | {"output_tokens": 98 + n} for n, request in enumerate(requests)]
    assert batch(tmp_path, requests=as_long)["kind"] == "same-text"


def test_a_level_and_a_whole_result_of_bench_are_read(tmp_path: Path) -> None:
    rows = [{"tokens_per_sec": 20.0 + n, "output_tokens": 900 + n, "finish_reason": "stop"} for n in range(16)]
    level = {"concurrency": 8, "requests": 16, "per_request": rows, "bound_tok_s": 250.0, "ceiling_tok_s": 200.0}
    judged = batch(tmp_path, **level)
    assert (
        judged["verdict"] == "ok" and "above the 200.0" in judged["doubt"]
    )  # two rounds of eight, not sixteen at once
    whole = batch(tmp_path, levels=[level, level | {"bound_tok_s": 100.0}])
    assert whole["kind"] == "impossible-speed"


@pytest.mark.parametrize(
    ("key", "value"),
    [("bound_tok_s", "fast"), ("bound_tok_s", -3), ("prompts_distinct", "many"), ("concurrency", 0), ("levels", {})],
)
def test_a_wrong_word_in_a_level_is_refused_by_name(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(InputError, match=key):
        batch(tmp_path, requests=[{"tokens_per_sec": 1.0}], **{key: value})
