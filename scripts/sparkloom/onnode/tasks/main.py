"""Runs tasks of roles on a node, one after the other, and prints what each answered."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkloom.base.errors import full
from sparkloom.onnode.task import Data, Ended, Task


def main(words: Sequence[str]) -> int:
    """The answers on a line of its own: a program's last words may stand before it."""
    try:
        asked = json.load(sys.stdin.buffer)
    except ValueError:
        print("usage: tasks < JSON, as scripts/sparkloom/site/executor.py writes it", file=sys.stderr)
        return 2
    answers = [(answer(step, check_mode=asked["check_mode"]), time.monotonic()) for step in asked["steps"]]
    end = time.monotonic()
    told = {"answers": [said for said, _ in answers], "ago": [end - given for _, given in answers]}
    print("\n" + json.dumps(told, default=str), flush=True)
    return 0


def answer(step: Mapping[str, Any], *, check_mode: bool) -> Data:
    """Of a task, or of a program of ours that is on the node; one that breaks keeps the others from nothing."""
    if "argv" in step:
        return said(step["argv"])
    try:
        does = importlib.import_module(f"sparkloom.onnode.tasks.{step['do']}").main
        paths = {name: Path(value) for name, value in step["params"].items() if does.__annotations__[name] == "Path"}
        does(Task(step["params"], check_mode=check_mode), **{**step["params"], **paths})
    except Ended as ended:
        return ended.result
    except Exception as error:
        told = full(error) or f"{type(error).__name__}: {error}"
        return {"failed": True, "msg": told, "exception": traceback.format_exc()}
    return {"failed": True, "msg": f"{step['do']} gave no answer"}


def said(argv: Sequence[str]) -> Data:
    """As Ansible's own command tells it."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except OSError as error:
        return {"failed": True, "msg": f"{argv[0]}: {error.strerror}", "rc": error.errno}
    told = {"rc": done.returncode, "stdout_lines": done.stdout.splitlines(), "changed": "changed" in done.stdout}
    return told | ({"failed": True, "msg": done.stderr.strip()[-2000:]} if done.returncode else {})
