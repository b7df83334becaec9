"""Sane text of many kinds, made from a seed: what the guard must let pass, repetition and all."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from pathlib import Path

WORDS = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
NOUNS: list[str] = WORDS["nouns"]
VERBS: list[str] = WORDS["verbs"]
ADJECTIVES: list[str] = WORDS["adjectives"]


def sentence(rng: random.Random) -> str:
    def thing() -> str:
        adjective = f"{rng.choice(ADJECTIVES)} " if rng.random() < 0.5 else ""
        return f"{rng.choice(('the', 'a', 'every', 'this', 'our', 'one'))} {adjective}{rng.choice(NOUNS)}"

    text = f"{thing()} {rng.choice(VERBS)} {thing()}"
    text += rng.choice(
        ("", "", f" {rng.choice(WORDS['tails'])}", f" of {thing()}", f" and {rng.choice(VERBS)} {thing()}")
    )
    if rng.random() < 0.25:
        return f"{rng.choice(WORDS['links'])} {text}."
    return f"{text[0].upper()}{text[1:]}."


def prose(rng: random.Random, size: int) -> str:
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        parts.append(" ".join(sentence(rng) for _ in range(rng.randint(2, 6))))
    return "\n\n".join(parts)[:size]


def cjk(rng: random.Random, size: int) -> str:
    phrases = WORDS["phrases"][rng.choice(sorted(WORDS["phrases"]))]
    size = min(size, 6 * sum(map(len, phrases)))
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        parts.append(f"{len(parts) + 1}. " + "".join(rng.sample(phrases, 3)) + f"({rng.randint(2, 999)} ms)\n")
    return "".join(parts)[:size]


def code(rng: random.Random, size: int) -> str:
    parts = ["import json\nimport os\n\n\n"]
    while sum(map(len, parts)) < size:
        name, argument, other = (rng.choice(NOUNS) for _ in range(3))
        parts.append(
            f"def {rng.choice(VERBS)}_{name}({argument}, {other}={rng.randint(0, 64)}):\n"
            f'    """{sentence(rng)}"""\n'
            f"    if {argument} is None:\n        raise ValueError('{sentence(rng)[:-1]}')\n"
            f"    {rng.choice(NOUNS)}s = [{argument}[i] for i in range({other}, len({argument}))]\n"
            f"    return {rng.choice(VERBS)}({rng.choice(NOUNS)}s, key=lambda x: x['{rng.choice(NOUNS)}'])\n\n\n"
        )
    return "```python\n" + "".join(parts)[:size] + "\n```\n"


def table(rng: random.Random, size: int) -> str:
    lines = ["| name | status | tokens | seconds |", "|------|--------|-------:|--------:|"]
    while sum(map(len, lines)) < size:
        state = rng.choice(("ok", "ok", "ok", "failed", "N/A"))
        lines.append(f"| {rng.choice(NOUNS)} | {state} | {rng.randint(1, 3072)} | {rng.random() * 60:.2f} |")
    return "\n".join(lines) + "\n"


def same_rows(rng: random.Random, size: int) -> str:
    cells = rng.choice(("N/A", "-", "0", "yes", "ok", "TBD"))
    rows = min(24, size // 30)
    return "| a | b | c |\n|---|---|---|\n" + f"| {cells} | {cells} | {cells} |\n" * rows + prose(rng, 400)


def data(rng: random.Random, size: int) -> str:
    rows: list[str] = []
    while sum(map(len, rows)) < size:
        row = {
            "id": len(rows),
            "name": rng.choice(NOUNS),
            "active": rng.random() < 0.5,
            "score": round(rng.random() * 100, 2),
        }
        rows.append("  " + json.dumps(row))
    return "```json\n[\n" + ",\n".join(rows) + "\n]\n```\n"


def numbers(rng: random.Random, size: int) -> str:
    kind = rng.randint(0, 3)
    if kind == 0:
        return ", ".join(str(number) for number in range(1, max(50, size // 5)))
    if kind == 1:
        return "[" + ", ".join(str(rng.randint(0, 9)) for _ in range(size // 3)) + "]"
    if kind == 2:
        rows = min(24, max(4, size // 60))
        return "\n".join(" ".join("1" if row == column else "0" for column in range(rows)) for row in range(rows))
    return "\n".join(f"{n} x {m} = {n * m}" for n in range(1, 13) for m in range(1, 13))[: max(size, 400)]


def blob(rng: random.Random, size: int) -> str:
    raw = rng.randbytes(size * 3 // 4)
    if rng.random() < 0.5:
        return base64.b64encode(raw).decode()
    lines = []
    for start in range(0, len(raw) // 3, 16):
        lines.append(f"{start:08x}: " + " ".join(f"{byte:02x}" for byte in raw[start : start + 16]))
    return "\n".join(lines)


def song(rng: random.Random, size: int) -> str:
    chorus = "\n".join(sentence(rng) for _ in range(4))
    laugh = rng.choice(("ha", "la", "na", "hey")) + " "
    verses: list[str] = []
    while sum(map(len, verses)) < size:
        verse = "\n".join(sentence(rng) for _ in range(6))
        verses.append(f"{verse}\n\n{chorus}\n{laugh * rng.randint(3, 40)}\n")
    return "\n".join(verses)


def bottles(rng: random.Random, size: int) -> str:
    first = min(99, max(8, size // 140))
    return "\n".join(
        f"{n} bottles of beer on the wall, {n} bottles of beer.\n"
        f"Take one down and pass it around, {n - 1} bottles of beer on the wall.\n"
        for n in range(first, 0, -1)
    )


def steps(rng: random.Random, size: int) -> str:
    line = f"I will check the {rng.choice(NOUNS)} of step {{}} and note the result."
    return "\n".join(f"Step {n}: " + line.format(n) for n in range(1, min(100, max(10, size // 60))))


def logs(rng: random.Random, size: int) -> str:
    lines: list[str] = []
    while sum(map(len, lines)) < size:
        second = len(lines)
        level = rng.choice(("INFO", "INFO", "INFO", "WARN"))
        lines.append(
            f"2026-06-{1 + second // 3600:02d}T10:{second // 60 % 60:02d}:{second % 60:02d} {level} "
            f"{rng.choice(NOUNS)}: step {second} loss {rng.random():.4f}"
        )
    return "```\n" + "\n".join(lines) + "\n```\n"


def manifest(rng: random.Random, size: int) -> str:
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        name = rng.choice(NOUNS)
        parts.append(
            f"apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}-{len(parts)}\nspec:\n  ports:\n"
            f"    - port: {rng.randint(80, 9000)}\n      targetPort: {rng.randint(80, 9000)}\n"
            f"  selector:\n    app: {name}\n"
        )
    return "```yaml\n" + "---\n".join(parts) + "```\n"


def revisit(rng: random.Random, size: int) -> str:
    """Thinking that writes a draft, checks it, and writes it again."""
    draft = prose(rng, max(300, size // 4))
    return (
        f"Let me draft this.\n\n{draft}\n\nWait, is that right? Let me check.\n\n{prose(rng, size // 4)}\n\n"
        f"So the draft stands:\n\n{draft}\n\nOne more look.\n\n{draft}\n\nGood. {prose(rng, size // 4)}"
    )


def word_list(rng: random.Random, size: int) -> str:
    known = sorted({*NOUNS, *VERBS, *ADJECTIVES})
    words = rng.sample(known, min(len(known), max(20, size // 9)))
    return rng.choice((", ", "\n- ", "; ", "\n")).join(words)


def formulas(rng: random.Random, size: int) -> str:
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        a, b, n = rng.randint(2, 9), rng.randint(2, 99), rng.randint(2, 6)
        left = f"\\sum_{{k=1}}^{{{b}}} \\frac{{k^{n}}}{{{a}}}"
        parts.append(f"{sentence(rng)}\n\n$${left} = \\int_0^{{{b}}} x^{n}\\,dx + O({a}^{n})$$\n\n")
    return "".join(parts)


KINDS: dict[str, Callable[[random.Random, int], str]] = {
    maker.__name__: maker
    for maker in (
        prose, cjk, code, table, same_rows, data, numbers, blob, song, bottles, steps, logs, manifest, revisit,
        word_list, formulas,
    )
}  # fmt: skip


def make(kind: str, seed: int, size: int) -> str:
    return KINDS[kind](random.Random(f"{kind}/{seed}"), size)


def document(seed: int) -> str:
    """Several kinds in one answer, as models write them."""
    rng = random.Random(f"document/{seed}")
    return "\n\n".join(make(rng.choice(sorted(KINDS)), seed, rng.randint(300, 3000)) for _ in range(rng.randint(1, 5)))
