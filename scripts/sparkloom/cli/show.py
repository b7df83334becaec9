"""How results look on a terminal. Data comes in, words go out; nothing is decided here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkloom.base import files
from sparkloom.base import table as tables
from sparkloom.base.errors import Problem
from sparkloom.base.visible import visible
from sparkloom.cli import streams

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan", "ok": "green"}


def write(path: Path, text: str | bytes) -> Path:
    """A file that somebody asked for."""
    with files.writable(path, "name a place that you may write"):
        return files.write(path, text)


def out(data: Any, as_json: bool, human: Callable[[Any], object]) -> None:
    """JSON on request, else the human form (which prints, or returns text to print)."""
    try:
        if as_json:
            plain = not (sys.stdout.encoding or "").lower().startswith("utf")
            say(json.dumps(data, indent=2, ensure_ascii=plain) + "\n")
            return
        text = human(data)
        if isinstance(text, str):
            words(text.removesuffix("\n") + "\n")
    except BrokenPipeError:
        streams.drop_output()  # the reader has seen enough; the exit status still is the verdict's


def unusable(found: Iterable[Problem], **more: Any) -> None:
    """The problems as `--json` gives them, on standard output; stderr has them as lines."""
    problems = [problem._asdict() for problem in found]
    out({"error": "unusable input", "problems": problems, **more}, True, str)


def say(text: str) -> None:
    """To standard output. A reader who has seen enough (`| head`) is no failure: an error without a number passes
    through the command line library, which would exit with 1."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise BrokenPipeError from None


def words(text: str) -> None:
    """The same for people: no line of it is wider than the window."""
    say(streams.folded(text, sys.stdout))


def console(*, stderr: bool = False) -> Console:
    """Words are words: nothing in them is markup, an emoji's name or a terminal's command."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        def on_broken_pipe(self) -> None:  # as `say`: rich would exit with 1
            raise BrokenPipeError

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible(text), style, control)

    stream = sys.stderr if stderr else sys.stdout
    # a file or a pipe has no width: tables keep their rows whole there
    wide = None if stream.isatty() else 200
    drawn = streams.under(stream)
    return Shown(file=drawn, stderr=stderr, highlight=False, markup=False, emoji=False, width=wide)


def table(names: Sequence[str], rows: Iterable[Sequence[str]], dropped: Sequence[str] = ()) -> None:
    """As `base.table` says: in the window, or whole in a pipe."""
    say("\n".join(tables.lines(names, rows, tables.window(sys.stdout), dropped)) + "\n")


def unicode() -> bool:
    """Whether lines and blocks can be drawn as such."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LANG")
    refused = locale in ("C", "POSIX") or os.environ.get("NO_UNICODE")
    return (sys.stdout.encoding or "").lower().startswith("utf") and not refused


def window(terminal: Console) -> int | None:
    """Columns that a person sees; None for a file or a pipe, where rows stay whole for grep and cut."""
    return terminal.width if terminal.is_terminal else None


def paragraph(terminal: Console, text: str | Text, indent: int = 0, style: str = "") -> None:
    """Words as they stand (nothing in them is markup), wrapped in a window, in one line elsewhere."""
    from rich.padding import Padding
    from rich.text import Text

    words = text if isinstance(text, Text) else Text(text)
    words.overflow = "fold"
    if window(terminal) is None:
        terminal.print(Text(" " * indent) + words, style=style, soft_wrap=True)
    else:
        terminal.print(Padding(words, (0, 0, 0, min(indent, terminal.width // 4)), expand=False), style=style)


def coloured(*parts: str | tuple[str, str]) -> Text:
    """Words, some of them in a colour: each of these stands behind its own."""
    from rich.text import Text

    return Text.assemble(*parts)


def number(value: Any, digits: int = 1) -> str:
    if value is None:
        return "-"
    return f"{value:,.{digits}f}" if isinstance(value, float) else str(value)


def problems(unusable: Iterable[Problem]) -> None:
    """What is unusable, on stderr: `file:line:column: message [rule]`, as compilers say it."""
    sys.stderr.write("".join(f"{problem}\n" for problem in unusable))


def complain(text: str) -> None:
    """To standard error, at once."""
    sys.stderr.write(text)
    sys.stderr.flush()
