"""The program in a terminal of so many columns, and in a pipe: in this process or a fork of it, which loads nothing."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import traceback
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

from sparkloom.cli.program import main

NOT_A_PERSONS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")


@dataclass(frozen=True)
class Seen:
    text: str
    code: int
    errors: str = ""

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def widest(self) -> str:
        return max(self.lines, key=len)


def seen(columns: int, *words: str, encoding: str = "utf-8") -> Seen:
    """What it writes to a terminal, less colours; nothing wraps here, so a line that is too long shows its length."""
    child, terminal = pty.fork()
    if child == 0:
        _child(columns, words, encoding)
    written = bytearray()
    while block := _read(terminal):
        written += block
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", written.decode()).replace("\r\n", "\n")
    return Seen(plain, os.waitstatus_to_exitcode(status))


def piped(*words: str, environment: Mapping[str, str] | None = None) -> Seen:
    """What it writes to a pipe or a file."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(errors), mock.patch.dict(os.environ, environment or {}):
        code = _run(words)
    text, complaints = (str(stream.buffer.getvalue().decode()) for stream in (out, errors))  # type: ignore[attr-defined]
    return Seen(text, code, complaints)


def _run(words: tuple[str, ...]) -> int:
    with mock.patch.object(sys, "argv", ["sparkloom", *words]):
        try:
            main()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
    return 0


def _child(columns: int, words: tuple[str, ...], encoding: str) -> None:
    code = 99
    try:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        for name in NOT_A_PERSONS:
            os.environ.pop(name, None)
        os.environ["TERM"] = "xterm-256color"
        sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115 - the terminal's own
        sys.stderr = open(2, "w", encoding=encoding, closefd=False)  # noqa: SIM115
        code = _run(words)
        sys.stdout.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says so when the other end has closed
        return b""
