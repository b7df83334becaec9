"""Programs of other makers ask what the rack serves, told how by `sparkloom connect`: an answer, or a refusal in words.

`make test-clients` asks all and writes the table of docs/reference/clients.md. The short form, a chat and a stream
of the two SDKs, is in test_site.py, before the model that speaks.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed.base import names, steps
from testbed.beds.rack import inventory
from testbed.make import clients as programs
from tests.onnode.page.browser import PROGRAM
from tests.rack import clients, webui
from tests.rack.running import run, site_status

REAL = "smollm2-135m-instruct--llamacpp-2node"
ASKED = pytest.mark.skipif(not os.environ.get("SPARKLOOM_CLIENTS"), reason="make test-clients, or SPARKLOOM_CLIENTS=1")
CALLS = {
    "openai": ("models", "model", "chat", "stream", "include_usage", "responses", "responses_stream", "embeddings",
               "unknown_model"),
    "anthropic": ("messages", "stream", "count_tokens", "unknown_model"),
}  # fmt: skip
# Refusals that are right. Behind an agent's prompt SmolLM2 may say one line over and over: Claude Code then says that
# this found no end.
IN_WORDS = ("context size", "output token maximum")
PASTED = ("curl", "openai", "anthropic", "llm", "codex", "claude-code", "opencode")
pytestmark = [pytest.mark.rack, pytest.mark.slow]


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[list[clients.Outcome]]:
    """What serves, or SmolLM2; where all are as they should be it ends with the page written."""
    steps.perform(programs.steps())
    if not (now := site_status())["serving"]:
        built = run(".venv/bin/python", "-m", "testbed", "engine", "real", "llamacpp", "spark1", "spark2")
        assert built.returncode == 0, built.stderr[-3000:]
        done = run("ansible-playbook", "-i", str(inventory.path()), "site.yml", "-e", f"profile={REAL}")
        assert done.returncode == 0, done.stdout[-6000:]
        now = site_status()
    outcomes: list[clients.Outcome] = []
    yield outcomes
    if len(outcomes) > 20 and not request.session.testsfailed:  # all were asked
        clients.kept(outcomes, f"`{now['profile']}`")


@pytest.mark.clients
@ASKED
@pytest.mark.parametrize("client", CALLS)
def test_each_call_of_a_sdk(table: list[clients.Outcome], tmp_path: Path, client: str) -> None:
    outcomes = clients.sdk(client, tmp_path, CALLS[client])
    table += outcomes
    refused = {one.call: one.said for one in outcomes if not one.works}
    assert "served here: " in refused.pop("unknown_model") and set(refused) <= {"embeddings"}, clients.shown(outcomes)


@pytest.mark.clients
@ASKED
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["tools/list"], '"name": "diagnose"'),
        (["tools/call", "--tool-name", "status", "--tool-arg", f"inventory={inventory.path()}"], "serving"),
    ],
)
def test_mcps_inspector_lists_and_calls(table: list[clients.Outcome], asked: list[str], words: str) -> None:
    seen = run(str(programs.npm("mcp-inspector")), "--cli", ".venv/bin/sparkloom", "mcp", "--method", *asked)
    assert seen.returncode == 0 and words in seen.stdout, seen.stdout + seen.stderr


@pytest.mark.clients
@ASKED
@pytest.mark.parametrize("client", PASTED)
def test_what_is_pasted_asks(table: list[clients.Outcome], tmp_path: Path, client: str) -> None:
    outcome = clients.program(client, tmp_path)
    table.append(outcome)
    assert outcome.works or any(words in outcome.said for words in IN_WORDS), clients.shown([outcome])


@pytest.mark.clients
@ASKED
@pytest.mark.skipif(not PROGRAM, reason="no chromium here: apt-get install chromium, as make test does")
@pytest.mark.skipif(not programs.WEBUI, reason="Open WebUI wants Python 3.11 or 3.12")
def test_a_page_of_another_maker_asks(table: list[clients.Outcome], tmp_path: Path) -> None:
    outcome = webui.asked(tmp_path, "Name the capital of France.")
    table.append(outcome)
    assert outcome.works, clients.shown([outcome])


@pytest.mark.clients
@ASKED
def test_a_crowd_is_answered(table: list[clients.Outcome]) -> None:
    """200 streams at once, three times: of each 200 2 to 16 were a plain 500 or 502, with a router 8 to 37 a 503."""
    seen = Counter(said for _ in range(3) for said in _many_requests(200))
    table.append(clients.Outcome("", "200 streams at once, three times", set(seen) == {"whole"}, str(dict(seen))))
    assert seen == {"whole": 600}


def _many_requests(many: int) -> list[str]:
    lines, folder = clients.connect_lines("openai"), names.STATE / "gateway"
    host = lines["asks"].removeprefix("https://").partition("/")[0]
    body = {"model": lines["model"], "stream": True, "max_tokens": 4, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {
        "Authorization": f"Bearer {(folder / 'api-key').read_text().strip()}",
        "Content-Type": "application/json",
    }
    trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))

    def one(_: int) -> str:
        connection = http.client.HTTPSConnection(host, timeout=300, context=trust)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            return "whole" if b"[DONE]" in text else f"{answer.status} {text[:120]!r}"
        except (OSError, http.client.HTTPException) as error:
            return repr(error)
        finally:
            connection.close()

    with ThreadPoolExecutor(many) as crowd:
        return list(crowd.map(one, range(many)))
