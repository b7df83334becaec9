"""A profile with a slip in it: each message names file, line, column, what was found and what to write."""

from __future__ import annotations

import json

import pytest

from tests.journeys.terminal import Terminal

MINE = b"extends: openai--gpt-oss-120b\nsummary: mine\n"
BOMB = b"a: &a [x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + n, 98 + n, b", ".join([b"*%c" % (97 + n)] * 8)) for n in range(12)
)
BROKEN = {  # content, line:column, what is said of the value or the cure
    "tab": (MINE + b"launch:\n\tparallel: {tp: 2}\n", "4:1", ("tab", "spaces")),
    "twice": (MINE + b"launch: {}\nsummary: again\n", "4:1", ("summary", "keep one")),
    "type": (MINE + b"launch:\n  parallel: {tp: two}\n", "4:14", ("launch.parallel.tp", "integer", "'two'")),
    "unknown": (MINE + b"lunch: {}\n", "3:1", ("'lunch'", "did you mean 'launch'")),
    "bomb": (BOMB, "1:", ("too large",)),
    "crlf": (b"\xef\xbb\xbf" + (MINE + b"lunch: {}\n").replace(b"\n", b"\r\n"), "3:1", ("did you mean 'launch'",)),
    "latin1": (MINE + b"env: {NAME: gr\xfc\xdf}\n", "3:15", ("0xfc", "UTF-8")),
    "utf16": ("summary: mine\n".encode("utf-16"), "1:1", ("UTF-8",)),
    "empty": (b"", "1:1", ("found nothing", "expected")),
    "list": (b"- a\n- b\n", "1:1", ("found a list", "expected")),
    "quote": (MINE + b'launch:\n  served_model_name: "mine\n', "4:22", ("quote", "never closed")),
    "colon": (b"summary: a: b\n", "1:11", ("quotes",)),
    "alias": (MINE + b"launch: *nope\n", "3:9", ("*nope", "anchor")),
    "self": (b"a: &a\n  b: *a\n", "2:3", ("too deep",)),
    "tag": (MINE + b"env: !!python/object/apply:os.system [id]\n", "3:1", ("env",)),
    "parent": (b"extends: nobody\n", "1:1", ("'nobody'",)),
    "size": (MINE + b"launch: {max_num_seqs: -3}\n", "", ("max_num_seqs", "-3")),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_slip_is_named_by_place_value_and_cure(terminal: Terminal, kind: str) -> None:
    content, place, words = BROKEN[kind]
    (terminal.home / "mine.yml").write_bytes(content)
    seen = terminal.type("sparkloom plan mine.yml", 2 if place else 1)
    assert f"mine.yml:{place}" in seen.words, seen.text
    seen.has(*words)


def test_lint_judges_the_others_when_one_cannot_be_read(sized: Terminal) -> None:
    (sized.home / "mine.yml").write_bytes(BROKEN["tab"][0])
    (sized.home / "good.yml").write_bytes(MINE)
    seen = sized.type("sparkloom lint mine.yml good.yml", 2)
    seen.has("mine.yml:4:1", "1 profile could not be judged")
    told = json.loads(sized.type("sparkloom plan mine.yml --json 2>/dev/null", 2, copied=True).text)
    assert [(one["file"], one["line"], one["column"]) for one in told["problems"]] == [("mine.yml", 4, 1)]


def test_files_that_are_none(terminal: Terminal) -> None:
    for name, words in (
        ("none.yml", "no such file"),
        (".", "no such profile"),
        ("./", "folder"),
        ("/dev/zero", "holds more than"),
        ("/dev/null", "found nothing"),
        ("/proc/self/mem", "/proc/self/mem"),
        ("''", "no"),
    ):
        terminal.type(f"sparkloom lint {name}", 2).has(words)
    terminal.type("mkfifo pipe; timeout 20 sparkloom lint pipe </dev/null", 2).has("pipe")
