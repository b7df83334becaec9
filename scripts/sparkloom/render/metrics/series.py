"""Which series there are, by who gives them. Alerts and dashboards use no other (tests/render/metrics)."""

from __future__ import annotations

import re
from functools import cache

from sparkloom.launch import engines
from sparkloom.onnode.host_metrics import main as host_metrics
from sparkloom.onnode.rank import exposition
from sparkloom.onnode.waker import metrics as waker

RANKS, ENGINES, ROUTER, HOSTS = "sparkloom-ranks", "sparkloom-engines", "sparkloom-router", "sparkloom-hosts"
WAKER = "sparkloom-waker"
PEOPLE = (
    "sparkloom_router_requests_total",
    "sparkloom_router_prompt_tokens_total",
    "sparkloom_router_completion_tokens_total",
)
SELECTOR = re.compile(r"<(queued|running|generated|cache_usage|accept_length)([^<>]*)>")
# Of Prometheus itself, for each target.
SCRAPED = ("up",)
# Of the node-exporter 1.9, by collector: those that are read here.
NODE = {
    "meminfo": ("node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes", "node_memory_Cached_bytes"),
    "pressure": (
        "node_pressure_memory_waiting_seconds_total", "node_pressure_memory_stalled_seconds_total",
        "node_pressure_cpu_waiting_seconds_total", "node_pressure_io_stalled_seconds_total",
    ),
    "buddyinfo": ("node_buddyinfo_blocks",),
    "loadavg": ("node_load1",),
    "infiniband": (
        "node_infiniband_port_data_received_bytes_total", "node_infiniband_port_data_transmitted_bytes_total",
        "node_infiniband_state_id", "node_infiniband_link_downed_total",
    ),
    "netclass": ("node_network_carrier", "node_network_speed_bytes"),
}  # fmt: skip


@cache
def named(ours: str) -> tuple[str, ...]:
    """What each engine calls one of the gauges of its measure.json: `queued`, `running`, `generated`."""
    gauges = (engine["gauges"] for engine in engines.measured())
    return tuple(sorted(name for each in gauges for name, (meant, _) in each.items() if meant == ours))


def selected(expr: str) -> str:
    """A query with its selectors of engines' series spelt out: `<queued,group="a">`, whatever each engine calls it."""
    return SELECTOR.sub(lambda found: f'{{__name__=~"{"|".join(named(found[1]))}"{found[2]}}}', expr)


@cache
def known() -> frozenset[str]:
    told = (name for engine in engines.measured() for name in (*engine["gauges"], *engine["moves"]))
    node = (name for names in NODE.values() for name in names)
    return frozenset((*exposition.NAMES, *host_metrics.NAMES, *waker.NAMES, *PEOPLE, *SCRAPED, *node, *told))
