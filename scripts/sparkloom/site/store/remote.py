"""Talk to one node's store program: JSON in on standard input, JSON out. The program is brought when it is not there.

Its name carries its content's hash, so a node that has it is asked at once and a newer one never meets an older.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom.onnode.weights.layout import StoreError

PLACE = "/usr/local/lib/sparkloom"
Execute = Callable[[str, bytes | None], Mapping[str, Any]]  # a shell line and its input -> rc, stdout, stderr


@dataclass(frozen=True, slots=True)
class Remote:
    node: str
    execute: Execute
    program: Path

    def ask(self, command: str, asked: Mapping[str, Any] | None = None, *, bring: bool = True) -> Any:
        """Secrets in `asked` are on no command line and in no file. None when it is not there and not to be brought."""
        target = _target(self.program)
        line = f"test -f {target} || exit 66; exec python3 {target} {command}"
        data = json.dumps(asked or {}).encode()
        ran = self.execute(line, data)
        if ran["rc"] == 66:
            if not bring:
                return None
            self._send(self.program)
            ran = self.execute(line, data)
        return self._answer(ran)

    def bring(self, local: Path) -> str:
        """Where the file is on the node, sent only when it is not there yet."""
        if self.execute(f"test -f {_target(local)}", None)["rc"]:
            self._send(local)
        return _target(local)

    def _send(self, local: Path) -> None:
        """In one step, and what an older Sparkloom brought under the same name goes."""
        target, kind = _target(local), local.name.rpartition("-")[0]
        old = f"rm -f {PLACE}/{shlex.quote(kind)}-*"
        line = f"umask 022; mkdir -p {PLACE} && {old} && cat > {target}.new && mv {target}.new {target}"
        ran = self.execute(line, local.read_bytes())
        if ran["rc"]:
            words = _last(ran) or f"exit {ran['rc']}"
            raise StoreError(
                f"{self.node}: cannot write {target}: {words}; its user needs sudo (ansible_become: true in hosts.yml)"
            )

    def _answer(self, ran: Mapping[str, Any]) -> Any:
        try:
            told = json.loads(ran["stdout"])
        except ValueError:
            raise StoreError(f"{self.node}: its store program said: {_last(ran) or 'nothing'}") from None
        if "error" in told:
            raise StoreError(f"{self.node}: {told['error']}")
        return told["answer"]


def _target(local: Path) -> str:
    return f"{PLACE}/{shlex.quote(local.name)}"


def _last(ran: Mapping[str, Any]) -> str:
    lines = str(ran["stderr"] or ran["stdout"]).strip().splitlines()
    return lines[-1] if lines else ""
