"""Other people's programs before the rack's endpoint: what a person pastes for each, in a home with nothing in it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scripts.docs import connect_page
from testbed.beds.rack import inventory
from testbed.make import clients as programs
from tests.places import REPO
from tests.rack.running import run

ASKS = Path(__file__).with_name("asks")
SITE = str(inventory.path())
# They are to ask the rack and nobody else: what would go elsewhere ends at once, at a port where nobody is.
QUIET = {
    "TERM": "dumb", "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1",
    "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1", "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9",
}  # fmt: skip
LONGEST = 110  # characters of an outcome in the table


@dataclass(frozen=True)
class Outcome:
    client: str
    call: str
    works: bool
    said: str
    prompt: int = 0  # tokens, as the router counted them; 0 where nobody looked


def connect_lines(client: str) -> dict[str, Any]:
    done = run("sparkloom", "connect", client, "-i", SITE, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def pasted(client: str, home: Path, instead: str = "", seconds: float = 1800) -> tuple[int, str, str]:
    """Exit status and both streams of what `connect` prints, typed into bash; `instead` of its last line."""
    started = typed(client, home, instead)
    try:
        out, errors = started.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        out, errors = started.communicate()
        out += f"\nno end after {seconds:.0f} s"
    return started.returncode, out, errors


def typed(client: str, home: Path, instead: str = "") -> subprocess.Popen[str]:
    lines = connect_lines(client)
    file = f'mkdir -p "$(dirname {lines["file"]})"\ncat > {lines["file"]} <<"END"\n{lines["text"]}\nEND'
    words = ["set -e", lines["shell"], file if lines["file"] else "", instead or lines["run"]]
    folders = (programs.python().parent, programs.npm("any").parent, programs.python("webui").parent)
    path = ":".join(map(str, folders)) + ":/usr/bin:/bin"
    rack = str(urlsplit(lines["asks"]).hostname)
    env = {**QUIET, "HOME": str(home), "PATH": path, "NO_PROXY": rack}
    return subprocess.Popen(
        ["bash", "-c", "\n".join(words)], cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
    )  # fmt: skip


def sdk(client: str, home: Path, calls: Sequence[str]) -> list[Outcome]:
    """Each call of a SDK, configured as `connect` says."""
    ask = f"python3 {ASKS / f'ask_{client}.py'} {connect_lines(client)['model']} {' '.join(calls)}"
    status, out, errors = pasted(client, home, ask)
    assert status == 0, errors[-2000:]
    lines = [json.loads(line) for line in out.splitlines()]
    return [Outcome(client, line["call"], line["works"], line["said"]) for line in lines]


def program(client: str, home: Path) -> Outcome:
    before = prompts()
    status, out, errors = pasted(client, home)
    asked, said = prompts() - before, plain(out).strip()
    works = status == 0 and bool(said)
    return Outcome(client, "as pasted", works, said if works else reason(plain(f"{errors}\n{out}")), asked)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def reason(text: str) -> str:
    """The line that says why: the one about a context where there is one, else the last of what is not a warning."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "context size" in line), lines[-1] if lines else "nothing at all")


def prompts() -> int:
    """Tokens of prompts up to now, as the router counts them for its person."""
    done = run("sparkloom", "usage", "-i", SITE, "--json")
    rows = json.loads(done.stdout)["rows"] if done.returncode == 0 else []
    return sum(int(row["prompt_tokens"]) for row in rows)


def kept(outcomes: Sequence[Outcome], what: str) -> None:
    """The table of the page, as this run saw it."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=REPO, capture_output=True, text=True).stdout
    versions = {name.rpartition("/")[2]: release for name, release in programs.versions().items()}
    rows = [_row(one, versions.get({"opencode": "opencode-ai"}.get(one.client, one.client), "")) for one in outcomes]
    head = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC (commit {commit.strip()}), before {what}:"
    table = "\n".join([head, "", "| client | call | | what it said | prompt, tokens |", "|--|--|--|--|--|", *rows, ""])
    page = connect_page.PAGE.with_name("reference") / "clients.md"
    page.write_text(connect_page.put(page.read_text(), "tried", table))


def _row(one: Outcome, version: str) -> str:
    said = " ".join(re.sub(r"[|`<>]", " ", one.said).split())
    short = said if len(said) <= LONGEST else f"{said[:LONGEST]}..."
    verdict = "works" if one.works else "refused"
    return f"| {one.client} {version} | {one.call} | {verdict} | {short} | {f'{one.prompt:,}' if one.prompt else ''} |"


def shown(outcomes: Sequence[Outcome]) -> str:
    return "\n".join(json.dumps(asdict(one)) for one in outcomes)
