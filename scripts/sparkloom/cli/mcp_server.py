"""`sparkloom mcp`: commands as tools of an agent, by the Model Context Protocol on standard input and output.

A tool is a command with `--json`, run as a person would run it. What changes a site needs `--allow-changes`, and says
what it will do before it does it: only the `confirm` of that answer makes it act.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import signal
import sys
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter

from sparkloom.base.errors import InputError
from sparkloom.cli import lazy
from sparkloom.cli.commands import COMMANDS, PROGRAM

READING = (
    "profiles", "plan", "lint", "evidence find", "evidence best", "fleet plan", "show manifests", "diagnose", "status",
    "logs", "doctor", "usage", "import",
)  # fmt: skip
# What a tool that changes something shows first.
CHANGING = {
    "up": "fleet plan", "stop": "status", "start": "status", "keys add": "keys list", "keys revoke": "keys list",
}  # fmt: skip
TEXT = ("import", "diagnose")  # their file may be standard input
NOT_ASKED = {"help", "json", "watch", "every", "follow", "output", "ask_become_pass", "force"}
ABOUT = (
    "Sparkloom serves models on NVIDIA DGX Sparks. Plan a profile before it is served; status, logs and diagnose say "
    "why a start failed. `inventory` is the site's folder."
)
CONFIRM = "the word that a call without it answers; first read what will be done"

Schema = dict[str, Any]


def mcp(
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="also offer up, stop, start and keys; each shows its plan first")
    ] = False,
) -> None:
    try:
        import mcp.server.stdio
        import mcp_types
        from mcp.server.lowlevel import Server
    except ModuleNotFoundError as missing:
        message = f"needs the package '{missing.name}': pip install 'sparkloom[mcp]'"
        raise InputError.single("sparkloom mcp", message, rule="missing-package") from None
    if sys.stdin.isatty():
        message = "is a terminal; an agent starts this command, as in: claude mcp add sparkloom -- sparkloom mcp"
        raise InputError.single("standard input", message, rule="no-agent")
    offered = (*READING, *(CHANGING if allow_changes else ()))
    named = {name.replace(" ", "_"): name for name in offered}

    async def listed(context: Any, asked: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(
            tools=[
                mcp_types.Tool(
                    name=tool,
                    description=str(_command(name).help),
                    inputSchema=schema(name),
                    annotations=mcp_types.ToolAnnotations(readOnlyHint=name in READING),
                )
                for tool, name in named.items()
            ]
        )

    async def called(context: Any, asked: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        if asked.name not in named:
            failed, text = True, f"no tool '{asked.name}'; there are: {', '.join(named)}"
        else:
            failed, text = await answer(named[asked.name], asked.arguments or {})
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(text=text)], isError=failed)

    async def serve() -> None:
        server = Server(PROGRAM, instructions=ABOUT, on_list_tools=listed, on_call_tool=called)
        async with mcp.server.stdio.stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    asyncio.run(serve())


@cache
def _command(name: str) -> Any:
    below = COMMANDS
    for word in name.split():
        found = next(command for command in below if command.name == word)
        below = found.below
    return lazy.loaded(found)


def _parameters(name: str) -> dict[str, Any]:
    """What the command takes, by the names that a person types."""
    named = {one.opts[0].lstrip("-").replace("-", "_"): one for one in _command(name).params}
    return {word: one for word, one in named.items() if word not in NOT_ASKED}


def _kind(one: Any) -> Schema:
    described = {"description": one.help} if one.help else {}
    return {**TypeAdapter(one.type_descriptor.annotation).json_schema(), **described}


def schema(name: str) -> Schema:
    """What a tool's arguments may be."""
    taken = _parameters(name)
    properties = {word: _kind(one) for word, one in taken.items()}
    needed = [word for word, one in taken.items() if one.required]
    if name in TEXT:
        properties["text"] = {"type": "string", "description": f"the text itself, in place of {needed.pop()}"}
    if name in CHANGING:
        properties["confirm"] = {"type": "string", "description": CONFIRM}
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


async def answer(name: str, given: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether it failed, and what is said."""
    takes = schema(name)
    unknown = given.keys() - takes["properties"]
    missing = [word for word in takes["required"] if word not in given]
    if unknown or missing:
        return True, f"{name}: unknown: {sorted(unknown)}, missing: {missing}"
    words = typed(name, given)
    confirm = hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]
    if name in CHANGING and given.get("confirm") != confirm:
        failed, now = await _run(typed(CHANGING[name], {key: given[key] for key in given.keys() & {"inventory"}}))
        return failed, json.dumps({"will_run": [PROGRAM, *words], "before": now, "confirm": confirm}, indent=1)
    return await _run(words, given.get("text"))


def typed(name: str, given: Mapping[str, Any]) -> list[str]:
    """The command line. A value never becomes an option: it stands behind a `=` or behind `--`."""
    options, arguments = name.split(), []
    for word, one in _parameters(name).items():
        value = given.get(word)
        values = value if isinstance(value, list) else [] if value is None else [value]
        if one.param_type_name == "argument":
            arguments += [str(each) for each in values]
        elif value is True or value is False:
            options += [one.opts[0]] * value
        else:
            options += [f"{one.opts[0]}={each}" for each in values]
    if "text" in given and not arguments:
        arguments = ["-"]
    if any(one.name == "json" for one in _command(name).params):
        options.append("--json")
    return [*options, "--", *arguments]


async def _run(words: list[str], text: str | None = None) -> tuple[bool, str]:
    """As in a shell of its own; a call that is cancelled ends as by Ctrl-C."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "sparkloom.cli", *words]
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        out, err = await process.communicate((text or "").encode())
    except asyncio.CancelledError:
        process.send_signal(signal.SIGINT)
        await process.wait()
        raise
    said = (out if out.strip() else err).decode(errors="replace")
    # A verdict that is bad is an answer all the same.
    return process.returncode not in (0, 1), said or f"exit status {process.returncode}"
