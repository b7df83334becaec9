"""Standard output and error of the program: the one place where text of others reaches a terminal, a pipe or a file.

What a file, a server, a pod or a node said is spelled by `visible`, whoever prints it and in which words.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

from sparkloom.base.visible import visible

ANEW = "\r\x1b[2K"  # a line that changes begins with it, on a terminal


class Visible:
    """A text stream that obeys nothing in what is written; `under` is the stream itself, for what draws a screen."""

    def __init__(self, under: TextIO) -> None:
        self.under = under

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # libraries find out what a stream takes by trying
            raise TypeError(f"expected text, found {type(text).__name__}")
        begin = ANEW if text.startswith(ANEW) and self.under.isatty() else ""
        self.under.write(begin + visible(text[len(begin) :]))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.under, name)


def wrap() -> None:
    """Both streams, once."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, Visible):
            setattr(sys, name, Visible(stream))


def under(stream: Any) -> Any:
    """For a library that colours by itself and has spelled what it shows; None where nothing was wrapped."""
    return stream.under if isinstance(stream, Visible) else None
