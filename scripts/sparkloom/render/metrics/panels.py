"""Every panel of every dashboard: what it shows, of which series, in which unit. dashboards.py makes Grafana's JSON."""

from __future__ import annotations

from typing import Literal, NamedTuple

from sparkloom.render.metrics import series

Kind = Literal["timeseries", "stat", "table", "state-timeline"]
GROUP = 'group=~"$group"'
NODE = 'node=~"$node"'
PERSON = 'person=~"$person"'
RATE = "[$__rate_interval]"


class Panel(NamedTuple):
    title: str
    exprs: tuple[tuple[str, str], ...]  # (query, legend)
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 12  # of 24
    most: float | None = None
    help: str = ""


class Dashboard(NamedTuple):
    name: str
    title: str
    variables: tuple[tuple[str, str], ...]  # (name, query of its values)
    panels: tuple[Panel, ...]


def _rate(names: tuple[str, ...], more: str = "") -> str:
    """Of names that differ by engine: a rate of each alone, as it forgets the name."""
    return f"rate({{{_named(names)}{more}}}{RATE})"


def _named(names: tuple[str, ...]) -> str:
    return '__name__=~"' + "|".join(names) + '"'


_GENERATED, _QUEUED, _RUNNING = series.named("generated"), series.named("queued"), series.named("running")
_CACHE, _ACCEPTED = series.named("cache_usage"), series.named("accept_length")
GROUPS = ("group", "label_values(sparkloom_rank_info, group)")
NODES = ("node", "label_values(sparkloom_host_written_timestamp_seconds, node)")
PERSONS = ("person", "label_values(sparkloom_router_requests_total, person)")

# By the power of two that a block's pages are, of 4 KiB each; a GB10's go up to 32 MiB.
_LARGE = " or ".join(f'node_buddyinfo_blocks{{size="{size}"}} * {4096 << size}' for size in (12, 13))
FLEET = Dashboard("fleet", "Sparkloom: fleet", (), (
    Panel("Groups that give tokens", (('sum(sparkloom_rank_ready{rank="0"})', "ready"),
                                      ('count(sparkloom_rank_ready{rank="0"})', "all")), kind="stat", width=6),
    Panel("Tokens a second", ((f"sum({_rate(_GENERATED)})", "generated"),), kind="stat", width=6),
    Panel("Requests that wait", ((f"sum({{{_named(_QUEUED)}}})", "queued"),), kind="stat", width=6),
    Panel("Restarts in an hour", (('sum(increase(sparkloom_rank_stops_total{rank="0"}[1h]))', "stops"),), kind="stat",
          width=6),
    Panel("What each group is at", (('max by (group, phase) (sparkloom_rank_phase{rank="0"}) == 1',
          "{{group}} {{phase}}"),),
          kind="state-timeline", width=24),
    Panel("Groups on demand", (("sparkloom_waker_state == 1", "{{group}} {{state}}"),),
          kind="state-timeline", width=24),
    Panel("Requests that wait for a start", (("sparkloom_waker_waiting", "{{group}}"),
                                             ("sparkloom_waker_look_age_seconds", "seconds since the last look"))),
    Panel("Starts on demand", (("sum by (group, result) (increase(sparkloom_waker_wakings_total[1h]))",
          "{{group}} {{result}}"),
          ("sum by (group) (increase(sparkloom_waker_sleeps_total[1h]))", "{{group}} put to sleep"))),
    Panel("Tokens a second, by group", ((f"sum by (group) ({_rate(_GENERATED)})", "{{group}}"),)),
    Panel("Requests, by group", ((f"sum by (group) ({{{_named(_RUNNING)}}})", "{{group}} run"),
                                 (f"sum by (group) ({{{_named(_QUEUED)}}})", "{{group}} wait"))),
    Panel("Answers of the router, by status", ((f"sum by (status) (rate(sparkloom_router_requests_total{RATE}))",
          "{{status}}"),),
          unit="reqps"),
    Panel("Memory left on each Spark", (("sparkloom_host_memory_available_bytes", "{{node}}"),
                                       ("max(sparkloom_host_memory_floor_bytes)", "the guard's floor")), unit="bytes"),
    Panel("What stopped groups", (("sum by (group, cause) (increase(sparkloom_rank_stops_total[1h]))",
          "{{group}} {{cause}}"),)),
    Panel("Served", (("sparkloom_rank_info",
          "{{group}} rank {{rank}} on {{node}}: {{profile}}, {{engine}} {{release}}"),),
          kind="table"),
))  # fmt: skip

ONE_GROUP = Dashboard("group", "Sparkloom: one group", (GROUPS,), (
    Panel("What its ranks are at", ((f"sparkloom_rank_phase{{{GROUP}}} == 1", "rank {{rank}} {{phase}}"),),
          kind="state-timeline", width=24),
    Panel("Tokens a second", ((f"sum by (group) ({_rate(_GENERATED, ',' + GROUP)})", "{{group}}"),)),
    Panel("Requests", ((f"sum by (group) ({{{_named(_RUNNING)},{GROUP}}})", "{{group}} run"),
                       (f"sum by (group) ({{{_named(_QUEUED)},{GROUP}}})", "{{group}} wait"),
                       (f"sparkloom_rank_requests{{{GROUP}}}", "{{group}} as the supervisor saw"),
                       (f"sparkloom_rank_connections{{{GROUP}}}", "{{group}} connections"))),
    Panel("Use of the KV cache", ((f"max by (group) ({{{_named(_CACHE)},{GROUP}}})", "{{group}}"),),
          unit="percentunit", most=1),
    Panel("Tokens accepted a verification", ((f"avg by (group) ({{{_named(_ACCEPTED)},{GROUP}}})", "{{group}}"),),
          help="speculative decoding, where the engine tells"),
    Panel("Restarts", ((f"sum by (cause) (increase(sparkloom_rank_stops_total{{{GROUP}}}[1h]))", "{{cause}}"),
                       (f"max by (group) (sparkloom_rank_restart_budget_spent{{{GROUP}}})", "{{group}} budget spent"))),
    Panel("Seconds of the last start", ((f"sparkloom_rank_start_seconds{{{GROUP}}}", "rank {{rank}}"),
                                        (f"sparkloom_waker_waking_seconds{{{GROUP}}}", "from its first request")),
          unit="s"),
    Panel("Since it was last used", ((f"sparkloom_waker_unused_seconds{{{GROUP}}}", "{{group}}"),), unit="s",
          help="of a group on demand"),
    Panel("Since the engine last moved", ((f"sparkloom_rank_progress_age_seconds{{{GROUP}}}", "{{group}}"),), unit="s",
          help="100 s without any progress start the group anew (docs/supervisor.md)"),
    Panel("Supervisors last heard", ((f"sparkloom_rank_beat_age_seconds{{{GROUP}}}", "rank {{rank}}"),), unit="s"),
    Panel("Epoch", ((f"sparkloom_rank_epoch{{{GROUP}}}", "rank {{rank}}"),), kind="stat", width=6),
    Panel("Causes named now", ((f"sparkloom_rank_cause{{{GROUP}}}", "rank {{rank}} {{phase}} {{rule}}"),),
          kind="table", width=18),
))  # fmt: skip

RAILS = Dashboard("rails", "Sparkloom: rails", (GROUPS,), (
    Panel("Sent by RDMA, by rank",
          ((f'sum by (group, rank, rail) (rate(sparkloom_rank_rdma_bytes_total{{direction="sent",{GROUP}}}{RATE}))',
                                     "{{group}} rank {{rank}} rail {{rail}}"),), unit="Bps", width=24),
    Panel("Rails as planned", ((f"sparkloom_rank_rail_up{{{GROUP}}}", "{{group}} rank {{rank}} rail {{rail}}"),),
          most=1),
    Panel("The way that NCCL took", ((f"sparkloom_rank_transport{{{GROUP}}} == 1",
          "{{group}} rank {{rank}} {{transport}}"),),
          kind="state-timeline"),
    Panel("Errors of the ranks' devices",
          ((f"sum by (group, rank, error) (rate(sparkloom_rank_rdma_errors_total{{{GROUP}}}{RATE}))",
                                            "{{group}} rank {{rank}} {{error}}"),)),
    Panel("Ports of the hosts: link", (("node_network_carrier", "{{node}} {{device}}"),), most=1),
    Panel("RDMA of the hosts", ((f"rate(node_infiniband_port_data_transmitted_bytes_total{RATE})",
          "{{node}} {{device}} sent"),
                                (f"rate(node_infiniband_port_data_received_bytes_total{RATE})",
                                      "{{node}} {{device}} received")),
          unit="Bps"),
    Panel("Links that went down", (("increase(node_infiniband_link_downed_total[1h])", "{{node}} {{device}}"),)),
))  # fmt: skip

HOSTS = Dashboard("hosts", "Sparkloom: Sparks", (NODES,), (
    Panel("Memory left", ((f"sparkloom_host_memory_available_bytes{{{NODE}}}", "{{node}}"),
                          (f"max(sparkloom_host_memory_floor_bytes{{{NODE}}})", "the guard's floor")), unit="bytes"),
    Panel("Share of the time in which somebody waited for memory",
          ((f"rate(node_pressure_memory_waiting_seconds_total{RATE})", "{{node}} {{instance}} some"),
           (f"rate(node_pressure_memory_stalled_seconds_total{RATE})", "{{node}} {{instance}} all")),
                 unit="percentunit"),
    Panel("Free memory in blocks of 16 MiB and more",
          ((f"sum by (node, instance) ({_LARGE})", "{{node}} {{instance}}"),),
          unit="bytes", help="what a load finds without moving anything; preflight warns below 6.25 GiB"),
    Panel("The memory guard's stops", ((f"increase(sparkloom_host_memory_guard_stops_total{{{NODE}}}[1h])",
          "{{node}}"),)),
    Panel("GPU: power", ((f"sparkloom_gpu_power_watts{{{NODE}}}", "{{node}}"),), unit="watt"),
    Panel("GPU: clock", ((f"sparkloom_gpu_clock_hertz{{{NODE}}}", "{{node}}"),
                         (f"max(sparkloom_gpu_clock_max_hertz{{{NODE}}})", "highest")), unit="hertz"),
    Panel("GPU: temperature", ((f"sparkloom_gpu_temperature_celsius{{{NODE}}}", "{{node}}"),), unit="celsius"),
    Panel("GPU: in use", ((f"sparkloom_gpu_utilization_ratio{{{NODE}}}", "{{node}}"),), unit="percentunit", most=1),
    Panel("GPU: held back by", ((f"sparkloom_gpu_held_back{{{NODE}}} == 1", "{{node}} {{reason}}"),),
          kind="state-timeline"),
    Panel("Load", (("node_load1", "{{node}} {{instance}}"),)),
    Panel("Days until a certificate ends",
          ((f"(sparkloom_host_certificate_ends_timestamp_seconds{{{NODE}}} - time()) / 86400",
                                             "{{node}} {{certificate}}"),)),
    Panel("Models whose files changed", (("max by (group, node) (sparkloom_rank_weights_changed)",
          "{{group}} {{node}}"),)),
))  # fmt: skip

PEOPLE = Dashboard("people", "Sparkloom: people", (PERSONS,), (
    Panel("Requests a second", ((f"sum by (person, model) (rate(sparkloom_router_requests_total{{{PERSON}}}{RATE}))",
                                 "{{person}} {{model}}"),), unit="reqps"),
    Panel("Refused",
          ((f'sum by (person, status) (rate(sparkloom_router_requests_total{{status=~"4..|5..",{PERSON}}}{RATE}))',
                       "{{person}} {{status}}"),), unit="reqps"),
    Panel("Tokens of prompts a minute",
          ((f"60 * sum by (person, model) (rate(sparkloom_router_prompt_tokens_total{{{PERSON}}}{RATE}))",
                                          "{{person}} {{model}}"),)),
    Panel("Tokens of answers a minute",
          ((f"60 * sum by (person, model) (rate(sparkloom_router_completion_tokens_total{{{PERSON}}}{RATE}))",
                                          "{{person}} {{model}}"),)),
    Panel("Tokens in the time that is shown",
          ((f"sum by (person, model) (increase(sparkloom_router_completion_tokens_total{{{PERSON}}}[$__range]))",
                                                "{{person}} {{model}}"),), kind="table", width=24),
))  # fmt: skip

EVERY = (FLEET, ONE_GROUP, RAILS, HOSTS, PEOPLE)
