"""NCCL's own log lines, of 2.20 and later, as facts about the process that wrote them.

A line may carry colour, a pod's name, a time or a rank in front, and two processes that write to one
pipe may tear or join each other's lines: so a line is cut at every NCCL header that stands in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])|\x00")
_HEADER = re.compile(
    r"(?P<host>[A-Za-z0-9][\w.-]*):(?P<pid>\d+):(?P<tid>\d+) \[(?P<device>\d+)\] (?P<place>[\w./-]+:\d+ (?:\(\w+\) )?)?"
    r"NCCL (?P<level>INFO|WARN) "
)
_EPOCH = re.compile(r"^\[rank (?P<rank>\d+) epoch (?P<epoch>\d+)\] ")  # how a rank's supervisor marks a line
_STAMP = re.compile(r"\s*\[\d{4}-\d\d-\d\d [\d:.]+\]\s*$")
_VERSION = re.compile(r"^(?:.*\s)?NCCL version (?P<version>\d+\.\d+\.\d+\S*)")
_LISTED = re.compile(r"(?P<name>[\w.+-]+):(?P<port>\d+)/(?P<link>RoCE|IB|UNKNOWN)")
_SOCKET = re.compile(r"\[\d+\](?P<name>[^\s:]+):(?P<address>\S+)<\d+>")
_COMM = re.compile(r"comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>\d+) n[rR]anks (?P<ranks>\d+)")
_CHANNEL = re.compile(
    r"^Channel \d+(?:/\d+)? : (?P<source>\d+)\[\w+\] -> (?P<target>\d+)\[\w+\] (?:\[(?P<way>send|receive)\] )?"
    r"via (?P<via>[A-Za-z0-9]+)(?:/(?P<rest>.+))?"
)
_GID = re.compile(
    r"NET/IB: (?:\w+: )?NCCL (?:Merged)?Dev \d+ IbDev (?P<dev>\d+) Port \d+ .*?"
    r"GID (?P<index>-?\d+) \((?P<prefix>\w+)/(?P<id>\w+)\)"
)
_ASKED = re.compile(r"^(?P<name>NCCL_\w+) set (?:by environment )?to (?P<value>.*?)(?:(?<=\d)\.)?$")
_MERGED = re.compile(r"NET/IB : Made virtual device \[(?P<index>\d+)\] name=(?P<name>\S+) .*ndevs=(?P<count>\d+)")
_PLUGIN = re.compile(r"(?:Loaded net plugin|Successfully loaded external network plugin) (?P<name>\S+)")
_TRACE = re.compile(r"^(?:init|group|bootstrap)\.cc:\d+ (?:\(\w+\) )?-> (?P<code>\d+)")
_OUTSIDE = re.compile(
    r"(?:\[rank(?P<rank>\d+)\].*)?(?P<text>Watchdog caught collective operation timeout.*"
    r"|nccl(?:UnhandledCuda|System|Internal|Remote)Error: .*|ncclInvalidUsage: .*|NCCL error: .*)"
)

Key = tuple[str, int]  # host and process id


@dataclass(slots=True)
class Rank:
    """One rank of the widest communicator that a process joined."""

    number: int
    channels: Counter[str] = field(default_factory=Counter)  # NET/IB/0, NET/Socket/0, P2P, SHM


@dataclass(slots=True)
class Process:
    """Everything that one process said, in order of interest, not of time."""

    host: str
    pid: int
    version: str | None = None
    asked: dict[str, str] = field(default_factory=dict)
    devices: dict[int, tuple[str, ...]] = field(default_factory=dict)  # net device -> HCAs behind it
    links: dict[str, str] = field(default_factory=dict)  # HCA -> RoCE or IB
    sockets: dict[str, str] = field(default_factory=dict)
    gids: dict[int, tuple[int, str]] = field(default_factory=dict)
    network: str | None = None
    plugin: str = "internal"
    nodes: int | None = None
    size: int = 0
    started: int = 0
    completed: int = 0
    destroyed: int = 0
    aborted: int = 0
    connected: bool = False
    ranks: dict[int, Rank] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # INFO lines that explain a choice
    failure: str | None = None  # result code of a failed call
    outside: list[str] = field(default_factory=list)  # what the program around NCCL says about it

    def talks(self) -> bool:
        """Does any channel stand?"""
        return any(rank.channels for rank in self.ranks.values())


def read(lines: Iterable[str]) -> list[Process]:
    """Every process that speaks in these lines; one that starts anew under the same name replaces the old one.

    Of a rank that was started several times, the last start counts.
    """
    processes: dict[Key, Process] = {}
    starts: dict[Key, tuple[str, int]] = {}  # rank and epoch that a supervisor gave it
    shared: str | None = None  # NCCL before 2.24 prints its version once, on rank 0, without a header
    outside: list[tuple[str | None, str]] = []
    for line in lines:
        text = _COLOUR.sub("", line.rstrip("\r\n"))
        messages = _messages(text, processes.keys())
        for key, level, message in messages:
            process = processes.get(key)
            anew = process is not None and process.started and message.startswith("Bootstrap") and "Using" in message
            if process is None or anew:
                process = processes[key] = Process(*key)
            _take(process, level, message)
            if mark := _EPOCH.match(text):
                starts[key] = (mark["rank"], int(mark["epoch"]))
        if not messages and (match := _VERSION.match(text)):
            shared = match["version"]
        elif not messages and (match := _OUTSIDE.search(text)):
            outside.append((match["rank"], match["text"]))
    last = {rank: max(epoch for other, epoch in starts.values() if other == rank) for rank, _ in starts.values()}
    processes = {key: p for key, p in processes.items() if key not in starts or starts[key][1] == last[starts[key][0]]}
    for process in processes.values():
        process.version = process.version or shared
        process.outside = [text for rank, text in outside if rank is None or int(rank) in process.ranks]
    return list(processes.values())


def _messages(text: str, known: Collection[Key]) -> list[tuple[Key, str, str]]:
    """Who says what at which level in one line of the file."""
    cuts = []
    for header in _HEADER.finditer(text):
        host = _joined(header["host"], int(header["pid"]), known)
        cuts.append((header, host, header.start() + len(header["host"]) - len(host)))
    ends = [start for _, _, start in cuts[1:]] + [len(text)]
    return [
        ((host, int(header["pid"])), header["level"], _STAMP.sub("", text[header.end() : end]).rstrip())
        for (header, host, _), end in zip(cuts, ends, strict=False)  # no header, no message
    ]


def _joined(host: str, pid: int, known: Collection[Key]) -> str:
    """The host without the end of another line that stuck to it: `13000spark-1` is spark-1, once that is known.

    A hyphen joins the words of one name: `my-worker-1` is not worker-1.
    """
    for name, number in known:
        if number == pid and host != name and host.endswith(name) and host[-len(name) - 1] != "-":
            return name
    return host


def _take(process: Process, level: str, text: str) -> None:
    if level == "WARN":
        process.warnings.append(text)
    if match := _CHANNEL.match(text):
        _take_channel(process, match)
    elif match := _ASKED.match(text):
        process.asked[match["name"]] = match["value"]
    elif match := _COMM.search(text):
        _take_comm(process, match, text)
    elif text.startswith("NET/"):
        _take_net(process, text)
    elif match := _VERSION.match(text):
        process.version = match["version"]
    elif text.startswith("Connected all "):
        process.connected = True
    elif text.startswith("Using network "):
        process.network = text.removeprefix("Using network ").split()[0]
    elif match := _TRACE.match(text):
        if match["code"] not in ("0", "7"):
            process.failure = match["code"]
    elif text.startswith(("Failed to open libibverbs", "Failed to initialize NET plugin")):
        process.notes.append(text)


def _take_comm(process: Process, match: re.Match[str], text: str) -> None:
    rank, size = int(match["rank"]), int(match["ranks"])
    if size > process.size:
        process.size, process.ranks = size, {}
    if size == process.size:
        process.ranks.setdefault(rank, Rank(rank))
    if nodes := re.search(r"nNodes (\d+)", text):
        process.nodes = max(process.nodes or 0, int(nodes[1]))
    process.started += "Init START" in text
    process.completed += "Init COMPLETE" in text
    process.destroyed += "Destroy COMPLETE" in text
    process.aborted += "Abort COMPLETE" in text


def _take_channel(process: Process, match: re.Match[str]) -> None:
    source, target = int(match["source"]), int(match["target"])
    own = target if match["way"] == "receive" else source
    if own not in process.ranks and len(process.ranks) == 1:  # a smaller communicator numbers its ranks anew
        own = next(iter(process.ranks))
    network, _, rest = (match["rest"] or "").partition("/")
    via = match["via"]
    if via == "NET":
        index = re.match(r"\d+", rest)
        via = f"NET/{network}/{index[0] if index else 0}"
    process.ranks.setdefault(own, Rank(own)).channels[via] += 1


def _take_net(process: Process, text: str) -> None:
    if match := _GID.search(text):
        process.gids[int(match["dev"])] = (int(match["index"]), gid_address(match["prefix"], match["id"]))
    elif match := _MERGED.search(text):
        if int(match["count"]) > 1:
            process.devices[int(match["index"])] = tuple(match["name"].split("+"))
    elif text.startswith("NET/Socket : Using"):
        process.sockets |= {match["name"]: match["address"] for match in _SOCKET.finditer(text)}
    elif ": Using" in text:
        _take_devices(process, text.partition("; OOB")[0])
    elif match := _PLUGIN.search(text):
        process.plugin = match["name"]
    elif "No device found" in text or "Could not find" in text:
        process.notes.append(text)


def _take_devices(process: Process, text: str) -> None:
    """` [0]a:1/RoCE [1]b:1/RoCE`, and in 2.20 to 2.22 ` [0]={[0] a:1/RoCE, [1] b:1/RoCE}` for merged ones."""
    for index, merged, single in re.findall(r"\[(\d+)\](?:=\{(.*?)\}|([\w.+-]+:\d+/\w+))", text):
        listed = list(_LISTED.finditer(merged or single))
        process.links |= {match["name"]: match["link"] for match in listed}
        process.devices[int(index)] = tuple(match["name"] for match in listed)


def gid_address(prefix: str, identifier: str) -> str:
    """The GID as an address: NCCL prints both halves as little-endian numbers."""
    try:
        raw = int(prefix, 16).to_bytes(8, "little") + int(identifier, 16).to_bytes(8, "little")
    except (ValueError, OverflowError):
        return f"{prefix}/{identifier}"
    if raw[:12] == b"\0" * 10 + b"\xff\xff":
        return ".".join(str(byte) for byte in raw[12:])
    return ":".join(raw[at : at + 2].hex() for at in range(0, 16, 2))
