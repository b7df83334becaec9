"""What goes over the virtual machines' LAN: every frame of it, as a switch's mirror port would show it."""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType

from testbed.base import vm_names

ETHERNET, IPV4, UDP = 14, b"\x08\x00", 17
SO_RCVBUFFORCE = 33  # asm-generic/socket.h; Python has no name for it
ROOM = 64 << 20  # of the socket; nothing may be lost while this process waits for a core


class Wire:
    """Listens from `with` to its end. QEMU joins the machines by a multicast group of 127.0.0.1; so does this."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        group, port = vm_names.LAN.split(":")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        self._socket.bind((group, int(port)))
        membership = socket.inet_aton(group) + socket.inet_aton("127.0.0.1")
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        self._socket.settimeout(0.5)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                self.frames.append(self._socket.recv(65536))
            except TimeoutError:
                continue

    def __enter__(self) -> Wire:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        self._socket.close()

    def holds(self, words: str) -> bool:
        return any(words.encode() in frame for frame in self.frames)

    def udp(self) -> dict[int, int]:
        """{port at either end: frames that have it}"""
        found: dict[int, int] = {}
        for frame in self.frames:
            packet = frame[ETHERNET:]
            if frame[12:ETHERNET] == IPV4 and packet[9] == UDP:
                start = 4 * (packet[0] & 15)
                for port in set(struct.unpack("!HH", packet[start : start + 4])):
                    found[port] = found.get(port, 0) + 1
        return found
