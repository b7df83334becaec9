"""Standard output and error of the program: the one place where text of others reaches a terminal, a pipe or a file.

What a file, a server, a pod or a node said is spelled by `visible`, whoever prints it and in which words.
"""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

from sparkloom.base.table import broken, columns, window
from sparkloom.base.visible import visible

ENDLESS = r"(\S{200})\S{200,}"  # a word that nobody typed by hand: the message behind it is what counts
ANEW = "\r\x1b[2K"  # a line that changes begins with it, on a terminal


class Visible:
    """A text stream that obeys nothing in what is written; `under` is the stream itself, for what draws a screen."""

    def __init__(self, under: TextIO, folds: bool = False) -> None:
        self.under = under
        self.folds = folds  # what is for people alone: no line is wider than the window

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # libraries find out what a stream takes by trying
            raise TypeError(f"expected text, found {type(text).__name__}")
        begin = ANEW if text.startswith(ANEW) and self.under.isatty() else ""
        shown = visible(text[len(begin) :])
        if self.folds and begin and not shown.endswith("\n") and (wide := window(self.under)):
            shown = shown[: wide - 1]  # drawn anew soon: a second line of it would stay
        elif self.folds:
            shown = folded(shown, self.under)
        self.under.write(begin + shown)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.under, name)


def folded(text: str, stream: Any) -> str:
    """Lines wider than the window broken between words, with a hanging indent. A pipe gets whole lines."""
    wide = window(stream)
    if not wide or all(columns(line) <= wide for line in text.splitlines()):
        return text
    import re

    lines = []
    for line in re.sub(ENDLESS, r"\1...", text).splitlines(keepends=True):
        words = line.rstrip("\n")
        indent = " " * min(len(words) - len(words.lstrip()) + 2, wide // 4)
        lines.append("\n".join(broken(words, wide, indent)) + line[len(words) :] if columns(words) > wide else line)
    return "".join(lines)


def wrap() -> None:
    """Both streams, once."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Visible):
            setattr(sys, name, Visible(stream, folds=name == "stderr"))


def under(stream: Any) -> Any:
    """For a library that colours by itself and has spelled what it shows; None where nothing was wrapped."""
    return stream.under if isinstance(stream, Visible) else None


def drop_output() -> None:
    """What is still buffered goes nowhere, so that the interpreter's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
