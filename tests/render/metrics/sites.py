"""What a Prometheus finds on a site, on loopback: supervisors themselves, the node-exporter itself, a router's page."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.onnode.rank.status_log import StatusLog
from sparkloom.render.metrics import exporter

ROUTER = """# TYPE sparkloom_router_requests_total counter
sparkloom_router_requests_total{{person="alice",model="chat",status="200"}} {n}
sparkloom_router_requests_total{{person="alice",model="chat",status="503"}} {n}
sparkloom_router_requests_total{{person="bob",model="chat",status="401"}} {n}
# TYPE sparkloom_router_prompt_tokens_total counter
sparkloom_router_prompt_tokens_total{{person="alice",model="chat"}} {n}000
# TYPE sparkloom_router_completion_tokens_total counter
sparkloom_router_completion_tokens_total{{person="alice",model="chat"}} {n}00
"""
WAKER = """# TYPE sparkloom_waker_state gauge
sparkloom_waker_state{{group="chat",model="chat",state="awake"}} 1
sparkloom_waker_state{{group="chat",model="chat",state="asleep"}} 0
sparkloom_waker_state{{group="chat",model="chat",state="failed"}} 0
# TYPE sparkloom_waker_wakings_total counter
sparkloom_waker_wakings_total{{group="chat",model="chat",result="ready"}} {n}
sparkloom_waker_wakings_total{{group="chat",model="chat",result="failed"}} {n}
# TYPE sparkloom_waker_sleeps_total counter
sparkloom_waker_sleeps_total{{group="chat",model="chat"}} {n}
sparkloom_waker_look_age_seconds 1
sparkloom_waker_waiting{{group="chat",model="chat"}} 2
sparkloom_waker_waking_seconds{{group="chat",model="chat"}} 488
sparkloom_waker_unused_seconds{{group="chat",model="chat"}} 30
"""
# In SGLang's form; the names are those of its measure.json.
ENGINE = """# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"}} 2.0
sglang:num_queue_reqs{{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"}} 1.0
sglang:token_usage{{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"}} 0.31
sglang:spec_accept_length{{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"}} 2.4
sglang:generation_tokens_total{{model_name="m"}} {n}00.0
sglang:time_to_first_token_seconds_bucket{{le="0.1",model_name="m"}} 2.0
"""


@contextmanager
def page(text: Callable[[], str], address: str = "127.0.0.1") -> Iterator[int]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.end_headers()
            self.wfile.write(text().encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((address, 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def growing(form: str) -> Callable[[], str]:
    """A counter that is asked again is higher."""
    counted = itertools.count(1)
    return lambda: form.format(n=next(counted))


def sysfs(folder: Path) -> Path:
    """Of a node with one RDMA port and one network interface, as much as the node-exporter reads."""
    port = folder / "class/infiniband/rocep1s0f0/ports/1"
    files: dict[Path, Any] = {
        port / "state": "4: ACTIVE", port / "phys_state": "5: LinkUp", port / "rate": "200 Gb/sec (4X HDR)",
        port / "link_layer": "Ethernet", port.parents[1] / "fw_ver": "28.45", port.parents[1] / "board_id": "x",
        port.parents[1] / "hca_type": "MT4129",
        **{port / "counters" / name: 1000 for name in ("port_xmit_data", "port_rcv_data", "link_downed")},
        **{folder / "class/net/enp1s0f0np0" / name: value for name, value in
           {"carrier": 1, "mtu": 9000, "speed": 200000, "operstate": "up", "flags": "0x1003", "ifindex": 2,
            "type": 1}.items()},
    }  # fmt: skip
    for file, value in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    (folder / "devices").symlink_to("/sys/devices")  # processors are this machine's
    return folder


def procfs(folder: Path) -> Path:
    """This machine's, but for memory in blocks of up to 32 MiB, as a GB10's kernel has it."""
    folder.mkdir()
    for name in ("cpuinfo", "loadavg", "meminfo", "mounts", "pressure", "self", "stat"):
        (folder / name).symlink_to(Path("/proc") / name)
    (folder / "buddyinfo").write_text(f"Node 0, zone   Normal {'      7' * 14}\n")
    return folder


def exporter_words(port: int, proc: Path, sys: Path, textfiles: Path) -> list[str]:
    """The words of the manifest, with other places."""
    (daemon_set,) = exporter.objects(_cluster(), "x:1", another=False)
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    moved = {
        "--web.listen-address": f"127.0.0.1:{port}", "--path.procfs": str(proc), "--path.sysfs": str(sys),
        "--collector.textfile.directory": str(textfiles),
    }  # fmt: skip
    keyed = [(word, word.partition("=")[0]) for word in container["args"]]
    return [f"{key}={moved[key]}" if key in moved else word for word, key in keyed]


def _cluster() -> Any:
    from sparkloom import case

    return case.cluster(None)


def wounded(folder: Path) -> StatusLog:
    """A group of two in trouble of every kind: the supervisor's own code gives its page."""
    rails = [{"name": "a", "interface": "net1", "address": "192.168.100.11", "prefix": 24, "mtu": 9000, "hca": "r0"}]
    members = [{"rank": n, "node": f"spark{n + 3}", "address": "127.0.0.1", "rails": rails} for n in range(2)]
    port = folder / "sys/infiniband/r0/ports/1"
    for name in ("counters/port_xmit_data", "counters/port_rcv_data", "hw_counters/out_of_sequence"):
        (port / name).parent.mkdir(parents=True, exist_ok=True)
        (port / name).write_text("4096\n")
    patterns = [{"rule": "nccl-socket-fallback", "severity": "error", "pattern": "x", "fix": "y"}]
    log = StatusLog(GroupPlan.of({
        "profile": "wounded", "engine": "vllm", "release": "1", "image": "i", "port": 1, "members": members,
        "run": str(folder), "sys": str(folder / "sys"), "rdma": True, "store": "/models", "patterns": patterns,
    }), 0)  # fmt: skip
    log.cause("down", "the engine ended with status 1; nccl-socket-fallback: NET/Socket; fix: rails")
    log.status |= {"engine": 7, "rails": ["rail a: net1 has no carrier"], "weights": ["weights of m: changed"],
                   "transport": "NCCL transport socket: no RDMA", "spent": 5, "took": 490.0,
                   "requests": 3.0, "moved": log.status["beat"] - 200}  # fmt: skip
    log.stopped("NCCL transport socket: no RDMA")
    return log
