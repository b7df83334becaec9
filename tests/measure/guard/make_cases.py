# ruff: noqa: RUF001  (letters of many scripts are what this is about)
"""Writes the guard's labelled cases: `python -m tests.measure.guard.make_cases > tests/measure/guard/cases.jsonl`.

A case says how its text is put together, not the text itself, so that a person can read what it is about.
The line on what is legitimate is drawn here: numbered sentences up to 100, laughter up to 100 times, rules of
up to 300 marks, identical table rows up to 24, a text quoted three times; beyond that it is a loop.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from testbed.standins.pacing import samples

Case = dict[str, Any]
FRAGMENTS = [
    "ing", "tion", "the", "qu", "ab", "le", "ment", "pre", "str", "un", "able", "ver", "con", "ness", "ity", "per",
    "al", "ized", "ough", "ther", "est", "ard", "ent", "ous", "ly", "ite", "ship", "form", "ack", "ern", "oll",
    "ust", "ape", "ith", "ock", "und", "ame", "ist", "ore", "ain", "ell", "ight", "ump", "ash", "ide", "een", "ate",
    "ure", "ick", "ail", "oon", "irt", "owl", "ext",
]  # fmt: skip
TOKENS = [
    " the", "ción", "表", "});", " unden", "ство", "ــ", "foo", " приз", "한", "\\n//", "ingham", "ות", " ->", "ภาพ",
    "ization", "數", " Kü", "пер", "しい", "=>{", " el", "ität", "ण", "ция", "()", " sub", "ها", "гра", "Ġ", "aleb",
    " 的", "ра", "म", "ing", "ту", "کن", "ов", " na", "сь",
]  # fmt: skip
PHRASES = [
    "Let me check that again. ", "Wait, that is not right. ", "So the answer must be different. ", "Let me think. ",
    "Hmm, I should look at it once more. ", "Actually, no. ", "But that cannot be. ", "I need to start over. ",
]  # fmt: skip
UNITS = {
    "code": "    result.append(process(item))\n",
    "row": "| 0 | 0 | 0 |\n",
    "json": '{"name": "item", "value": null}, ',
    "tool": '{"query": "weather", "unit": "C"}',
    "chinese": "让我再检查一下这个问题的答案。",
    "japanese": "もう一度確認してみましょう。",
    "korean": "다시 한번 확인해 보겠습니다. ",
    "russian": "Давайте проверим это ещё раз. ",
    "arabic": "دعنا نتحقق من ذلك مرة أخرى. ",
    "emoji": "🙂👍🏽 ",
    "heading": "## Summary\n\n",
    "tags": "</think><think>",
    "special": "<|endoftext|>",
    "latex": "\\frac{1}{2} + ",
    "bytes": "0x00, ",
    "address": "https://example.org/a?b=c ",
    "number": "3.14159 ",
    "dots": ". . ",
    "mixed": "!? ",
    "nested": "ha ha ha, so funny! ",
}


def unit_of(length: int) -> str:
    text = samples.make("prose", length, 12_000).replace("\n", " ")
    at = random.Random(length).randint(0, 2000)
    return text[at : at + length]


def collapses() -> list[Case]:
    made: list[Case] = []
    for number, mark in enumerate(
        ("!", "?", "0", "\n", " ", "A", "的", "…", "\u200b", "the", "!!!!", "-", "9", "ñ", "\t")
    ):
        made.append(garbage(f"collapse-{number}", f"{mark!r} for ever", [{"repeat": mark, "times": 3072}]))
    good = {"sane": "prose", "seed": 5, "size": 260}
    made.append(
        garbage("collapse-after-60-words", "'!' after sixty real words", [good, {"repeat": "!", "times": 2800}])
    )
    made.append(
        garbage("collapse-n8", "one of eight '!' streams, one mark a token", [{"repeat": "!", "times": 3072}], widest=1)
    )
    made.append(garbage("collapse-short", "'!' cut off at 300 tokens", [{"repeat": "!", "times": 300}], widest=1))
    made.append(garbage("collapse-reasoning", "'!' while thinking", [], reasoning=[{"repeat": "!", "times": 3072}]))
    sane = [{"sane": "prose", "seed": 6, "size": 2000}]
    made.append(garbage("collapse-content", "sane thinking, then '!'", [{"repeat": "!", "times": 900}], reasoning=sane))
    for number, marks in enumerate(
        (["!", "?"], ["a", "b"], [". ", ".", ".."], ["no ", "no, "], ["\n", " ", "\n\n"], ["!", "!\n"])
    ):
        part = {"shuffle": marks, "times": 5000, "seed": number}
        made.append(garbage(f"low-entropy-{number}", f"{marks} in random order", [part]))
    return made


def loops() -> list[Case]:
    made = []
    periods = (
        2, 3, 5, 7, 11, 13, 17, 23, 31, 37, 41, 47, 53, 61, 67, 79, 97, 101, 113, 131, 149, 173, 197, 229, 263, 307,
        353, 401, 457, 509, 571, 601, 643, 701, 811, 907, 1103, 1301, 1601,
    )  # fmt: skip
    for period in periods:
        unit = unit_of(period)
        times = max(8, 1800 // period)
        prefix = [{"sane": "prose", "seed": period, "size": 400}] if period % 2 else []
        note = f"{len(unit.split())} words, a period of {period} characters"
        made.append(garbage(f"loop-{period}", note, [*prefix, {"repeat": unit, "times": times}], widest=1 + period % 9))
    for name, unit in UNITS.items():
        times = max(40, 4000 // len(unit))
        made.append(garbage(f"loop-{name}", f"{unit!r} for ever", [{"repeat": unit, "times": times}]))
    for seed, size in enumerate((4000, 8000, 9000, 16_000)):
        good = {"sane": ("prose", "code", "cjk", "data")[seed], "seed": seed, "size": size}
        unit = unit_of(73 + 50 * seed)
        note = f"{size} good characters, then a loop"
        made.append(garbage(f"drift-{seed}", note, [good, {"text": "\n\n"}, {"repeat": unit, "times": 24}]))
    thinking = [{"sane": "prose", "seed": 9, "size": 3000}, {"repeat": PHRASES[0], "times": 90}]
    answer = [{"sane": "prose", "seed": 10, "size": 900}]
    made.append(garbage("loop-thinking-only", "a loop while thinking, a fine answer", answer, reasoning=thinking))
    count = {"count": "On day {} I will go to the market and buy some fresh bread. ", "times": 320}
    made.append(garbage("loop-counter", "only the number changes, 320 times", [count]))
    return made


def shuffles() -> list[Case]:
    made = []
    for size in (3, 5, 8):
        part = {"shuffle": PHRASES[:size], "times": 300, "seed": size}
        made.append(garbage(f"phrases-{size}", f"{size} sentences in random order", [part]))
    for size in (3, 5, 12, 25, 50, 80):
        words = [f"{word} " for word in random.Random(size).sample(sorted({*samples.NOUNS, *samples.ADJECTIVES}), size)]
        note = f"{size} words in random order"
        made.append(garbage(f"words-{size}", note, [{"shuffle": words, "times": 1500, "seed": size}]))
    flood = [f"as an AI language model I must say {noun}, " for noun in samples.NOUNS]
    made.append(
        garbage("flood-1", "one phrase with a random word after it", [{"shuffle": flood, "times": 250, "seed": 1}])
    )
    flood = [f"{word} the result of the analysis shows that the " for word in samples.VERBS]
    made.append(
        garbage("flood-2", "one phrase with a random word before it", [{"shuffle": flood, "times": 250, "seed": 2}])
    )
    return made


def salads() -> list[Case]:
    made = []
    rng = random.Random("salads")
    vocabulary = ["".join(rng.choices(FRAGMENTS, k=rng.randint(1, 3))) + " " for _ in range(6000)]
    made += [salad(f"vocabulary-{seed}", "made-up words", rng.sample(vocabulary, 900), seed) for seed in range(3)]
    made += [salad(f"tokens-{seed}", "tokens of the whole vocabulary", TOKENS, seed) for seed in range(4)]
    letters = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) + " " for _ in range(700)]
    made.append(salad("letters", "random letters", letters, 1))
    chinese = [chr(rng.randint(0x4E00, 0x9FA0)) for _ in range(1500)]
    made.append(salad("chinese", "random Chinese characters", chinese, 1))
    scripts = [
        chr(rng.choice((0x61, 0x430, 0x5D0, 0x627, 0x905, 0xE01, 0xAC00, 0x3042)) + rng.randint(0, 20))
        for _ in range(900)
    ]
    made.append(salad("scripts", "random letters of eight scripts", scripts, 1))
    made.append(
        salad("noise", "random printable characters", [chr(code) for code in range(33, 127)], 1) | {"widest": 4}
    )
    pictures = [chr(code) for code in range(0x1F300, 0x1F6FF)]
    made.append(salad("pictures", "random emoji", pictures, 1))
    made.append(salad("replacement", "undecodable bytes", ["\ufffd", "\ufffd\ufffd", "a", " "], 1))
    for seed in range(4):
        words = samples.make("prose", 70 + seed, 9000).replace("\n", " ").split()
        random.Random(seed).shuffle(words)
        made.append(garbage(f"shuffled-{seed}", "an English text with its words shuffled", [{"text": " ".join(words)}]))
    return made


def salad(name: str, note: str, pieces: list[str], seed: int) -> Case:
    return garbage(f"salad-{name}", note, [{"shuffle": pieces, "times": 1800, "seed": seed}])


def sane_texts() -> list[Case]:
    made = [
        sane(
            f"{kind}-{seed}",
            f"generated {kind}",
            [{"sane": kind, "seed": 100 + seed, "size": (900, 5000, 14_000)[seed]}],
        )
        for kind in samples.KINDS
        for seed in range(3)
    ]
    for name, mark, times in (
        ("laughter", "ha ", 100), ("no", "No! ", 60), ("rule", "-", 300), ("equals", "=", 120), ("stars", "* ", 80),
        ("scream", "A", 120), ("zero-bytes", "A", 400), ("wow", "o", 80), ("dots", ".", 200), ("blank-lines", "\n", 40),
        ("indent", " ", 120), ("hash", "#", 160), ("exclaim", "!", 60), ("zeros", "0, ", 300), ("googol", "0", 100),
        ("chinese-laughter", "哈", 80), ("emoji-party", "🎉", 60), ("box", "─", 120), ("blocks", "█", 300),
        ("same-rows", "| N/A | N/A | N/A |\n", 24), ("all-work", "All work and no play makes Jack a dull boy.\n", 10),
        ("binary", "01", 128), ("braces", "}\n", 40), ("hex-zero", "0x00, ", 64), ("breaks", "<br>\n", 30),
    ):  # fmt: skip
        around = {"sane": "prose", "seed": len(name), "size": 500}
        made.append(sane(name, f"{mark!r} {times} times in a text", [around, {"repeat": mark, "times": times}, around]))
        made.append(sane(f"{name}-alone", f"{mark!r} {times} times", [{"repeat": mark, "times": times}]))
    block = {"sane": "code", "seed": 3, "size": 2600}
    made.append(
        sane("code-twice", "the whole listing shown again", [block, {"text": "\nThe full file again:\n"}, block])
    )
    made.append(sane("bottles", "99 bottles of beer", [{"sane": "bottles", "seed": 1, "size": 20_000}]))
    made.append(
        sane(
            "numbered",
            "100 numbered sentences",
            [{"count": "Step {}: I will check it and note the result. ", "times": 100}],
        )
    )
    made.append(sane("integers", "1 to 1000", [{"count": "{}, ", "times": 1000}]))
    made.append(sane("short", "an answer of one word", [{"text": "Paris."}], completion_tokens=2))
    thinking = [{"sane": "revisit", "seed": 4, "size": 6000}]
    draft = [{"sane": "prose", "seed": 4, "size": 1500}]
    made.append(sane("thinking-same", "the answer was written while thinking", draft, reasoning=thinking + draft))
    coins = {"shuffle": ["heads, ", "tails, "], "times": 100, "seed": 3}
    made.append(sane("coins", "a hundred throws of a coin", [coins]))
    made.append(
        sane("booleans", "a list of truth values", [{"shuffle": ["true, ", "false, "], "times": 120, "seed": 3}])
    )
    made.append(sane("dna", "a gene", [{"shuffle": list("ACGT"), "times": 3000, "seed": 3}]))
    made.append(
        sane(
            "morse",
            "a message in Morse code",
            [{"shuffle": [".- ", "-... ", "-.-. ", "-.. ", ". ", "/ ", "--- ", "... "], "times": 160, "seed": 3}],
        )
    )
    dots = {"shuffle": [chr(0x2800 + code) for code in (0, 0, 0, 1, 3, 7, 63, 127, 255)], "times": 1400, "seed": 3}
    made.append(sane("braille-art", "a picture made of Braille dots", [dots]))
    rng = random.Random("passwords")
    words = ["".join(rng.choices("abcdefgh#!KLMNOP23456789", k=16)) for _ in range(60)]
    made.append(sane("passwords", "sixty passwords", [{"text": "\n".join(words)}]))
    made.append(
        sane("hashes", "checksums", [{"text": "\n".join(random.Random(n).randbytes(32).hex() for n in range(60))}])
    )
    return made


def batches() -> list[Case]:
    def request(**changes: Any) -> Case:
        return {"tokens_per_sec": 17.93, "output_tokens": 3072, "finish_reason": "length", "ttft": 1.2, **changes}

    tails = [samples.make("prose", seed, 400)[-160:] for seed in range(8)]
    speeds = [5.31, 5.34, 5.29, 5.33, 5.36, 5.3, 5.28, 5.35]
    even = [request(think_tokens_est=768, content_tokens_est=None) for _ in range(8)]
    marks = [request(text_tail="!" * 200) for _ in range(8)]
    own = [request(tokens_per_sec=speed, text_tail=tail) for speed, tail in zip(speeds, tails, strict=True)]
    capped = [request(text_tail=tail) for tail in tails]
    mixed = [*own[:3], *(request(tokens_per_sec=18.0 + n / 10, text_tail="the " * 60) for n in range(5))]
    blank = [request(tokens_per_sec=17.0 + n, text_tail="") for n in range(4)]
    stops = [request(finish_reason="stop", output_tokens=812, text_tail=tail) for tail in tails]
    made = []
    for name, label, note, requests in (
        ("even", "garbage", "the seeds' fingerprint: all alike, all cut off, no answer", even),
        ("marks", "garbage", "all alike and full of '!'", marks),
        ("half", "garbage", "five of eight loop at different speeds", mixed),
        ("blank", "garbage", "tokens without text", blank),
        ("own", "sane", "all cut off at the limit, each with its own speed and text", own),
        ("capped", "sane", "alike in speed and length, but the texts differ", capped),
        ("stops", "sane", "alike, and finished by themselves", stops),
        ("single", "sane", "one request is always like itself", own[:1]),
    ):
        made.append({"id": f"batch-{name}", "label": label, "note": note, "requests": requests})
    return made


def garbage(name: str, note: str, content: list[Case], *, reasoning: list[Case] | None = None, **extra: Any) -> Case:
    return case(name, "garbage", note, content, reasoning, extra)


def sane(name: str, note: str, content: list[Case], *, reasoning: list[Case] | None = None, **extra: Any) -> Case:
    return case(f"sane-{name}", "sane", note, content, reasoning, extra)


def case(name: str, label: str, note: str, content: list[Case], reasoning: list[Case] | None, extra: Case) -> Case:
    made: Case = {"id": name, "label": label, "note": note}
    if reasoning:
        made["reasoning_content"] = reasoning
    return made | {"content": content} | extra


def every() -> list[Case]:
    silent = garbage("no-text", "3072 tokens counted, nothing came", [], completion_tokens=3072)
    return [*collapses(), *loops(), *shuffles(), *salads(), silent, *sane_texts(), *batches()]


if __name__ == "__main__":
    sys.stdout.write("".join(json.dumps(made, ensure_ascii=False) + "\n" for made in every()))
