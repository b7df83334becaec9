"""What somebody should be told, as rules of Prometheus: each with its patience, one line of cause and fix, a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import yaml

from sparkloom.inputs.cluster import Cluster
from sparkloom.onnode.now.pods import HOPELESS
from sparkloom.render.metrics import series

PAGE = "docs/reference/alerts.md"
GROUP = "sparkloom"
GIB = 1 << 30
NEAR = 4 * GIB  # above the floor
SLOW_HERTZ = 1_000_000_000  # preflight_gpu_mhz: a GB10 runs at some 2400 MHz, stuck ones at 500 to 850
BUSY = 0.8  # share of use from which a clock says something
WEEKS = 14 * 86400

Urgency = Literal["critical", "warning"]


class Alert(NamedTuple):
    name: str
    urgency: Urgency  # what Prometheus calls severity
    patience: str  # Prometheus' `for`
    expr: str
    summary: str

    @property
    def runbook(self) -> str:
        return f"{PAGE}#{self.name.lower()}"


_TOKENS = f"sum by (group) (rate({series.of_engines('generated')}[5m]))"
_QUEUE = f"sum by (group) ({series.of_engines('queued')})"

ALERTS: tuple[Alert, ...] = (
    Alert(
        "SparkloomEngineDown", "critical", "2m",
        'sparkloom_rank_ready{rank="0"} == 0 unless on (group, rank) '
        'sparkloom_rank_phase{phase=~"loading|compiling|draining"} == 1',
        "{{ $labels.group }} gives no tokens and is not loading: `sparkloom status` names the cause and its fix.",
    ),
    Alert(
        "SparkloomSupervisorSilent", "critical", "3m",
        f'up{{job="{series.RANKS}"}} == 0',
        "A rank of {{ $labels.pod }} does not answer on its port for probes: its pod or its node is gone; "
        "`sparkloom doctor`.",
    ),
    Alert(
        "SparkloomStaysDown", "critical", "0m",
        f'max by (group) (sparkloom_rank_phase{{phase=~"{"|".join(sorted(HOPELESS))}"}}) == 1',
        "{{ $labels.group }} does not mend itself: do what `sparkloom status` names, then delete rank 0's pod.",
    ),
    Alert(
        "SparkloomRestartBudget", "warning", "1m",
        "max by (group) (sparkloom_rank_restart_budget_spent) >= 0.6 * max by (group) (sparkloom_rank_restart_budget)",
        "{{ $labels.group }} failed {{ $value }} times lately and stays down soon: `sparkloom logs` has the cause "
        "of each.",
    ),
    Alert(
        "SparkloomTransportFellBack", "critical", "1m",
        'sparkloom_rank_transport{transport=~"socket|roce-partial"} == 1 or '
        'increase(sparkloom_rank_stops_total{cause="transport"}[15m]) > 0',
        "{{ $labels.group }} rank {{ $labels.rank }} on {{ $labels.node }} is not on all of its rails: "
        "`sparkloom show nccl` says which way NCCL took, and why.",
    ),
    Alert(
        "SparkloomRailsCarryNothing", "critical", "5m",
        "sum by (group) (rate(sparkloom_rank_rdma_bytes_total[5m])) == 0 and on (group) "
        f"{_TOKENS} > 1",
        "{{ $labels.group }} makes tokens and its RDMA counters stand still: its ranks speak over another way; "
        "playbooks/verify.yml measures the rails.",
    ),
    Alert(
        "SparkloomRailBroken", "critical", "30s",
        "sparkloom_rank_rail_up == 0",
        "Rail {{ $labels.rail }} of {{ $labels.group }} rank {{ $labels.rank }} on {{ $labels.node }} is not as "
        "planned: "
        "`sparkloom doctor` names cable, address or device.",
    ),
    Alert(
        "SparkloomQueueGrows", "warning", "5m",
        f"min_over_time({_QUEUE}[10m:1m]) > 4 and deriv({_QUEUE}[10m:1m]) > 0",
        "Requests wait for {{ $labels.group }} and become more: people ask for more than it can do; limit keys or "
        "add a group.",
    ),
    Alert(
        "SparkloomMemoryFloorNear", "warning", "2m",
        f"sparkloom_host_memory_available_bytes < sparkloom_host_memory_floor_bytes + {NEAR}",
        "{{ $labels.node }} has {{ $value | humanize1024 }}B of memory left, near the guard's floor: lower the "
        "profile's "
        "memory fraction before the guard stops its engine.",
    ),
    Alert(
        "SparkloomMemoryGuardActed", "critical", "0m",
        "increase(sparkloom_host_memory_guard_stops_total[15m]) > 0",
        "The memory guard of {{ $labels.node }} stopped an engine: `journalctl -u sparkloom-memory-guard` there "
        "says at how much.",
    ),
    Alert(
        "SparkloomClockCapped", "warning", "10m",
        f"sparkloom_gpu_clock_hertz < {SLOW_HERTZ} and sparkloom_gpu_utilization_ratio >= {BUSY}",
        "The GPU of {{ $labels.node }} is busy at {{ $value | humanize }}Hz: its hidden slow state, or heat; off, "
        "power cable out "
        "for five minutes, on.",
    ),
    Alert(
        "SparkloomGpuHot", "warning", "5m",
        'max by (node, instance) (sparkloom_gpu_held_back{reason=~"temperature|temperature-hardware"}) == 1',
        "Heat holds the GPU of {{ $labels.node }} back: give it air.",
    ),
    Alert(
        "SparkloomWeightsDrift", "critical", "0m",
        "sparkloom_rank_weights_changed > 0",
        "Weights of {{ $labels.group }} on {{ $labels.node }} are not as they were verified, the next start would "
        "refuse them: "
        "playbooks/models.yml mends it.",
    ),
    Alert(
        "SparkloomCertificateEnds", "warning", "1h",
        f"sparkloom_host_certificate_ends_timestamp_seconds - time() < {WEEKS}",
        "A certificate ({{ $labels.certificate }}) of {{ $labels.node }} ends in {{ $value | humanizeDuration }}: "
        "playbooks/gateway.yml renews the endpoint's, a restart of K3s its own.",
    ),
    Alert(
        "SparkloomRouterRefuses", "warning", "5m",
        'sum by (model) (rate(sparkloom_router_requests_total{status=~"5.."}[5m])) > '
        "0.05 * sum by (model) (rate(sparkloom_router_requests_total[5m])) unless on (model) "
        'max by (model) (max_over_time(sparkloom_waker_state{state=~"asleep|waking|going"}[10m])) == 1',
        "The router turns requests for {{ $labels.model }} away (5xx): its engine is down or its queue full; "
        "`sparkloom status`.",
    ),
    Alert(
        "SparkloomWakingFailed", "critical", "0m",
        'max by (group) (sparkloom_waker_state{state="failed"}) == 1 or '
        'sum by (group) (increase(sparkloom_waker_wakings_total{result="failed"}[15m])) > 0',
        "{{ $labels.group }} was asked for and did not start: `sparkloom status` names the cause and its fix; "
        "another request tries again.",
    ),
    Alert(
        "SparkloomHostSilent", "warning", "5m",
        "time() - sparkloom_host_written_timestamp_seconds > 120",
        "{{ $labels.node }} writes no figures of GPU, memory and certificates: `systemctl status "
        "sparkloom-host-metrics` there.",
    ),
)  # fmt: skip


def link_down(cluster: Cluster) -> Alert | None:
    """The hosts' ports that have cables, by their names here; nothing where no cable leads anywhere."""
    ports = sorted({rail.at(node.name).pf for rail in cluster.fabric.rails for node in cluster.nodes})
    if not ports:
        return None
    return Alert(
        "SparkloomLinkDown", "critical", "30s",
        f'node_network_carrier{{device=~"{"|".join(ports)}"}} == 0',
        "Port {{ $labels.device }} of {{ $labels.node }} {{ $labels.instance }} has no link: cable or switch; "
        "playbooks/verify.yml measures it again.",
    )  # fmt: skip


def of(cluster: Cluster) -> tuple[Alert, ...]:
    down = link_down(cluster)
    return (*ALERTS, down) if down else ALERTS


def groups(alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    """As a file of rules, and as a PrometheusRule's spec, have them."""
    return [{"name": GROUP, "rules": [_rule(alert) for alert in alerts]}]


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.patience,
        "labels": {"severity": alert.urgency},
        "annotations": {"summary": alert.summary, "runbook": alert.runbook},
    }


def text(alerts: Sequence[Alert]) -> str:
    return yaml.safe_dump({"groups": groups(alerts)}, sort_keys=False, width=10_000, allow_unicode=True)
