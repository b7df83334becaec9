"""Programs that people ask an endpoint with, as their makers publish them: pinned, from the package index and npm."""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path

from testbed.base import machine, store
from testbed.base.shell import RackError, run
from testbed.base.steps import Say, Step, artefact

HERE = Path(__file__).parent
WEBUI = sys.version_info < (3, 13)  # Open WebUI refuses others
NPM = {
    "@openai/codex": "0.169.0",
    "opencode-ai": "1.18.33",
    "@anthropic-ai/claude-code": "2.1.332",
    "@modelcontextprotocol/inspector": "0.15.0",
}
NODE = 20  # npm's own packages start a program of their own; what unpacks them runs on any Node.js of these days


def python(pins: str = "python") -> Path:
    """The interpreter that has openai, anthropic and llm; of "webui" the one that has Open WebUI."""
    return _place(pins) / "venv/bin/python"


def npm(program: str) -> Path:
    return _place("npm") / "node_modules/.bin" / program


def versions() -> dict[str, str]:
    """Of each client, by its name in its index."""
    words = [word for pins in ("webui", "python") for word in (HERE / f"{pins}.txt").read_text().split()]
    pinned = dict(word.split("==") for word in words if "==" in word)
    return {**{name: pinned[name] for name in ("openai", "anthropic", "llm", "open-webui")}, **NPM}


def _place(kind: str) -> Path:
    return store.place(f"clients-{kind}", store.key_of(_inputs(kind)))


def _inputs(kind: str) -> list[store.Part]:
    npm = [f"{name}@{release}" for name, release in NPM.items()]
    made_of = npm if kind == "npm" else [HERE / f"{kind}.txt", sys.version]
    return [machine.architecture(), *made_of]


def _python(pins: str, work: Path, say: Say) -> None:
    """pip writes absolute paths into scripts alone, and only `python -m` is called here."""
    say("fetching wheels")
    run([sys.executable, "-m", "venv", "--without-pip", work / "venv"])
    into = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", work / "venv/bin/python"]
    run([*into, "install", "--only-binary=:all:", "--no-deps", "-r", HERE / f"{pins}.txt"], timeout=900)
    for script in (work / "venv/bin").iterdir():  # it becomes the artefact under another name
        if script.is_file() and not script.is_symlink() and (text := script.read_text()).startswith(f"#!{work}"):
            script.write_text(text.replace(str(work), str(_place(pins)), 1))


def _npm(work: Path, say: Say) -> None:
    if not shutil.which("npm"):
        machine.apt_install(["nodejs", "npm"], say)
    if not shutil.which("npm"):
        raise RackError(f"found no npm, expected Node.js {NODE} or newer with it: install both, then run this again")
    say("fetching packages")
    named = [f"{name}@{release}" for name, release in NPM.items()]
    quiet = ["--no-audit", "--no-fund", "--loglevel", "error", "--cache", work / "npm-cache"]
    run(["npm", "install", "--prefix", work, *quiet, *named], timeout=900)
    store.remove_tree(work / "npm-cache")


def steps() -> list[Step]:
    """Python's alone are the short form, which `make test` has."""
    webui = "fetches Open WebUI from the package index, without what reads documents and hears voices (1.0 GB on disk)"
    npm = f"fetches {', '.join(NPM)} from npm (1 GB on disk)"
    return [
        *python_steps(),
        *([_wheels("webui", webui)] if WEBUI else []),
        artefact("clients-npm", npm, lambda: _inputs("npm"), _npm),
    ]


def python_steps() -> list[Step]:
    return [_wheels("python", "fetches openai, anthropic and llm from the package index")]


def _wheels(pins: str, title: str) -> Step:
    return artefact(f"clients-{pins}", title, lambda: _inputs(pins), partial(_python, pins))
