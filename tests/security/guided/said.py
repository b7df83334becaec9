"""What engines, routers and machines answer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from sparkloom.base.errors import InputError
from sparkloom.inputs import answers
from sparkloom.measure.bench.http1 import Garbled, Response
from sparkloom.onnode import prometheus, sse
from sparkloom.onnode.now import usage
from sparkloom.onnode.now.gather import held_back
from sparkloom.onnode.rank import exposition
from sparkloom.onnode.rank.tokens import numbers
from sparkloom.onnode.waker import use
from sparkloom.site import sparks
from sparkloom.site.foreign import netplan, profiles
from sparkloom.site.k3s import access
from tests.security.guided.target import JSON_WORDS, SCRATCH, Target


def metrics(data: bytes) -> None:
    text = data.decode(errors="replace")
    found = prometheus.figures(
        data, {"vllm:num_requests_running": ("runs", "sum"), "sglang:token_usage": ("kv", "mean")}
    )
    json.dumps(found, allow_nan=False)  # a browser reads it
    exposition.labelled(text, "vllm:", 'group="g"')
    use.read(text)
    noted = usage.noted("", {"router": text}, "2026-11-27")
    usage.by_person(usage.from_day(noted, "2026-01-01"))
    numbers(text, ["vllm:num_requests_running"], ["sglang:token_usage"])
    held_back(text)


def pages() -> Iterator[bytes]:
    yield (
        b'# HELP vllm:num_requests_running x\nvllm:num_requests_running{model_name="m"} 3.0\n'
        b'vllm:group{a="b"} 1\nsglang:token_usage 0.5 1700000000\n'
    )
    yield (
        b'sparkloom_router_requests_total{person="a",model="m",status="200"} 7\n'
        b'sparkloom_router_prompt_tokens_total{person="a",model="m"} 9\n'
    )
    yield b'[{"numActiveRequests": 1, "iter": 3}]'
    yield (
        b'envoy_cluster_upstream_rq_total{envoy_cluster_name="glm"} 4\n'
        b'envoy_cluster_membership_healthy{envoy_cluster_name="glm"} 1\n'
    )


def engine(data: bytes) -> None:
    """An engine's streamed answer, in pieces as they come."""
    response, events = Response(), sse.Events()
    size = 1 + (data[0] if data else 0)
    try:
        for at in range(0, len(data), size):
            for piece in response.feed(data[at : at + size]):
                _events(events.feed(piece))
    except (Garbled, ValueError) as error:
        if not isinstance(error, Garbled) and "an event of more" not in str(error):
            raise
    response.close()
    _events(events.finish())


def _events(found: list[bytes]) -> None:
    for event in found:
        try:
            told = json.loads(event)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, dict):
            sse.error(told)
            for choice in told.get("choices") if isinstance(told.get("choices"), list) else ():
                if isinstance(choice, dict) and isinstance(choice.get("delta"), dict):
                    list(sse.texts(choice["delta"]))


def streams() -> Iterator[bytes]:
    event = b'data: {"choices": [{"delta": {"content": "x", "tool_calls": [{"function": {"arguments": "y"}}]}}]}\n\n'
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(event), event)
    yield b'HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\ndata: {"error": {"message": "m"}}\n\n    \n\n'
    yield f"HTTP/1.1 200 OK\r\nContent-Length: {'9' * 5000}\r\n\r\n".encode()
    yield b'HTTP/1.0 503 no\r\nConnection: close\r\n\r\nevent: error\ndata: x\n\nerror: {"a": 1}\n\ndata: [DONE]\n\n'


def machine(data: bytes) -> None:
    """What a machine says of itself, to `init` and to a run."""
    text = data.decode(errors="replace")
    sparks._parsed("192.0.2.1", text)
    for kind in (answers.NAME, answers.ADDRESS, answers.PCI, answers.DIGEST, answers.HOST_KEY, answers.SERIAL):
        with contextlib.suppress(InputError):
            answers.require(kind, text, "spark1")


def machines() -> Iterator[bytes]:
    yield (
        b"name spark1\nmachine-id " + b"0" * 32 + b"\nserial X1\nmachine aarch64\ngpu NVIDIA GB10\ninterface enP7s7\n"
        b"address 192.0.2.1\nhotplug armed\nport enp1s0f0np0 0x15b3 0x1021 1\n"
    )


def kubeconfig(data: bytes) -> None:
    file = SCRATCH / "kubeconfig"
    file.write_bytes(data)
    file.chmod(0o600)
    try:
        data.decode()
    except UnicodeDecodeError:
        return
    access.is_kept(str(file), "site")
    access.lasts(str(file), "anna", "https://192.0.2.1:6443")


def kubeconfigs() -> Iterator[bytes]:
    yield (
        b"apiVersion: v1\n"
        b"clusters: [{name: site, cluster: {server: 'https://192.0.2.1:6443', certificate-authority-data: "
        b"QQ==}}]\ncontexts: [{name: site, context: {}}]\n"
        b"users: [{name: site, user: {client-certificate-data: QQ==, exec: {}}}]\n"
    )


def ports(data: bytes) -> None:
    """A node's own network files."""
    unreadable: list[tuple[str, str]] = []
    text = data.decode(errors="replace")
    files = [
        {"kind": kind, "path": f"/etc/{kind}/x", "text": text, "whole": True}
        for kind in ("netplan", "NetworkManager", "networkd")
    ]
    found = list(netplan.definitions(files[:1], unreadable))
    words = profiles.sections(files[1], unreadable)
    found += [*profiles.of_network_manager(files[1], words), *profiles.of_networkd(files[2], words)]
    for one in found:
        one.covers("enp1s0f0np0", {"02:00:00:00:00:01"}, "mlx5_core")
        _ = one.addresses


def port_files() -> Iterator[bytes]:
    yield (
        b"network:\n  version: 2\n  ethernets:\n    enp1s0f0np0:\n"
        b"      match: {macaddress: '02:00:00:00:00:01', name: 'enp*', driver: mlx5_core}\n"
        b"      addresses: [192.0.2.1/24, {198.51.100.1/24: {label: x}}]\n      dhcp4: yes\n"
    )
    yield b"[connection]\nid=x\ninterface-name=enp1s0f0np0\n[ipv4]\nmethod=manual\naddress1=192.0.2.1/24,192.0.2.254\n"
    yield b"[Match]\nName=enp*\nMACAddress=02:00:00:00:00:01\n[Network]\nAddress=192.0.2.1/24\nDHCP=yes\n"


TARGETS = {
    "metrics": Target(
        metrics, pages, (), ("NaN", "+Inf", "1e999", '{person="', '"} ', "sparkloom_router_requests_total")
    ),
    "engine-answer": Target(
        engine, streams, (), ("data: ", "event: error\n", "Content-Length: ", "\r\n\r\n", *JSON_WORDS)
    ),
    "machine": Target(machine, machines, (), ("name ", "machine-id ", "port ", "gpu ", "address ")),
    "kubeconfig": Target(kubeconfig, kubeconfigs, (), ("contexts:", "users:", "&a [*a]", "<<: ")),
    "network-files": Target(ports, port_files, (), ("network:", "match:", "addresses:", "<<: *a", "&a")),
}
