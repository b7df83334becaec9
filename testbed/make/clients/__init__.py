"""Programs that people ask an endpoint with, as their makers publish them: pinned, from the package index and npm."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from testbed.base import machine, store
from testbed.base.shell import RackError, run
from testbed.base.steps import Say, Step, artefact

PINS = Path(__file__).with_name("python.txt")
NPM = {"@openai/codex": "0.169.0", "opencode-ai": "1.18.33", "@anthropic-ai/claude-code": "2.1.332"}
NODE = 20  # npm's own packages start a program of their own; what unpacks them runs on any Node.js of these days


def python() -> Path:
    """The interpreter that has openai, anthropic and llm."""
    return _place("python") / "venv/bin/python"


def npm(program: str) -> Path:
    return _place("npm") / "node_modules/.bin" / program


def versions() -> dict[str, str]:
    """Of each client, by its name in its index."""
    pinned = dict(line.split("==") for line in PINS.read_text().split() if "==" in line)
    return {**{name: pinned[name] for name in ("openai", "anthropic", "llm")}, **NPM}


def _place(kind: str) -> Path:
    return store.place(f"clients-{kind}", store.key_of(_inputs(kind)))


def _inputs(kind: str) -> list[store.Part]:
    made_of = [PINS, sys.version] if kind == "python" else [f"{name}@{release}" for name, release in NPM.items()]
    return [machine.architecture(), *made_of]


def _python(work: Path, say: Say) -> None:
    """pip writes absolute paths into scripts alone, and only `python -m` is called here."""
    say("fetching wheels")
    run([sys.executable, "-m", "venv", "--without-pip", work / "venv"])
    into = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", work / "venv/bin/python"]
    run([*into, "install", "--only-binary=:all:", "--no-deps", "-r", PINS], timeout=900)
    for script in (work / "venv/bin").iterdir():  # it becomes the artefact under another name
        if script.is_file() and not script.is_symlink() and (text := script.read_text()).startswith(f"#!{work}"):
            script.write_text(text.replace(str(work), str(_place("python")), 1))


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
    return [*python_steps(), artefact("clients-npm", f"fetches {', '.join(NPM)} from npm (1 GB on disk)",
                                      lambda: _inputs("npm"), _npm)]  # fmt: skip


def python_steps() -> list[Step]:
    title = "fetches openai, anthropic and llm from the package index"
    return [artefact("clients-python", title, lambda: _inputs("python"), _python)]
