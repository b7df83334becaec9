"""What the test beds' command lines share: commands and their help, errors in one line, the table after `down`."""

from __future__ import annotations

import argparse
import os
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence

from testbed.base import names
from testbed.base.shell import answer

Action = Callable[[argparse.Namespace], int]


def say(text: str) -> None:
    print(f"      {text}", file=sys.stderr, flush=True)


class Console:
    """`python -m testbed NAME COMMAND`: one function a command."""

    def __init__(self, name: str, description: str, epilog: str | None = None) -> None:
        self._parser = argparse.ArgumentParser(f"python -m testbed {name}", description=description, epilog=epilog)
        self._commands = self._parser.add_subparsers(required=True, title="commands", metavar="COMMAND")
        self._log = names.CACHE / "logs" / f"{name}-error.log"

    def command(self, name: str, action: Action, text: str, details: str = "") -> argparse.ArgumentParser:
        """`text` stands in the list of commands; the command's own help also has the details, line by line."""
        sub = self._commands.add_parser(
            name, help=text, description=f"{text}\n\n{details}".strip(), formatter_class=RawDescriptionHelpFormatter
        )
        sub.set_defaults(action=action)
        return sub

    def main(self) -> int:
        # root by plain `su` has no sbin on its PATH
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        args = self._parser.parse_args()
        return answer(lambda: int(args.action(args)), self._log)


def table(meanings: Mapping[str, str]) -> str:
    return "\n".join(f"  {name:<20} {meaning}" for name, meaning in meanings.items())


def given(command: Sequence[str]) -> list[str]:
    """The words of a command behind an optional `--`."""
    return [*command[1:]] if command[:1] == ["--"] else [*command]


def enter(container: str, command: Sequence[str]) -> int:
    """Become a command, or a shell, in a container."""
    terminal = ["-it"] if sys.stdin.isatty() and sys.stdout.isatty() else ["-i"]
    os.execvp("docker", ["docker", "exec", *terminal, container, *(given(command) or ["bash"])])


def counted(first: Mapping[str, object], before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """What the machine had before `up`, before `down` and after it."""
    print(f"{'':<20}{'before up':>10}{'before down':>12}{'after':>8}{'left over':>11}")
    for name, now in after.items():
        was = first.get(name)
        left = "?" if not isinstance(was, int) else f"{now - was:+d}" if now != was else "0"
        print(f"{name:<20}{'?' if was is None else was!s:>10}{before[name]:>12}{now:>8}{left:>11}")
