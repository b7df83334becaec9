"""Which transport NCCL really took, per rank, and why: a verdict over its INFO logs.

GPUs look busy over sockets too, so only NCCL's own words count: the transport of each channel, the devices
that it opened, and what it was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from sparkloom.base.errors import InputError
from sparkloom.onnode import textlog
from sparkloom.onnode.nccl import lines
from sparkloom.onnode.nccl import why as reasons
from sparkloom.onnode.nccl.lines import Process

Transport = Literal["roce", "roce-partial", "socket", "local", "failed"]
WORST: dict[Transport, int] = {"failed": 0, "socket": 1, "roce-partial": 2, "roce": 3, "local": 4}


@dataclass(slots=True)
class RankReport:
    rank: int | None
    host: str
    pid: int
    verdict: Transport
    why: str
    transport: str
    channels: dict[str, int]
    hcas: list[str]
    opened: list[str]
    gid: int | list[int] | None
    gids: list[dict[str, Any]]
    nccl_version: str | None
    plugin: str
    asked: dict[str, str]


@dataclass(slots=True)
class Report:
    verdict: Transport
    why: str
    ranks: list[RankReport]
    rails_planned: int
    size: int = 0
    nodes: int | None = None
    missing_ranks: list[int] = field(default_factory=list)
    planned_nodes: int | None = None

    @property
    def good(self) -> bool:
        """RoCE over every planned rail, or no network at all where one node was planned."""
        return self.verdict == "roce" or (self.verdict == "local" and self.planned_nodes == 1)

    def as_dict(self) -> dict[str, Any]:
        told = asdict(self)
        del told["planned_nodes"]
        return told


def read_files(files: Sequence[Path], *, rails: int = 2, nodes: int | None = None) -> Report:
    """Verdict over log files; `-` is standard input."""
    processes: list[Process] = []
    for file in files:
        spoken = lines.read(textlog.lines(file, lines.SPEAKS))
        if not spoken:
            message = "no line of NCCL in it; run with NCCL_DEBUG=INFO (profile: env.NCCL_DEBUG) and give that log"
            raise InputError.single(str(file), message, rule="no-nccl-lines")
        processes += spoken
    return judge(processes, rails=rails, nodes=nodes)


def read_text(text: str, *, rails: int = 2, nodes: int | None = None) -> Report:
    return judge(lines.read(text.splitlines()), rails=rails, nodes=nodes)


def judge(processes: Sequence[Process], *, rails: int = 2, nodes: int | None = None) -> Report:
    """One report over all ranks that speak in the logs; the worst rank decides."""
    ranks = []
    for process in processes:
        ranks += [_rank(process, number, rails) for number in tuple(sorted(process.ranks)) or (None,)]
    _mark_vanished(processes, ranks)
    ranks.sort(key=lambda rank: (rank.rank is None, rank.rank or 0, rank.host, rank.pid))
    size = max((process.size for process in processes), default=0)
    known = {rank.rank for rank in ranks}
    missing = [number for number in range(size) if number not in known]
    verdict: Transport = min((rank.verdict for rank in ranks), key=WORST.__getitem__, default="failed")
    seen = max((process.nodes for process in processes if process.nodes), default=None)
    return Report(verdict, _summary(verdict, ranks, missing), ranks, rails, size, seen, missing, nodes)


def _mark_vanished(processes: Sequence[Process], ranks: list[RankReport]) -> None:
    """A rank whose words just end while others give up was killed: it leaves no error of its own."""
    if not any(process.aborted for process in processes):
        return
    gone = {(p.host, p.pid) for p in processes if p.completed and not (p.aborted or p.destroyed)}
    for rank in ranks:
        if (rank.host, rank.pid) in gone and rank.verdict != "failed":
            rank.verdict, rank.why = "failed", "its words end while other ranks abort: it was killed, or hangs"


def _summary(verdict: Transport, ranks: list[RankReport], missing: list[int]) -> str:
    guilty = [rank for rank in ranks if rank.verdict == verdict]
    reasons = Counter(rank.why for rank in guilty)
    who = "every rank" if len(guilty) == len(ranks) else "rank " + ", ".join(_named(rank) for rank in guilty)
    text = f"{who}: {reasons.most_common(1)[0][0]}" if reasons else "no rank speaks in the log"
    if missing:
        text += f"; nothing in the log from rank {', '.join(map(str, missing))}: add the other pods' logs"
    return text


def _named(rank: RankReport) -> str:
    return f"{rank.host}:{rank.pid}" if rank.rank is None else f"{rank.rank} ({rank.host})"


def _rank(process: Process, number: int | None, rails: int) -> RankReport:
    channels = Counter[str]() if number is None else process.ranks[number]
    used = _used(process, channels)
    verdict, why = _verdict(process, channels, used, rails)
    gids: list[dict[str, Any]] = [
        {"hca": next(iter(process.devices.get(device, ())), None), "index": index, "address": address}
        for device, (index, address) in sorted(process.gids.items())
    ]
    indices = sorted({index for index, _ in process.gids.values()})
    asked_gid = process.asked.get("NCCL_IB_GID_INDEX", "")
    if not indices and asked_gid.lstrip("-").isdigit():
        indices = [int(asked_gid)]
    return RankReport(
        rank=number,
        host=process.host,
        pid=process.pid,
        verdict=verdict,
        why=why,
        transport=_transport(process, channels),
        channels=dict(sorted(channels.items())),
        hcas=used,
        opened=list(process.links),
        gid=indices[0] if len(indices) == 1 else (indices or None),
        gids=gids,
        nccl_version=process.version,
        plugin=process.plugin,
        asked=process.asked,
    )


def _used(process: Process, channels: Counter[str]) -> list[str]:
    """HCAs behind the network devices of the channels; a device beyond the listed ones is merged from all."""
    numbers = {int(name.rsplit("/", 1)[1]) for name in channels if name.startswith("NET/") and "/Socket/" not in name}
    if not process.links:  # the head of the log is missing
        return [f"device {number}" for number in sorted(numbers)]
    hcas = {name for number in numbers for name in process.devices.get(number) or tuple(process.links)}
    return [name for name in process.links if name in hcas]


def _transport(process: Process, channels: Counter[str]) -> str:
    """`NET/IB`, `NET/Socket`, `P2P`, `SHM`, several joined by `+`, or what was chosen before any channel stood."""
    kinds = {"/".join(name.split("/")[:2]) for name in channels}
    if kinds:
        return "+".join(sorted(kinds))
    return f"NET/{process.network}" if process.network and process.nodes != 1 else "none"


def _verdict(process: Process, channels: Counter[str], used: list[str], rails: int) -> tuple[Transport, str]:
    failed = reasons.failure(process)
    if failed:
        return "failed", failed
    networks = {name.split("/")[1] for name in channels if name.startswith("NET/")}
    if "Socket" in networks:
        return "socket", reasons.sockets(process)
    if networks:
        return _roce(process, used, rails)
    if channels or process.size == 1:
        return "local", "all channels stay inside this machine" if channels else "a single rank talks to nobody"
    return _unproven(process, rails)


def _roce(process: Process, used: list[str], rails: int) -> tuple[Transport, str]:
    kind = "/".join(sorted({process.links.get(name, "RDMA") for name in used}))
    if len(used) >= rails:
        local = any(address.startswith("fe80") for _, address in process.gids.values())
        doubt = "; its GID is link-local: the VF has no IPv4 address, so this works inside one subnet at best"
        return "roce", f"{kind} over {', '.join(used)}{doubt if local else ''}"
    if process.started and not process.connected and len(process.links) >= rails:
        return "roce", f"{kind} over {', '.join(used)} so far: the log ends while channels are set up"
    return "roce-partial", reasons.partial(process, used, rails)


def _unproven(process: Process, rails: int) -> tuple[Transport, str]:
    """No channel in the log: NCCL opens them at the first collective, or the log was cut or filtered."""
    if process.nodes == 1:
        return "local", "one node only, and no channel to another one"
    if process.network == "Socket":
        return "socket", reasons.sockets(process)
    if process.network and process.links:
        verdict, why = _roce(process, list(process.links), rails)
        return verdict, f"{why}: opened, but no channel stands in the log yet"
    return "failed", reasons.silence(process)
