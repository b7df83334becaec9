"""Processes from /proc: who descends from whom, what they call themselves, and their ends collected."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sparkloom.onnode import loglines
from sparkloom.onnode.host.read import sockets

PR_SET_CHILD_SUBREAPER = 36
PIDFD_GETFD = 438  # its number on every architecture
DEAD = ("Z", "X")
ESTABLISHED = "01"  # as /proc/net/tcp says it
AGAIN = 0.05


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    state: str
    born: int  # in ticks: tells a later process with the same number
    title: str
    ticks: int = 0  # of processor time that it and its ended children had
    program: str = ""  # the first word of its command

    @property
    def lives(self) -> bool:
        return self.state not in DEAD


def adopt() -> None:
    """Orphans below us become our children, as they do for process 1 of a pod."""
    if os.getpid() != 1:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def look(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    rest = stat[stat.rindex(")") + 2 :].split()
    title = f"{name} {' '.join(words).strip()}"
    return Process(pid, int(rest[1]), rest[0], int(rest[19]), title, sum(int(n) for n in rest[11:15]), words[0])


def every() -> list[Process]:
    return [p for entry in Path("/proc").iterdir() if entry.name.isdigit() and (p := look(int(entry.name)))]


def below(*pids: int) -> list[Process]:
    """All living descendants of these processes."""
    known, family, descendants = every(), set(pids), list[Process]()
    grew = True
    while grew:
        fresh = [p for p in known if p.parent in family and p.pid not in family]
        grew = bool(fresh)
        family |= {p.pid for p in fresh}
        descendants += fresh
    return [p for p in descendants if p.lives]


def titled(pid: int, titles: Iterable[str]) -> list[Process]:
    """Descendants that call themselves by one of these names."""
    wanted = tuple(titles)
    return [p for p in below(pid) if any(title in p.title for title in wanted)] if wanted else []


def same(before: Process) -> bool:
    """Does this very process still live?"""
    now = look(before.pid)
    return now is not None and now.born == before.born and now.lives


def send(pid: int, number: int, *, group: bool = False) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        (os.killpg if group else os.kill)(pid, number)


def collect() -> dict[int, int]:
    """Exit codes of all children that have ended, negative for a signal; zombies are gone after it."""
    codes: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return codes
        if pid == 0:
            return codes
        codes[pid] = os.waitstatus_to_exitcode(status)


def killed(code: int, said: Iterable[str]) -> bool:
    """By somebody else."""
    return code == -signal.SIGKILL and not any(loglines.ENDS_ITSELF.search(line) for line in said)


def described(code: int, said: Iterable[str] = ()) -> str:
    """How a process ended, with its last lines: SGLang kills itself, and nobody else is to be looked for then."""
    if code >= 0:
        return f"ended with status {code}"
    if code == -signal.SIGKILL and not killed(code, said):
        return "ended itself"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was ended by {name}" + (" (by hand, or the kernel was out of memory)" if name == "SIGKILL" else "")


def connections(port: int) -> int:
    """Open TCP connections to a port of this pod: requests that run, or clients that keep a line open."""
    return sum(1 for row in _rows(port) if row[3] == ESTABLISHED and _port(row[1]) == port)


def clients(port: int) -> int:
    """Those of them that others opened: not this process, whose questions to its engine are nobody's request.

    A question that ends between two looks at the kernel's tables looks like somebody's, so what is found is looked for
    once more.
    """
    if not (found := _others(port)):
        return 0
    time.sleep(AGAIN)
    return min(found, _others(port))


def _others(port: int) -> int:
    rows = _rows(port)
    open_now = [_port(row[2]) for row in rows if row[3] == ESTABLISHED and _port(row[1]) == port]
    if not open_now:
        return 0
    mine = {number for _, number in sockets(Path("/proc/self/fd").iterdir())}
    own = {_port(row[1]) for row in rows if _port(row[2]) == port and row[9] in mine}
    return sum(1 for other in open_now if other not in own)


def cut(port: int, client: str) -> bool:
    """The connection from `client` (ADDRESS:PORT) is shut, so that the engine takes it for one that left; False where
    there is none. The engine has the socket: this borrows it, for which the pod has SYS_PTRACE."""
    shut = False
    for row in _rows(port):
        if row[3] == ESTABLISHED and _port(row[1]) == port and _place(row[2]) == client:
            shut |= any(_shut(holder) for holder in _holders(row[9]))
    return shut


def _holders(number: str) -> list[Path]:
    """Of a socket: PID/fd/FD in /proc."""
    return [entry for entry, held in sockets(Path("/proc").glob("[0-9]*/fd/*")) if held == number]


def _shut(holder: Path) -> bool:
    with contextlib.suppress(OSError):
        process = os.pidfd_open(int(holder.parts[-3]))
        try:
            number = ctypes.CDLL(None, use_errno=True).syscall(PIDFD_GETFD, process, int(holder.name), 0)
            if number >= 0:
                with socket.socket(fileno=number) as borrowed:
                    borrowed.shutdown(socket.SHUT_RDWR)
                return True
        finally:
            os.close(process)
    return False


def _place(told: str) -> str:
    """The kernel writes an address as words of the processor's order."""
    words = told.rpartition(":")[0]
    packed = b"".join(int(words[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(words), 8))
    address = ipaddress.ip_address(packed)
    return f"{getattr(address, 'ipv4_mapped', None) or address}:{_port(told)}"


def _rows(port: int) -> list[list[str]]:
    """Of the kernel's tables, those with this port on one side."""
    told, found = f":{port:04X} ", []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            found += [row.split() for row in Path(f"/proc/net/{name}").read_text().splitlines() if told in row]
    return found


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
