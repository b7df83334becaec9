"""A person's terminal: a command is typed at bash's prompt; what is seen of it comes back, judged line by line."""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import pexpect

from tests.places import REPO

PROGRAMS = REPO / ".venv" / "bin"
SIZES = ((80, 24), (120, 40))
PROMPT = re.compile(r"@@(\d+) \$ ")
PATIENCE = 180  # seconds: the machine may be doing forty other things
LOOKS = re.compile(r"\x1b\[[0-9;]*m")
MOVES = re.compile(r"\x1b\[(\?(25|1049)[hl]|[0-9;]*[ABCDGHJK])")  # what draws a picture anew; nothing else is obeyed
COMMAND = re.compile(r" *(sparkloom|curl) ")  # on a line of its own it is there to be copied: the terminal breaks it
# How this machine reaches the world, and where a crash of ours is kept (tests/crashes.py); all else is the person's.
LEFT = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "SSL_CERT_FILE", "SSL_CERT_DIR")
LEFT += ("XDG_STATE_HOME",)


@dataclass(frozen=True)
class Seen:
    """What one command showed, less colours, and how it ended."""

    command: str
    text: str
    code: int

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def words(self) -> str:
        """All of it in one line."""
        return " ".join(self.text.split())

    def has(self, *wanted: str) -> Seen:
        shown = "".join(self.text.split())  # where a line was broken does not matter
        for words in wanted:
            assert "".join(words.split()) in shown, f"`{self.command}` does not say {words!r}; it said:\n{self.text}"
        return self


class Terminal:
    """bash in a pseudo-terminal of that size, in that home. `type` judges whatever is shown."""

    def __init__(
        self, home: Path, size: tuple[int, int] = SIZES[0], path: str = "", shell: tuple[str, ...] = (), **env: str
    ) -> None:
        self.columns, lines = size
        self.home = home
        kept = {name: os.environ[name] for name in LEFT if name in os.environ}
        shown = {"HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": "@@$? $ ", "USER": "owner"}
        places = f"{path or PROGRAMS}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        self.program = pexpect.spawn(
            *_split(shell or ("bash", "--norc", "--noprofile", "--noediting")),
            cwd=str(home),
            env={**kept, **shown, "PATH": places, **env},  # type: ignore[arg-type]
            dimensions=(lines, self.columns),
            encoding="utf-8",
            timeout=PATIENCE,
        )
        self.program.delaybeforesend = None
        self.program.expect(PROMPT)
        self.typed = self.raw = ""

    def type(self, command: str, code: int = 0, copied: bool = False) -> Seen:
        """`copied` output is there to be copied or read by programs (YAML, a curl): its lines may be long."""
        self.begin(command)
        return self.end(code, copied)

    def begin(self, command: str) -> None:
        assert "\n" not in command, "one line at a time"
        self.typed, self.raw = command, ""
        self.program.sendline(command)
        self.program.expect_exact(f"{command}\r\n")  # the terminal's own echo

    def sees(self, text: str) -> None:
        """Waits for it while a command runs."""
        self.program.expect_exact(text)
        self.raw += f"{self.program.before}{self.program.after}"

    def pause(self, seconds: float) -> None:
        """For a command that waits and shows nothing; whatever it does show is kept."""
        if self.program.expect([pexpect.TIMEOUT, PROMPT], timeout=seconds):
            raise AssertionError(f"`{self.typed}` was expected to take longer; it said:\n{self.program.before}")

    def answer(self, text: str) -> None:
        self.program.sendline(text)

    def interrupt(self) -> None:
        self.program.sendintr()

    def end(self, code: int | None = 0, copied: bool = False) -> Seen:
        self.program.expect(PROMPT)
        raw = f"{self.raw}{self.program.before}"
        seen = Seen(self.typed, _left(raw), int(self.program.match.group(1)))  # type: ignore[union-attr]
        self._judge(seen, raw, copied)
        assert code is None or seen.code == code, f"`{self.typed}` ended with {seen.code}, not {code}:\n{seen.text}"
        return seen

    def _judge(self, seen: Seen, raw: str, copied: bool) -> None:
        where = f"`{seen.command}` at {self.columns} columns"
        assert seen.code != 70, f"a crash of ours; reproduce: {seen.command}\n{seen.text}"
        assert "Traceback (most recent call last)" not in seen.text, f"{where} shows a traceback:\n{seen.text}"
        obeyed = re.findall(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f].{,8}", LOOKS.sub("", MOVES.sub("", raw)))
        assert not obeyed, f"{where} sends control bytes: {obeyed[:3]!r}"
        wide = [line for line in _drawn(raw) if width(line) > self.columns]
        wide = [line for line in wide if not COMMAND.match(line)]
        assert copied or not wide, f"{where}: {width(wide[0])} columns wide: {wide[0]}"

    def close(self) -> None:
        self.program.ptyproc.delayafterterminate = 10
        self.program.close(force=True)


def width(line: str) -> int:
    """Columns on a terminal: wide letters take two, marks on a letter none."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in line
    )


def quoted(*words: object) -> str:
    return shlex.join(str(word) for word in words)


def _split(shell: tuple[str, ...]) -> tuple[str, list[str]]:
    return shell[0], list(shell[1:])


def _drawn(raw: str) -> list[str]:
    """Every line that was sent, also those that were drawn anew later."""
    return re.split(r"[\r\n]+", MOVES.sub("\n", LOOKS.sub("", raw)))


def _left(raw: str) -> str:
    """What stands there at the end: a picture that was drawn anew counts once."""
    lines = [""]
    for piece in re.split(r"(\r?\n|\r|\x1b\[[0-9;]*[AK])", LOOKS.sub("", raw)):
        if piece in ("\n", "\r\n"):
            lines.append("")
        elif piece.startswith("\x1b[") and piece.endswith("A"):
            lines = lines[: -int(piece[2:-1] or 1)] or [""]
        elif piece.startswith("\x1b[") and piece.endswith("K"):
            lines[-1] = ""
        elif piece == "\r":
            pass
        else:
            lines[-1] += MOVES.sub("", piece)
    return "\n".join(lines)
