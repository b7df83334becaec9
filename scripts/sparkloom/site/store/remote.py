"""Talk to one node's store program: JSON in on standard input, JSON out. The program is brought when it is not there.

Its name carries its content's hash, so a node that has it is asked at once and a newer one never meets an older.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkloom.base.repository import WORK
from sparkloom.onnode.weights.names import StoreError
from sparkloom.render import pack

if TYPE_CHECKING:
    from sparkloom.site.ansible import Context

BUILD = WORK / ".build" / "store"
PLACE = "/usr/local/lib/sparkloom"
# The archive comes first on standard input, then the question; it is run from memory.
IN_MEMORY = """
import os, runpy, sys
size = int(sys.argv.pop(1))
file = os.memfd_create("store")
with open(file, "wb", closefd=False) as program:
    program.write(sys.stdin.buffer.read(size))
sys.argv[0] = "/proc/self/fd/%d" % file
runpy.run_path(sys.argv[0], run_name="__main__")
"""
Execute = Callable[[str, bytes | None], Mapping[str, Any]]  # a shell line and its input -> rc, stdout, stderr


@dataclass(frozen=True, slots=True)
class Remote:
    node: str
    execute: Execute
    program: Path

    @classmethod
    def of(cls, context: Context, program: str) -> Remote:
        """A task's node, and one of our programs for it."""
        return cls(context.node, context.execute, pack.program(program).keep(BUILD))

    def ask(self, command: str, asked: Mapping[str, Any] | None = None, *, bring: bool = True) -> Any:
        """Secrets in `asked` are on no command line and in no file. Without `bring` the program leaves no file either:
        a node that was filled by another version of Sparkloom is asked like any other.
        """
        target = _target(self.program)
        line = f"test -f {target} || exit 66; exec python3 {target} {command}"
        data = json.dumps(asked or {}).encode()
        if not bring:
            program = self.program.read_bytes()
            line = f"exec python3 -c {shlex.quote(IN_MEMORY)} {len(program)} {command}"
            return self._answer(self.execute(line, program + data))
        ran = self.execute(line, data)
        if ran["rc"] == 66:
            self._send(self.program)
            ran = self.execute(line, data)
        return self._answer(ran)

    def bring(self, local: Path) -> str:
        """Where the file is on the node, sent only when it is not there yet."""
        if self.execute(f"test -f {_target(local)}", None)["rc"]:
            self._send(local)
        return _target(local)

    def append(self, target: str, data: bytes) -> None:
        """A piece of a file that is too large for one."""
        ran = self.execute(f"umask 077; cat >> {shlex.quote(target)}", data)
        if ran["rc"]:
            raise StoreError(f"{self.node}: cannot write {target}: {_last(ran) or 'exit ' + str(ran['rc'])}")

    def _send(self, local: Path) -> None:
        """In one step, and what an older Sparkloom brought under the same name goes."""
        target, kind = _target(local), local.name.rpartition("-")[0]
        old = f"rm -f {PLACE}/{shlex.quote(kind)}-*"
        line = f"umask 022; mkdir -p {PLACE} && {old} && cat > {target}.new && mv {target}.new {target}"
        ran = self.execute(line, local.read_bytes())
        if ran["rc"]:
            words = _last(ran) or f"exit {ran['rc']}"
            cure = "its user needs sudo: run with -K, or without a password"
            raise StoreError(f"{self.node}: cannot write {target}: {words}; {cure}")

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
