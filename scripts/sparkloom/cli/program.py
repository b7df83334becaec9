"""The program: what becomes of a failure.

docs/reference/exit-status.md says what each exit status means; with `--json` the problems of unusable input are JSON on
standard output, too. Never a traceback: a crash leaves one in a file of its own (SPARKLOOM_DEBUG=1 shows it instead).
"""

from __future__ import annotations

import gc
import os
import sys
from io import TextIOWrapper
from pathlib import Path

from sparkloom.base.errors import InputError, Refused, full
from sparkloom.cli import streams
from sparkloom.cli.commands import ASKED_BY_SHELL, COMMANDS, PROGRAM, SHELVES

EPILOG = (
    "Exit status: 0 fine, 1 findings or a negative verdict, 2 unusable input, 70 a bug of ours, 130 interrupted "
    "(docs/reference/exit-status.md). `sparkloom --version` prints the version."
)


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
        from sparkloom.cli import show_findings

        show_findings.refusal(error.findings)
        code = 1
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        streams.drop_output()
        code = 0
    except OSError as error:
        told = full(error, "standard output") or f"{error.filename or 'standard output'}: {error.strerror or error}"
        sys.stderr.write(f"sparkloom: {told}\n")
        streams.drop_output()
        code = 2
    except Exception as error:
        if os.environ.get("SPARKLOOM_DEBUG"):
            raise
        code = _unforeseen(error)
    else:
        return
    raise SystemExit(code)


def _run() -> None:
    words = sys.argv[1:]
    named = next((command for command in COMMANDS if words[:1] == [command.name]), None)
    if named and named.plain:
        raise SystemExit(named.load()(words[1:]))
    if words[:1] == ["--version"]:
        print(f"sparkloom {_version()}")
        return
    from sparkloom.cli.lazy import LazyGroup  # brings the library that the plain ones do without

    if ASKED_BY_SHELL in os.environ:
        from typer import completion

        completion.completion_init()  # type: ignore[attr-defined]
    LazyGroup(PROGRAM, COMMANDS, epilog=EPILOG, shelves=SHELVES)(prog_name=PROGRAM, complete_var=ASKED_BY_SHELL)


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("sparkloom")
    except metadata.PackageNotFoundError:
        return "from a checkout that is not installed (make setup)"


def _ready() -> None:
    """Standard input, output or error may be closed, or speak less than Unicode; neither is a reason to fail.

    Nothing that is written from here on is obeyed by a terminal, but what we draw ourselves.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - lives as long as the process
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    streams.wrap()
    # A command of half a second makes much and leaves little; by default it collects 190 times.
    gc.set_threshold(100_000)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # we have none; looking reads every package's metadata
    sys.unraisablehook = _nowhere_to_go


def _nowhere_to_go(what: sys.UnraisableHookArgs) -> None:
    """Ctrl-C comes again where it met a callback, as an import has: Python only reports it there, and goes on."""
    if what.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(what)
        return
    import signal
    import threading

    main_thread = threading.main_thread().ident or 0
    threading.Timer(0.05, signal.pthread_kill, (main_thread, signal.SIGINT)).start()


def _unforeseen(error: Exception) -> int:
    """A cluster that does not answer is no bug of ours; everything else is."""
    if "kubernetes" in sys.modules:
        from sparkloom.site import patience

        if told := patience.trouble(error):
            sys.stderr.write(f"sparkloom: {told}\n")
            return 2
    from sparkloom.cli import crash

    sys.stderr.write(crash.report(error, _version()))
    return 70
