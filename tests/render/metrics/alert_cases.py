"""A time of trouble for each alert: ten minutes all is well, half an hour it is not, then all is well again.

And times that look like it and are none. A value stands for 15 seconds.
"""

from __future__ import annotations

from typing import NamedTuple

STEP = 15  # seconds
WELL, BAD, AFTER = 40, 120, 160  # steps
GIB = 1 << 30
DAY = 86400
RANK = 'group="chat",rank="{rank}",node="spark1"'

Series = tuple[str, str]


def gauge(name: str, good: float, bad: float) -> Series:
    return name, f"{good}x{WELL} {bad}x{BAD} {good}x{AFTER}"


def counter(name: str, good: float, bad: float) -> Series:
    """By how much it grows in a step."""
    first = good * (WELL + 1)
    second = first + bad * (BAD + 1)
    return name, f"0+{good}x{WELL} {first}+{bad}x{BAD} {second}+{good}x{AFTER}"


def rank(name: str, number: int = 0, **more: str) -> str:
    own = RANK.format(rank=number)
    return f"{name}{{{own}" + "".join(f',{key}="{value}"' for key, value in more.items()) + "}"


def host(name: str, **more: str) -> str:
    return f'{name}{{node="spark1",instance="10.0.0.1:9100"' + "".join(f',{k}="{v}"' for k, v in more.items()) + "}"


def waker(name: str, **more: str) -> str:
    return f'{name}{{group="chat",model="chat"' + "".join(f',{key}="{value}"' for key, value in more.items()) + "}"


def _gone(name: str, good: float) -> Series:
    """Of a pod that ends and is made anew: it drains for a minute, then there is no such series."""
    return name, f"{good}x{WELL} {0 if good == 1 else good}x3 stale _x{BAD - 4} {good}x{AFTER}"


class Case(NamedTuple):
    alert: str
    series: tuple[Series, ...]
    within: int = 10  # minutes from the trouble's begin until it must fire
    resolved: int = 20  # and from its end until it must be over


class Near(NamedTuple):
    """It looks like it, and is none."""

    alert: str
    series: tuple[Series, ...]


CASES = (
    Case("SparkloomEngineDown", (gauge(rank("sparkloom_rank_ready"), 1, 0),
                                 gauge(rank("sparkloom_rank_phase", phase="loading"), 0, 0))),
    Case("SparkloomSupervisorSilent", (gauge('up{job="sparkloom-ranks",pod="chat-rank1-0"}', 1, 0),)),
    Case("SparkloomStaysDown", (gauge(rank("sparkloom_rank_phase", phase="down"), 0, 1),)),
    Case("SparkloomRestartBudget", (gauge(rank("sparkloom_rank_restart_budget_spent"), 0, 3),
                                    gauge(rank("sparkloom_rank_restart_budget"), 5, 5))),
    Case("SparkloomTransportFellBack", (gauge(rank("sparkloom_rank_transport", 1, transport="socket"), 0, 1),
                                        gauge(rank("sparkloom_rank_transport", 1, transport="roce"), 1, 0))),
    Case("SparkloomTransportFellBack", (gauge(rank("sparkloom_rank_transport", 1, transport="roce-partial"), 0, 1),)),
    Case("SparkloomTransportFellBack",
         ((rank("sparkloom_rank_stops_total", cause="transport"), f"0x{WELL} 1x{BAD + AFTER}"),)),
    Case("SparkloomRailsCarryNothing", (
        counter(rank("sparkloom_rank_rdma_bytes_total", rail="a", direction="sent"), 1e9, 0),
        counter(rank("sparkloom_rank_rdma_bytes_total", 1, rail="a", direction="sent"), 1e9, 0),
        counter(rank("sglang:generation_tokens_total", model_name="m"), 500, 500)), within=15),
    Case("SparkloomRailBroken", (gauge(rank("sparkloom_rank_rail_up", 1, rail="b"), 1, 0),)),
    Case("SparkloomQueueGrows", ((rank("vllm:num_requests_waiting", model_name="m"), f"0x{WELL} 0+1x{BAD} 0x{AFTER}"),),
         within=18),
    Case("SparkloomMemoryFloorNear", (gauge(host("sparkloom_host_memory_available_bytes"), 40 * GIB, 10 * GIB),
                                      gauge(host("sparkloom_host_memory_floor_bytes"), 8 * GIB, 8 * GIB))),
    Case("SparkloomMemoryGuardActed",
         ((host("sparkloom_host_memory_guard_stops_total"), f"0x{WELL} 1x{BAD + AFTER}"),)),
    Case("SparkloomDiskFills",
         (gauge(host("sparkloom_host_disk_free_bytes", folder="/var/lib"), 400 * GIB, 12 * GIB),
          gauge(host("sparkloom_host_disk_held_bytes", folder="/var/lib", holder="/var/log"), 300 * GIB, 300 * GIB))),
    Case("SparkloomClockCapped", (gauge(host("sparkloom_gpu_clock_hertz", gpu="0"), 2.4e9, 6.11e8),
                                  gauge(host("sparkloom_gpu_utilization_ratio", gpu="0"), 0.97, 0.97)), within=12),
    Case("SparkloomGpuHot", (gauge(host("sparkloom_gpu_held_back", gpu="0", reason="temperature"), 0, 1),)),
    Case("SparkloomGpuPowerHeld", (gauge(host("sparkloom_gpu_held_back", gpu="0", reason="power-cap"), 0, 1),
                                   gauge(host("sparkloom_gpu_clock_hertz", gpu="0"), 2.4e9, 1.5e9),
                                   gauge(host("sparkloom_gpu_utilization_ratio", gpu="0"), 0.97, 0.97)), within=12),
    Case("SparkloomWeightsDrift", (gauge(rank("sparkloom_rank_weights_changed"), 0, 1),)),
    Case("SparkloomCertificateEnds",
         ((host("sparkloom_host_certificate_ends_timestamp_seconds", certificate="endpoint"),
           f"{60 * DAY}x{WELL} {10 * DAY}x{3 * BAD} {60 * DAY}x{AFTER}"),), within=70, resolved=80),
    Case("SparkloomRouterRefuses", (
        counter('sparkloom_router_requests_total{person="alice",model="chat",status="200"}', 20, 20),
        counter('sparkloom_router_requests_total{person="alice",model="chat",status="503"}', 0, 10))),
    Case("SparkloomWakingFailed", (gauge(waker("sparkloom_waker_state", state="failed"), 0, 1),)),
    Case("SparkloomWakingFailed",
         ((waker("sparkloom_waker_wakings_total", result="failed"), f"0x{WELL} 1x{BAD + AFTER}"),)),
    Case("SparkloomHostSilent", ((host("sparkloom_host_written_timestamp_seconds"),
                                  f"0+15x{WELL} 600x{BAD} {15 * (WELL + BAD + 2)}+15x{AFTER}"),)),
    Case("SparkloomLinkDown", (gauge(host("node_network_carrier", device="enP2p1s0f0np0"), 1, 0),)),
)  # fmt: skip

# A group on demand that is put to sleep, and is woken by who asks.
ASLEEP = (
    _gone(rank("sparkloom_rank_ready"), 1),
    _gone('up{job="sparkloom-ranks",pod="chat-rank0-0"}', 1),
    _gone('up{job="sparkloom-ranks",pod="chat-rank1-0"}', 1),
    (rank("sparkloom_rank_rail_up", rail="a"), f"1x{WELL + 4} stale _x{BAD - 4} 1x{AFTER}"),
    _gone(rank("sglang:generation_tokens_total"), 5e6),
    _gone(rank("sparkloom_rank_restart_budget"), 5),
    (rank("sparkloom_rank_phase", phase="draining"), f"0x{WELL} 1x3 stale _x{BAD - 4} 0x{AFTER}"),
    (rank("sparkloom_rank_rdma_bytes_total"), f"0+1000x{WELL} 40000x3 stale _x{BAD - 4} 0+1000x{AFTER}"),
    (waker("sparkloom_waker_state", state="asleep"), f"0x{WELL + 4} 1x{BAD - 4} 0x{AFTER}"),
    (waker("sparkloom_waker_state", state="awake"), f"1x{WELL} 0x{BAD} 1x{AFTER}"),
    counter('sparkloom_router_requests_total{person="alice",model="chat",status="503"}', 0, 1),
)

NEAR = (
    Near("SparkloomEngineDown", (gauge(rank("sparkloom_rank_ready"), 1, 0),
                                 gauge(rank("sparkloom_rank_phase", phase="compiling"), 0, 1))),
    Near("SparkloomEngineDown", (gauge(rank("sparkloom_rank_ready", 1), 1, 0),)),
    Near("SparkloomEngineDown", ((rank("sparkloom_rank_ready"), f"1x{WELL} 0x6 1x{AFTER}"),)),
    Near("SparkloomSupervisorSilent", (gauge('up{job="somebody-else"}', 1, 0),)),
    Near("SparkloomStaysDown", (gauge(rank("sparkloom_rank_phase", phase="stopping"), 0, 1),)),
    Near("SparkloomRestartBudget", (gauge(rank("sparkloom_rank_restart_budget_spent"), 0, 2),
                                    gauge(rank("sparkloom_rank_restart_budget"), 5, 5))),
    Near("SparkloomTransportFellBack", (gauge(rank("sparkloom_rank_transport", transport="local"), 0, 1),)),
    Near("SparkloomTransportFellBack",
         ((rank("sparkloom_rank_stops_total", cause="engine-ended"), f"0x{WELL} 1x{BAD + AFTER}"),)),
    Near("SparkloomRailsCarryNothing", (counter(rank("sparkloom_rank_rdma_bytes_total"), 1e9, 0),
                                        counter(rank("sglang:generation_tokens_total"), 500, 0))),
    Near("SparkloomRailsCarryNothing", (counter(rank("llamacpp:tokens_predicted_total"), 500, 500),)),
    Near("SparkloomRailBroken", ((rank("sparkloom_rank_rail_up", rail="a"), f"1x{WELL} 0x1 1x{AFTER}"),)),
    Near("SparkloomQueueGrows", (gauge(rank("vllm:num_requests_waiting"), 50, 50),)),
    Near("SparkloomQueueGrows", ((rank("sglang:num_queue_reqs"), f"0x{WELL} 0+0.02x{BAD} 0x{AFTER}"),)),
    Near("SparkloomMemoryFloorNear", (gauge(host("sparkloom_host_memory_available_bytes"), 40 * GIB, 13 * GIB),
                                      gauge(host("sparkloom_host_memory_floor_bytes"), 8 * GIB, 8 * GIB))),
    Near("SparkloomMemoryFloorNear", (gauge(host("sparkloom_host_memory_available_bytes"), 40 * GIB, 1 * GIB),)),
    Near("SparkloomDiskFills",
         (gauge(host("sparkloom_host_disk_free_bytes", folder="/var/lib"), 400 * GIB, 30 * GIB),)),
    Near("SparkloomClockCapped", (gauge(host("sparkloom_gpu_clock_hertz", gpu="0"), 2.4e9, 2.08e8),
                                  gauge(host("sparkloom_gpu_utilization_ratio", gpu="0"), 0.97, 0))),
    Near("SparkloomGpuHot", (gauge(host("sparkloom_gpu_held_back", gpu="0", reason="power-cap"), 0, 1),)),
    Near("SparkloomCertificateEnds",
         (gauge(host("sparkloom_host_certificate_ends_timestamp_seconds", certificate="k3s"), 60 * DAY, 15 * DAY),)),
    Near("SparkloomRouterRefuses", (
        counter('sparkloom_router_requests_total{person="alice",model="chat",status="200"}', 20, 20),
        counter('sparkloom_router_requests_total{person="alice",model="chat",status="503"}', 0, 1))),
    Near("SparkloomRouterRefuses", (
        counter('sparkloom_router_requests_total{person="mallory",model="chat",status="401"}', 0, 100),)),
    Near("SparkloomRouterRefuses", (  # who asks a group on demand is told when to come again
        counter('sparkloom_router_requests_total{person="alice",model="chat",status="503"}', 0, 10),
        gauge(waker("sparkloom_waker_state", state="waking"), 0, 1))),
    Near("SparkloomWakingFailed", (
        counter(waker("sparkloom_waker_wakings_total", result="ready"), 0, 1),
        gauge(waker("sparkloom_waker_state", state="asleep"), 0, 1))),
    *(Near(name, ASLEEP) for name in (
        "SparkloomEngineDown", "SparkloomSupervisorSilent", "SparkloomStaysDown", "SparkloomRestartBudget",
        "SparkloomTransportFellBack", "SparkloomRailsCarryNothing", "SparkloomRailBroken", "SparkloomQueueGrows",
        "SparkloomWeightsDrift", "SparkloomRouterRefuses", "SparkloomWakingFailed")),
    Near("SparkloomLinkDown", (gauge(host("node_network_carrier", device="wlP9s9"), 1, 0),)),
)  # fmt: skip
