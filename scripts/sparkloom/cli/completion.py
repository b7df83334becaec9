"""What a shell needs to complete commands, options and profiles."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from typer import completion

from sparkloom.cli import commands, show


def script(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(help='for bash: eval "$(sparkloom completion bash)" in ~/.bashrc'),
    ],
) -> None:
    words = {"prog_name": commands.PROGRAM, "complete_var": commands.ASKED_BY_SHELL, "shell": shell}
    show.say(completion.get_completion_script(**words) + "\n")  # type: ignore[attr-defined]
