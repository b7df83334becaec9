# ruff: noqa: RUF001 - the letters themselves are what is read here
"""Shell lines as people paste them: from a terminal with its prompts, from a page that set quotes and dashes.

Each line stays where it was, so that what is said of it names the right one.
"""

from __future__ import annotations

import html
import re

from sparkloom.base.errors import InputError
from sparkloom.inputs.importers import containers
from sparkloom.inputs.importers.expansion import split

_ADDRESS = re.compile(r"\s*https?://\S+\s*")
_PROMPT = re.compile(
    r"^[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:\[?[\w.-]+@[\w.-]+[^\n$#%]{0,80}[$#%]|[$%❯➜])[ \t]+(?=\S)", re.MULTILINE
)
_SECOND = re.compile(r"[ \t]*> ?")  # bash's second prompt, or a redirection
_TO_FILE = re.compile(r"[ \t]*>+[ \t]*(?:[/~$\"']|\S+\.(?:log|txt|out)\b)|.*2>&1")
_BLANKS = re.compile(r"[\u00a0\u2000-\u200a\u202f]")
_UNSEEN = re.compile(r"[\u200b-\u200d\u2060\ufeff]")
_BEHIND_BACKSLASH = re.compile(r"\\[ \t]+$", re.MULTILINE)
_BETWEEN = re.compile(r"(?<=[ \t])\\[ \t]+(?=\S)")  # where lines were made one
_OTHER_MARK = re.compile(r"^([^`\n]*[ \t])[`^][ \t]*$", re.MULTILINE)  # with which PowerShell and cmd go on
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#\d{1,6}|#x[\da-fA-F]{1,5});")  # of a page's source
_REPLY = re.compile(r"^(?:> ?)+", re.MULTILINE)
_QUOTED = (
    (re.compile(r"(?<![^\s=])[“„‟]([^“”„‟\"\n]*)[“”](?=\s|$)", re.MULTILINE), r'"\1"'),
    (re.compile(r"(?<![^\s=])[‘‚‛]([^‘’‚‛'\n]*)[‘’](?=\s|$)", re.MULTILINE), r"'\1'"),
)
_JSON = re.compile(r"\{[^\n]*[“”][^\n]*\}")
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
    if all(line.startswith(">") for line in text.splitlines() if line.strip()):
        text = _REPLY.sub("", text)
    text = _UNSEEN.sub("", _BLANKS.sub(" ", _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)))
    text = _BEHIND_BACKSLASH.sub(r"\\", _OTHER_MARK.sub(r"\1\\", _PROMPT.sub("", text)))
    text = _BETWEEN.sub("", text)
    text = _JSON.sub(lambda json: re.sub("[“”]", '"', json[0]), _unprompted(text))
    for quoted, as_typed in _QUOTED:
        text = quoted.sub(as_typed, text)
    text = _DASHES.sub(lambda dash: "-" if len(dash[1]) == 1 else "--", _HYPHENS.sub("-", text))
    return text if _A_SCRIPT.search(text) else _joined(text)


def _unprompted(text: str) -> str:
    """Without bash's second prompts: they stand before every line that goes on, which no redirection does."""
    lines, first = text.split("\n"), 0
    for end in range(1, len(lines) + 1):
        if end < len(lines) and lines[end - 1].endswith("\\"):
            continue
        more = lines[first + 1 : end]
        if all(map(_SECOND.match, more)) and not (len(more) == 1 and _TO_FILE.match(more[0])):
            lines[first + 1 : end] = [_SECOND.sub("", line, count=1) for line in more]
        first = end
    return "\n".join(lines)


def _joined(text: str) -> str:
    """A command whose options stand on lines of their own, where the backslashes were lost."""
    lines = text.split("\n")
    begun, lost = -1, False  # the line that starts a container, and whether a backslash behind it was lost
    for number, line in enumerate(lines):
        before = lines[number - 1] if number else ""
        goes_on = bool(_OPTION.match(line)) or (
            begun >= 0 and bool(line.strip()) and (line[0] in " \t" or (lost and _open(lines[begun:number])))
        )
        if goes_on and before.strip() and not before.lstrip().startswith("#") and not _GOES_ON.search(before):
            lines[number - 1] += " \\"
            lost = True
        if _CONTAINER.match(line):
            begun, lost = number, False
        elif not goes_on:
            begun = -1
    return "\n".join(lines)


def _open(lines: list[str]) -> bool:
    """Whether a container's command lacks its image so far, or what the image is to run."""
    words = split(" ".join(line.rstrip("\\ ") for line in lines))
    found = containers.begins(words)
    return found is not None and not containers.run(words[found[1] + 1 :]).words
