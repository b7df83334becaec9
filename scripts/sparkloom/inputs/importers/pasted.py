# ruff: noqa: RUF001 - the letters themselves are what is read here
"""Shell lines as people paste them: from a terminal with its prompts, from a page that set quotes and dashes.

Each line stays where it was, so that what is said of it names the right one.
"""

from __future__ import annotations

import re

from sparkloom.base.errors import InputError

_ADDRESS = re.compile(r"\s*https?://\S+\s*")
_PROMPT = re.compile(
    r"^[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:\[?[\w.-]+@[\w.-]+[^\n$#%]{0,80}[$#%]|[$%❯➜])[ \t]+(?=\S)", re.MULTILINE
)
_AFTER_BACKSLASH = re.compile(r"(?<=\\\n)[ \t]*> ?")  # bash's second prompt
_BLANKS = re.compile(r"[\u00a0\u2000-\u200a\u202f]")
_UNSEEN = re.compile(r"[\u200b-\u200d\u2060\ufeff]")
_BEHIND_BACKSLASH = re.compile(r"\\[ \t]+$", re.MULTILINE)
_QUOTED = (
    (re.compile(r"(?<![^\s=])[“„‟]([^“”„‟\"\n]*)[“”](?=\s|$)", re.MULTILINE), r'"\1"'),
    (re.compile(r"(?<![^\s=])[‘‚‛]([^‘’‚‛'\n]*)[‘’](?=\s|$)", re.MULTILINE), r"'\1'"),
)
_HYPHENS = re.compile(r"(?<=\w)[‐‑](?=\w)")
_DASHES = re.compile(r"(?<!\S)-?[‐‑‒–—―−]+-?(?=([A-Za-z][\w-]*))")
_A_SCRIPT = re.compile(r"\A#!|<<|^\s*(?:if|for|while|until|case|function|do|then)\b|\(\)\s*\{", re.MULTILINE)
_CONTAINER = re.compile(r"\s*(?:sudo\s+)?(?:docker|podman|nerdctl)\s")
_OPTION = re.compile(r"\s*--?[A-Za-z]")
_GOES_ON = re.compile(r"(\\|\||&&|;|&)\s*$")


def plain(text: str, name: str) -> str:
    """The same lines as a shell reads them."""
    if _ADDRESS.fullmatch(text):
        message = "is the address of a page, and nothing is fetched: paste the recipe's own text"
        raise InputError.single(name, message, rule="an-address")
    text = _UNSEEN.sub("", _BLANKS.sub(" ", text))
    text = _AFTER_BACKSLASH.sub("", _BEHIND_BACKSLASH.sub(r"\\", _PROMPT.sub("", text)))
    for quoted, as_typed in _QUOTED:
        text = quoted.sub(as_typed, text)
    text = _DASHES.sub(lambda dash: "-" if len(dash[1]) == 1 else "--", _HYPHENS.sub("-", text))
    return text if _A_SCRIPT.search(text) else _joined(text)


def _joined(text: str) -> str:
    """A command whose options stand on lines of their own, where the backslashes were lost."""
    lines = text.split("\n")
    container = False  # whether the line before belongs to the command that starts one
    for number, line in enumerate(lines):
        before = lines[number - 1] if number else ""
        more = container and line[:1] in (" ", "\t") and line.strip()
        goes_on = bool(_OPTION.match(line) or more)
        if goes_on and before.strip() and not before.lstrip().startswith("#") and not _GOES_ON.search(before):
            lines[number - 1] += " \\"
        container = bool(_CONTAINER.match(line)) or (container and goes_on)
    return "\n".join(lines)
