"""Where a figure comes from: the site's records, the engine's own words, this client. What is not known says why."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.base.repository import REPO
from sparkloom.launch import engines
from sparkloom.measure.bench.http1 import Garbled
from sparkloom.measure.bench.settings import Prompts, Settings
from sparkloom.measure.bench.target import Target

SECRET = re.compile(r"key|token(?!iz|s\b|s_)|secret|passw|credential|auth", re.I)
PATHS = tuple(engine["about"] for engine in engines.measured())
ASKED_OF_A_SITE = (
    "site", "profile", "profile_hash", "config_hash", "model", "revision", "engine", "release", "image", "image_digest",
    "argv", "env", "driver", "nccl", "transport", "rails",
)  # fmt: skip
NO_SITE = "unknown, because no inventory was given (-i)"


def site(inventory: Path | None, **asked: Any) -> dict[str, Any]:
    """The site's part, by a program of its own that ends before the load begins; `asked`: what its `collect` takes."""
    if inventory is None:
        return dict.fromkeys(ASKED_OF_A_SITE, NO_SITE)
    command = [sys.executable, "-m", "sparkloom.measure.bench.site", str(inventory), json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return dict(json.loads(done.stdout))
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
    if done.returncode == 2:
        raise InputError.single("--inventory", lines[-1], rule="inventory")
    return dict.fromkeys(ASKED_OF_A_SITE, f"unknown, because the site could not be read: {lines[-1][:300]}")


def collect(target: Target, what: Settings, model: str, prompts: Prompts, asked: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in asked.items() if key not in ("bounds", "ceilings")}
    return {
        **found,
        "measured": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "url": target.url,
        "served_model": model,
        "same_model": _same(model, asked),
        "engine_says": engine(target),
        "settings": what.shown(),
        "prompts": {"file": prompts.name, "crc32": prompts.crc32},
        "sparkloom": {"version": _version(), "commit": _commit()},
    }


def engine(target: Target) -> Any:
    """What the server tells about itself, without anything that could be a secret."""
    said = []
    for path in PATHS:
        try:
            status, text = target.get(path, 5.0)
            if status == 200 and isinstance(data := json.loads(text), dict):
                return {"from": path, **_clean(data)}
            said.append(f"{path} answered {status}")
        except (OSError, Garbled, ValueError) as error:
            said.append(f"{path}: {error or type(error).__name__}")
    return f"unknown, because {'; '.join(said)}"


def _clean(data: dict[str, Any]) -> dict[str, Any]:
    """Plain values only, one level of objects; internal states and secrets stay out."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        if SECRET.search(key):
            continue
        if isinstance(value, dict) and key in ("server_args", "default_generation_settings"):
            found[key] = _clean(value)
        elif isinstance(value, str | int | float | bool) and len(str(value)) <= 500:
            found[key] = value
    return found


def _same(model: str, asked: dict[str, Any]) -> str:
    """Is what answers at the URL what the site's record tells of? Only the name can be compared."""
    argv = asked.get("argv")
    if not isinstance(argv, dict):
        return "unknown, because there is no record to compare with"
    words = [str(word) for word in argv.get("0", [])]
    names = {str(asked.get("model")), str(asked.get("asked_for"))}
    names |= {words[i + 1] for i, word in enumerate(words[:-1]) if word == "--served-model-name"}
    if model in names:
        return "yes"
    return f"no: {model} answers, the record is of {', '.join(sorted(names))}; these figures may not be the record's"


def _version() -> str:
    """From the checkout that runs: asking the installed package costs more than measuring eight streams."""
    try:
        found = re.search(r'^version = "(.+)"', (REPO / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    except OSError:
        found = None
    return found[1] if found else "unknown, because pyproject.toml is not beside the package"


def _commit() -> str:
    if not (REPO / ".git").exists():  # installed: a repository around it is not ours
        return f"unknown, because {REPO} is no checkout"
    words = ["git", "-C", str(REPO), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"unknown, because git cannot be started: {error.strerror}"
    return done.stdout.strip() if done.returncode == 0 else f"unknown, because {' '.join(done.stderr.split())[:200]}"
