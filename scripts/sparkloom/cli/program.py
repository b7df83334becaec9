"""The program: what becomes of a failure.

Exit status: 0 fine, 1 findings or a negative verdict, 2 unusable input (with `--json` the problems are JSON on standard
output, too). Never a traceback (SPARKLOOM_DEBUG=1 shows one).
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError, Refused
from sparkloom.cli.commands import COMMANDS


def main() -> None:
    """Entry point: every failure is one line per problem and an exit status."""
    _ready()
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except InputError as error:
        from sparkloom.cli import show

        show.problems(error.problems)
        if "--json" in sys.argv[1:]:
            show.unusable(error.problems)
        code = 2
    except Refused as error:
        from sparkloom.cli import show

        show.refusal(error.findings)
        code = 1
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        _drop_output()
        code = 0
    except OSError as error:
        sys.stderr.write(f"sparkloom: {error.filename or 'standard output'}: {error.strerror or error}\n")
        _drop_output()
        code = 2
    except Exception as error:
        if os.environ.get("SPARKLOOM_DEBUG"):
            raise
        _internal(error)
        code = 70
    else:
        return
    raise SystemExit(code)


def _run() -> None:
    words = sys.argv[1:]
    named = next((command for command in COMMANDS if words[:1] == [command.name]), None)
    if named and named.plain:
        raise SystemExit(named.load()(words[1:]))
    from sparkloom.cli.lazy import LazyGroup  # brings the library that the plain ones do without

    LazyGroup("sparkloom", COMMANDS)()


def _ready() -> None:
    """Standard output may be closed, or speak less than Unicode; neither is a reason to fail."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - lives as long as the process
    elif isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What is still buffered goes nowhere, so that the interpreter's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _internal(error: Any) -> None:
    sys.stderr.write(
        f"sparkloom: unexpected {type(error).__name__}: {error}; this is a bug: SPARKLOOM_DEBUG=1 shows where\n"
    )
