"""Groups of commands that list themselves without importing a room, and import a command when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from sparkloom.cli.commands import Command


class LazyGroup(TyperGroup):
    """Help and hints come from the table; a command's own options from its function, once it is called."""

    def __init__(self, name: str, table: Iterable[Command], help: str | None = None) -> None:
        self._table = {command.name: command for command in table}
        listed = [_listed(command) for command in self._table.values()]
        super().__init__(name=name, commands=listed, help=help, no_args_is_help=True, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        command = self._table.get(name or "")
        if command is None or command.below:
            return name, listed, rest
        if command.plain:  # named behind `--`
            raise SystemExit(command.load()(rest))
        return name, _loaded(command), rest


def _listed(command: Command) -> TyperCommand | LazyGroup:
    if command.below:
        return LazyGroup(command.name, command.below, command.help)
    return TyperCommand(command.name, help=command.help, rich_markup_mode=None)


def _loaded(command: Command) -> Any:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(command.name, help=command.help)(command.load())
    return typer.main.get_command(app)
