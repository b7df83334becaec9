"""NCCL's own log lines, of 2.20 and later, as facts about the process that wrote them.

A line may carry colour, a pod's name, a time or a rank in front, and two processes that write to one
pipe may tear or join each other's lines: so a line is cut at every NCCL header that stands in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from sparkloom.onnode.nccl.headers import Key, messages

_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])|\x00")
# What a line must hold to say anything here; with colours between its letters no word is one.
SPEAKS = (b"NCCL", b"nccl", b"Watchdog caught")
_SPEAKS = re.compile("NCCL|nccl|Watchdog caught")
_REPEATED, _MANY = 400, 1 << 15  # characters of a line, and lines, that are kept to be known again
_PLAIN = re.compile(
    r"(?P<host>[A-Za-z0-9][\w.-]{0,252}):(?P<pid>\d{1,18}):\d+ \[\d+\] "
    r"(?:[\w./-]{1,200}:\d+ (?:\(\w{1,99}\) )?)?NCCL INFO "
)
# How messages begin that `_kind` knows, less those that hold "comm 0x" or "NCCL ".
TELLING = (
    "Channel ", "NCCL_", "NET/", "Connected all ", "Using network ", "Bootstrap", "Failed to ", "init.cc:", "group.cc:",
    "bootstrap.cc:",
)  # fmt: skip
MOST_SAID = 1000  # warnings of a process that are kept: the first ones tell why
_EPOCH = re.compile(r"^\[rank (?P<rank>\d+) epoch (?P<epoch>\d+)\] ")  # how a rank's supervisor marks a line
_VERSION = re.compile(r"(?:^|\s)NCCL version (?P<version>\d+\.\d+\.\d+\S*)")
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

Hop = tuple[Counter[str], str]  # a rank's channels, and the one of them


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
    # Of the widest communicator that it joined: rank -> its channels over NET/IB/0, NET/Socket/0, P2P, SHM.
    ranks: dict[int, Counter[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # INFO lines that explain a choice
    failure: str | None = None  # result code of a failed call
    outside: list[str] = field(default_factory=list)  # what the program around NCCL says about it

    def talks(self) -> bool:
        """Does any channel stand?"""
        return any(self.ranks.values())


def read(lines: Iterable[str]) -> list[Process]:
    """Every process that speaks in these lines; one that starts anew under the same name replaces the old one.

    Of a rank that was started several times, the last start counts.
    """
    processes: dict[Key, Process] = {}
    starts: dict[Key, tuple[str, int]] = {}  # rank and epoch that a supervisor gave it
    hosts: dict[int, list[str]] = {}
    shared: str | None = None  # NCCL before 2.24 prints its version once, on rank 0, without a header
    outside: list[tuple[str | None, str]] = []
    parsed: dict[str, list[tuple[Key, str, str]]] = {}  # a log repeats its lines; until another process speaks
    counted: dict[str, Hop] = {}  # a channel's line -> where it counts; until anything else is said
    for line in lines:
        if hop := counted.get(line):
            hop[0][hop[1]] += 1
            continue
        said = parsed.get(line)
        if said is None:
            if not _SPEAKS.search(line) or _idle(line, processes):
                continue
            said = messages(_COLOUR.sub("", line.rstrip("\r\n")), hosts)
            if said and len(line) < _REPEATED and len(parsed) < _MANY:
                parsed[line] = said
        for key, level, message in said:
            process = processes.get(key)
            anew = process is not None and process.started and message.startswith("Bootstrap") and "Using" in message
            if process is None:
                hosts.setdefault(key[1], []).append(key[0])
                parsed.clear()
                counted.clear()
            if process is None or anew:
                process = processes[key] = Process(*key)
            hop = _take(process, level, message)
            if line.startswith(("[rank ", "\x1b")) and (mark := _EPOCH.match(_COLOUR.sub("", line))):
                start = (mark["rank"], int(mark["epoch"]))
                hop = hop if starts.get(key) == start else None
                starts[key] = start
            if hop is None or level == "WARN":
                counted.clear()
            elif len(said) == 1 and line in parsed:
                counted[line] = hop
        if said:
            continue
        text = _COLOUR.sub("", line.rstrip("\r\n"))
        if match := _VERSION.search(text):
            shared = match["version"]
        elif len(outside) < MOST_SAID and (match := _OUTSIDE.search(text)):
            outside.append((match["rank"], match["text"]))
    last = {rank: max(epoch for other, epoch in starts.values() if other == rank) for rank, _ in starts.values()}
    processes = {key: p for key, p in processes.items() if key not in starts or starts[key][1] == last[starts[key][0]]}
    for process in processes.values():
        process.version = process.version or shared
        process.outside = [text for rank, text in outside if rank is None or int(rank) in process.ranks]
    return list(processes.values())


def _idle(line: str, processes: Mapping[Key, Process]) -> bool:
    """A plain line of a known process that tells nothing: most of a long log."""
    head = _PLAIN.match(line)
    if head is None or (head["host"], int(head["pid"])) not in processes:
        return False
    end = head.end()
    return not line.startswith(TELLING, end) and not any(word in line[end:] for word in ("comm 0x", "NCCL "))


def _take(process: Process, level: str, text: str) -> Hop | None:
    """Where a channel was counted, which its next line needs not be read for; None for all else."""
    if level == "WARN" and len(process.warnings) < MOST_SAID:
        process.warnings.append(text)
    if text.startswith("Channel ") and (hop := _hop(text)):
        return _take_channel(process, *hop)
    kind, match = _kind(text)
    if kind == "asked" and match:
        process.asked[match["name"]] = match["value"]
    elif kind == "comm" and match:
        _take_comm(process, match, text)
    elif kind == "net":
        _take_net(process, text)
    elif kind == "version" and match:
        process.version = match["version"]
    elif kind == "connected":
        process.connected = True
    elif kind == "network":
        process.network = text.removeprefix("Using network ").split()[0]
    elif kind == "trace" and match:
        if match["code"] not in ("0", "7"):
            process.failure = match["code"]
    elif kind == "note" and len(process.notes) < MOST_SAID:
        process.notes.append(text)
    return None


@lru_cache(maxsize=1 << 12)
def _kind(text: str) -> tuple[str, re.Match[str] | None]:
    """What sort of message it is; the order is that of precedence."""
    if match := _ASKED.match(text):
        return "asked", match
    if "comm 0x" in text and (match := _COMM.search(text)):
        return "comm", match
    if text.startswith("NET/"):
        return "net", None
    if "NCCL version" in text and (match := _VERSION.search(text)):
        return "version", match
    if text.startswith("Connected all "):
        return "connected", None
    if text.startswith("Using network ") and text.strip() != "Using network":
        return "network", None
    if match := _TRACE.match(text):
        return "trace", match
    return ("note" if text.startswith(("Failed to open libibverbs", "Failed to initialize NET plugin")) else ""), None


def _take_comm(process: Process, match: re.Match[str], text: str) -> None:
    rank, size = int(match["rank"]), int(match["ranks"])
    if size > process.size:
        process.size, process.ranks = size, {}
    if size == process.size:
        process.ranks.setdefault(rank, Counter())
    if nodes := re.search(r"nNodes (\d+)", text):
        process.nodes = max(process.nodes or 0, int(nodes[1]))
    process.started += "Init START" in text
    process.completed += "Init COMPLETE" in text
    process.destroyed += "Destroy COMPLETE" in text
    process.aborted += "Abort COMPLETE" in text


@lru_cache(maxsize=1 << 12)
def _hop(text: str) -> tuple[int, str] | None:
    """Whose channel a message tells of, and over what."""
    match = _CHANNEL.match(text)
    if match is None:
        return None
    own = int(match["target"] if match["way"] == "receive" else match["source"])
    network, _, rest = (match["rest"] or "").partition("/")
    if match["via"] != "NET":
        return own, match["via"]
    index = re.match(r"\d+", rest)
    return own, f"NET/{network}/{index[0] if index else 0}"


def _take_channel(process: Process, own: int, via: str) -> Hop:
    ranks = process.ranks
    if own not in ranks and len(ranks) == 1:  # a smaller communicator numbers its ranks anew
        own = next(iter(ranks))
    channels = ranks.setdefault(own, Counter())
    channels[via] += 1
    return channels, via


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
