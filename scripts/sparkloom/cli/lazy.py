"""Groups of commands that list themselves without importing a room, and import a command when it is asked for."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer
from typer import completion
from typer.core import TyperCommand, TyperGroup

from sparkloom.cli.commands import ASKED_BY_SHELL, PROGRAM, Command

NARROW = 52  # columns, below which the library would write wider than the window


def _context() -> dict[str, Any]:
    """How every command is asked for help, and how wide that is."""
    columns = shutil.get_terminal_size().columns
    return {"help_option_names": ["-h", "--help"]} | ({"terminal_width": columns - 2} if columns < NARROW else {})


class LazyGroup(TyperGroup):
    """Help and hints come from the table; a command's own options from its function, once it is called."""

    def __init__(
        self,
        name: str,
        table: Sequence[Command],
        help: str | None = None,
        epilog: str | None = None,
        shelves: Mapping[str, Sequence[Command]] | None = None,
    ) -> None:
        self._table = {command.name: command for command in table}
        self._shelves = shelves or {"Commands": table}
        listed = [_listed(command) for command in self._table.values()]
        super().__init__(
            name=name,
            commands=listed,
            help=help,
            epilog=epilog,
            no_args_is_help=True,
            rich_markup_mode=None,
            context_settings=_context(),
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        command = self._table.get(name or "")
        if command is None or command.below or (command.plain and ctx.resilient_parsing):
            return name, listed, rest  # (a shell that completes a line asks, and runs nothing)
        if command.plain:  # named behind `--`
            raise SystemExit(command.load()(rest))
        return name, loaded(command), rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = args[0] if args and not ctx.resilient_parsing else ""
        if first.startswith("-") and first not in ("-h", "--help", "--"):
            raise typer.BadParameter(f"{first}: options stand behind the command: `{ctx.command_path} COMMAND {first}`")
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each command's line in full: wrapped, not cut."""
        for shelf, commands in self._shelves.items():
            with formatter.section(shelf):
                formatter.write_dl([(command.name, command.help) for command in commands])


class Named(TyperCommand):
    """A command whose refusals name the value that was given: what checks it leaves that out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if told := getattr(error.__cause__, "errors", None):
                said = error.message.removeprefix("Value error, ")
                error.message = re.sub("^Input", lambda _: repr(told()[0]["input"]), said)
            raise


def _listed(command: Command) -> TyperCommand | LazyGroup:
    if command.below:
        return LazyGroup(command.name, command.below, command.help)
    return TyperCommand(
        command.name, help=command.help, hidden=command.hidden, rich_markup_mode=None, context_settings=_context()
    )


def loaded(command: Command) -> Any:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(command.name, cls=Named, help=command.help, context_settings=_context())(command.load())
    return typer.main.get_command(app)


def completion_script(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(help='for bash: eval "$(sparkloom completion bash)" in ~/.bashrc'),
    ],
) -> None:
    """What a shell needs to complete commands, options and profiles."""
    words = {"prog_name": PROGRAM, "complete_var": ASKED_BY_SHELL, "shell": shell}
    sys.stdout.write(completion.get_completion_script(**words) + "\n")  # type: ignore[attr-defined]
