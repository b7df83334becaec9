"""A stand-in of the kubelet's socket for device plugins: hears a registration, asks what there is, asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

SOCKETS = Path("/var/lib/kubelet/device-plugins")
Field = tuple[int, Any]


def fields(message: bytes) -> Iterator[Field]:
    """A protocol buffer's numbers and values, without its schema."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return value

    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        else:
            size = number()
            yield tag >> 3, message[at : at + size]
            at += size


class Kubelet:
    def __init__(self) -> None:
        import grpc  # the machine's own

        self.grpc, self.registered = grpc, list[bytes]()
        SOCKETS.mkdir(parents=True, exist_ok=True)
        (SOCKETS / "kubelet.sock").unlink(missing_ok=True)
        kubelet = self

        class Handler(grpc.GenericRpcHandler):  # type: ignore[misc, name-defined]
            def service(self, details: Any) -> Any:
                if details.method == "/v1beta1.Registration/Register":
                    return grpc.unary_unary_rpc_method_handler(lambda asked, _: kubelet.registered.append(asked) or b"")
                return None

        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers((Handler(),))
        self.server.add_insecure_port(f"unix://{SOCKETS}/kubelet.sock")
        self.server.start()

    @property
    def resource(self) -> str:
        return str(dict(fields(self.registered[0]))[3].decode())

    def _channel(self) -> Any:
        return self.grpc.insecure_channel(f"unix://{SOCKETS}/{dict(fields(self.registered[0]))[2].decode()}")

    def devices(self) -> list[str]:
        stream = self._channel().unary_stream("/v1beta1.DevicePlugin/ListAndWatch")(b"", timeout=10)
        return [dict(fields(value))[1].decode() for kind, value in fields(next(iter(stream))) if kind == 1]

    def allocate(self, device: str) -> dict[str, str]:
        """The environment that a container with this device gets."""
        inner = bytes([0x0A, len(device)]) + device.encode()
        asked = bytes([0x0A, len(inner)]) + inner
        answer = self._channel().unary_unary("/v1beta1.DevicePlugin/Allocate")(asked, timeout=10)
        told: dict[str, str] = {}
        for _, container in fields(answer):
            for kind, value in fields(container):
                if kind == 1:
                    pair = dict(fields(value))
                    told[pair[1].decode()] = pair.get(2, b"").decode()
        return told
