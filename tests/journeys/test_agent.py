"""An owner's agent asks by MCP. The protocol's own client is the judge."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.journeys import sites
from tests.journeys.terminal import PROGRAMS, Terminal

LOG = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def asked(
    home: Path, *calls: tuple[str, dict[str, Any]], words: tuple[str, ...] = ()
) -> tuple[dict[str, Any], list[Any]]:
    """The tools by name, and what each call answered."""

    async def talk() -> tuple[dict[str, Any], list[Any]]:
        server = StdioServerParameters(
            command=str(PROGRAMS / "sparkloom"), args=["mcp", *words], cwd=home, env={"HOME": str(home)}
        )
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            return tools, [await session.call_tool(name, given) for name, given in calls]

    return asyncio.run(talk())


def said(answer: Any) -> Any:
    assert not answer.is_error, answer
    return json.loads(answer.content[0].text)


def test_an_agent_plans_and_asks_why_a_start_failed(home: Path) -> None:
    tools, (plan, cause, bad) = asked(
        home, ("plan", {"profile": "glm-4.7-nvfp4"}), ("diagnose", {"text": LOG}), ("plan", {"profile": "gtp-oss"})
    )
    assert {"profiles", "plan", "lint", "import", "diagnose", "status", "usage", "evidence_find"} <= set(tools)
    assert not {"up", "keys_add", "keys_revoke"} & set(tools)
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert tools["plan"].input_schema["required"] == ["profile"]
    assert said(plan)["profile"] == "nvidia--glm-4.7-nvfp4"
    assert said(cause)["matches"][0]["rule"] == "cuda-out-of-memory"
    assert bad.is_error and "gpt-oss" in bad.content[0].text


def test_a_recipe_as_text_writes_nothing(home: Path) -> None:
    _, (taken,) = asked(home, ("import", {"text": "vllm serve openai/gpt-oss-120b --tensor-parallel-size 2\n"}))
    assert said(taken)["verdict"] and list(home.iterdir()) == []


def test_no_value_becomes_an_option_and_no_word_is_made_up(home: Path) -> None:
    _, answers = asked(
        home, ("plan", {"profile": "--help"}), ("plan", {}), ("plan", {"profile": "glm", "output": "x"}), ("up", {})
    )
    assert all(answer.is_error for answer in answers)
    words = [answer.content[0].text for answer in answers]
    assert "no such profile" in words[0] and "missing: ['profile']" in words[1] and "unknown: ['output']" in words[2]
    assert "no tool 'up'" in words[3] and "diagnose" in words[3]


def test_a_change_is_shown_before_it_is_made(home: Path) -> None:
    site = str(sites.off(home))
    give = {"name": "anna", "inventory": site, "offline": True}
    tools, (shown, wrong) = asked(
        home, ("keys_add", give), ("keys_add", {**give, "confirm": "yes"}), words=("--allow-changes",)
    )
    assert not tools["keys_add"].annotations.read_only_hint and {"up", "stop", "start"} <= set(tools)
    plan = said(shown)
    assert plan["will_run"][:3] == ["sparkloom", "keys", "add"] and "anna" not in plan["before"]
    assert said(wrong)["confirm"] == plan["confirm"]
    _, (other, made) = asked(
        home,
        ("keys_add", {**give, "name": "bob", "confirm": plan["confirm"]}),
        ("keys_add", {**give, "confirm": plan["confirm"]}),
        words=("--allow-changes",),
    )
    assert "will_run" in said(other)  # a confirm is of one command alone
    assert "anna" in made.content[0].text and "sk-" in made.content[0].text


def test_a_person_who_types_it_hears_who_starts_it(terminal: Terminal) -> None:
    terminal.type("sparkloom mcp", 2).has("an agent starts this command", "claude mcp add sparkloom")
