"""What goes over the virtual machines' LAN: tcpdump on one of them, which sees every frame that comes or goes there."""

from __future__ import annotations

import shlex
from types import TracebackType

from testbed.base.vm_names import Machine
from testbed.beds.vm import login

CAPTURE = "/run/wire.pcap"
LISTEN = f"""rm -f {CAPTURE}
systemd-run --quiet --unit=wire tcpdump -i lan -s 0 -U --immediate-mode -Z root -w {CAPTURE}
until [ -s {CAPTURE} ]; do sleep 0.2; done"""


class Wire:
    """Listens from `with` to its end."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def __enter__(self) -> Wire:
        login.sh(self.machine, LISTEN)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        login.sh(self.machine, "sleep 1; systemctl stop wire")

    def holds(self, words: str) -> bool:
        return int(login.out(self.machine, f"grep -aFc -e {shlex.quote(words)} {CAPTURE} || true")) > 0

    def frames(self, udp: int) -> int:
        """With this UDP port at either end."""
        return int(login.out(self.machine, f"tcpdump -nr {CAPTURE} udp port {udp} 2>/dev/null | wc -l"))
