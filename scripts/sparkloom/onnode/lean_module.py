"""What our modules need of Ansible's `AnsibleModule`, for a node that is asked often.

Ansible ships its library beside each module and the node compiles it anew each time: 0.3 s of its processor, of which
a module of ours needs a few lines. `plugins/action/normal.py` has judged the arguments before it sends them here; this
runs a command, gives an answer, and tells a failure as Ansible expects it. Run by Ansible itself, for want of
pipelining say, the same module gets the whole library.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn


class AnsibleModule:
    given: Mapping[str, Any] = {}  # from standard input: the arguments, whether it is a dry run
    heard: list[dict[str, Any]] | None = None  # who asks several modules keeps their answers; else each is printed

    def __init__(self, argument_spec: Mapping[str, Any], supports_check_mode: bool = False) -> None:
        self.params = dict.fromkeys(argument_spec) | self.given["params"]
        self.check_mode = bool(self.given["check_mode"])
        self.warnings: list[str] = []
        if self.check_mode and not supports_check_mode:
            self.exit_json(skipped=True, msg="this module has no dry run")

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def exit_json(self, **result: Any) -> NoReturn:
        self._tell({"changed": False, **result})
        sys.exit(0)

    def fail_json(self, msg: str, **result: Any) -> NoReturn:
        self._tell({"failed": True, "msg": msg, **result})
        sys.exit(1)

    def _tell(self, result: dict[str, Any]) -> None:
        result |= {"warnings": self.warnings} if self.warnings else {}
        tell(result) if self.heard is None else self.heard.append(result)

    def run_command(self, args: Sequence[str], check_rc: bool = False) -> tuple[int, str, str]:
        command = list(args)
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        except OSError as error:
            self.fail_json(msg=f"{command[0]}: {error.strerror}", cmd=command, rc=error.errno)
        if check_rc and done.returncode:
            told = {"cmd": command, "rc": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
            self.fail_json(msg=done.stderr.rstrip() or f"{command[0]} ended with {done.returncode}", **told)
        return done.returncode, done.stdout, done.stderr


def tell(result: Mapping[str, Any]) -> None:
    """A line of its own: a program's last words may stand before it."""
    print("\n" + json.dumps(result, default=str), flush=True)


def start() -> None:
    """Runs `sparkloom_module` of the archive that this is in."""
    AnsibleModule.given = json.load(sys.stdin.buffer)
    try:
        runpy.run_module("sparkloom_module", run_name="__main__")
    except Exception as error:
        tell(broken(error))
        sys.exit(1)


def start_each() -> None:
    """Runs one module of the archive after the other, dry or not, and prints all that they answered."""
    asked = json.load(sys.stdin.buffer)
    answers = [(answer(step, check_mode=asked["check_mode"]), time.monotonic()) for step in asked["steps"]]
    end = time.monotonic()
    tell({"answers": [said for said, _ in answers], "ago": [end - given for _, given in answers]})


def answer(step: Mapping[str, Any], *, check_mode: bool) -> Mapping[str, Any]:
    """What one module says, or a program of ours that is on the node; one that breaks keeps the others from nothing."""
    if "argv" in step:
        return said(step["argv"])
    AnsibleModule.given = {"params": step["params"], "check_mode": check_mode}
    heard: list[dict[str, Any]] = []
    AnsibleModule.heard = heard
    try:
        runpy.run_module(step["module"], run_name="__main__")
    except SystemExit:
        pass
    except Exception as error:
        return broken(error)
    return heard[-1] if heard else {"failed": True, "msg": f"{step['module']} gave no answer"}


def said(argv: Sequence[str]) -> dict[str, Any]:
    """As Ansible's own command tells it."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    except OSError as error:
        return {"failed": True, "msg": f"{argv[0]}: {error.strerror}", "rc": error.errno}
    told = {"rc": done.returncode, "stdout_lines": done.stdout.splitlines(), "changed": "changed" in done.stdout}
    return told | ({"failed": True, "msg": done.stderr.strip()[-2000:]} if done.returncode else {})


def broken(error: Exception) -> dict[str, Any]:
    return {"failed": True, "msg": f"{type(error).__name__}: {error}", "exception": traceback.format_exc()}
