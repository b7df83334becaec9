"""What one task of a role has on a node: its options, whether it is a dry run, and how it ends.

Ansible ships its library beside each module and the node compiles it anew each time: 0.3 s of its processor, of which
ours need these few lines. The controller has judged the options before it sends them here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

Data = dict[str, Any]


class Ended(SystemExit):
    """A task's answer, from wherever it ends."""

    def __init__(self, result: Data) -> None:
        super().__init__()
        self.result = result


class Task:
    """Named as in Ansible's `AnsibleModule`, which readers know."""

    def __init__(self, params: Mapping[str, Any], *, check_mode: bool) -> None:
        self.params, self.check_mode = params, check_mode
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def exit_json(self, **result: Any) -> NoReturn:
        self._end({"changed": False, **result})

    def fail_json(self, msg: str, **result: Any) -> NoReturn:
        self._end({"failed": True, "msg": msg, **result})

    def _end(self, result: Data) -> NoReturn:
        raise Ended(result | ({"warnings": self.warnings} if self.warnings else {}))

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
