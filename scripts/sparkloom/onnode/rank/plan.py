"""What one rank is told: the whole group's plan as JSON, the same on every rank, read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

# What a rank is told in its environment: its number, the hash over all that was applied, this plan, its pod's address.
RANK, CONFIG, PLAN, ADDRESS = "SPARKLOOM_RANK", "SPARKLOOM_CONFIG", "SPARKLOOM_PLAN", "SPARKLOOM_ADDRESS"
RUN = "/tmp/sparkloom"  # of a pod: its status, and what others leave there for its supervisor
GUARD_FILE = "memory-guard.json"  # there: what the node's memory guard says of the engine that it ended
STATUS_PATH = "/status"  # of its probes: all that its supervisor says of itself


@dataclass(frozen=True)
class Rail:
    """One end of one rail, as it must look inside this pod."""

    name: str
    interface: str
    address: str
    prefix: int
    mtu: int
    hca: str


@dataclass(frozen=True)
class Member:
    rank: int
    node: str
    address: str  # where its supervisor is reached by the others
    rails: tuple[Rail, ...] = ()

    def __str__(self) -> str:
        return f"rank {self.rank} on {self.node}"


@dataclass(frozen=True)
class Limits:
    """Seconds and counts; nothing waits for ever in silence."""

    check: float = 45.0  # a cause is named after this long, and checking goes on
    start: float = 2700.0  # from the engine's start to its first token: loads take minutes, cold kernels half an hour
    stop: float = 10.0  # between TERM and KILL
    drain: float = 40.0  # for requests that run while the rank is told to go
    token: float = 60.0  # for one answer
    token_every: float = 30.0  # between questions to an engine that has nothing to do
    look: float = 10.0  # between looks at its counters
    silence: float = 100.0  # without any progress the group is started anew; with a look's 10 s below two minutes
    blind: float = 1800.0  # the same while requests run in an engine that shows no counters
    lend: float = 300.0  # for the ranks that lend memory to listen: a program start and a GPU's context
    memory: float = 120.0  # for the node's memory to come back before it is loaded again
    beat: float = 1.0
    lost: float = 10.0  # without a beat
    restarts: int = 5
    window: float = 600.0


@dataclass(frozen=True)
class GroupPlan:
    profile: str
    engine: str
    release: str
    image: str
    port: int  # the engine's API
    members: tuple[Member, ...]
    control_port: int = 0
    secret: str = ""  # file that the ranks of one group know each other by; empty where there is one rank
    probe_port: int = 0  # where the kubelet asks; 0: nowhere
    store: str = ""  # empty: nothing to check
    weights: tuple[dict[str, Any], ...] = ()  # {id, revision}
    rdma: bool = False
    gpu: bool = False  # must be there before the engine starts
    rails: int = 0  # how many NCCL must use; 0 where it has nothing to do
    nccl: str = ""  # the oldest NCCL that can serve this cabling; empty where any can
    policy: str = "refuse"  # what to do when NCCL took another way: refuse, or warn
    lends: int = 0  # port at which every other rank must listen before rank 0's engine starts; 0: none does
    programs: tuple[tuple[str, ...], ...] = ()  # names of one program in several builds: what is there is started
    generates: str = ""  # a path that answers 200 only when the engine produced a token, also under load
    metrics: str = ""  # the path of the engine's own counters
    requests: tuple[str, ...] = ()  # names there: requests that run or wait
    moves: tuple[str, ...] = ()  # and what changes while it computes
    works: tuple[str, ...] = ()  # patterns of its log that say the same
    cache: str = ""  # where kernels are kept that were compiled here
    sealed: str = ""  # and where their node keeps a copy that no engine writes
    memory_gib: float = 0.0  # what a rank's weights alone need; 0 where nobody knows
    schedulers: tuple[str, ...] = ()  # titles of the processes without which an engine only looks alive
    progress: tuple[tuple[str, str], ...] = ()  # patterns of its log, and what a start is at then
    patches: tuple[dict[str, Any], ...] = ()
    package: str = ""  # the engine's own, as Python imports it
    modules: tuple[dict[str, str], ...] = ()  # {module, flag}: what a flag needs beside it
    given: tuple[str, ...] = ()  # other files that were put into this pod
    patterns: tuple[dict[str, str], ...] = ()  # {rule, severity, pattern, fix}; noise: {severity, pattern}
    group: str = ""  # the pods' label; the profile where nothing is said
    sys: str = "/sys/class"
    run: str = RUN
    proc: str = "/proc"
    words: str = "/dev/termination-log"  # what the kubelet shows when the container has ended
    limits: Limits = field(default_factory=Limits)

    def member(self, rank: int) -> Member:
        return self.members[rank]

    @classmethod
    def read(cls, path: str | Path) -> GroupPlan:
        """From plan.json, and from the file beside it with the patterns that name causes."""
        rules = Path(path).with_name("rules.json")
        patterns = json.loads(rules.read_text()) if rules.is_file() else []
        return cls.of({"patterns": patterns, **json.loads(Path(path).read_text())})

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> GroupPlan:
        known = {entry.name for entry in fields(cls)}
        plain: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key in known
        }
        members = tuple(
            Member(told["rank"], told["node"], told["address"], tuple(Rail(**rail) for rail in told.get("rails", ())))
            for told in data["members"]
        )
        named = tuple(tuple(names) for names in data.get("programs", ()))
        known_budgets = Limits(**data.get("limits", {}))
        return cls(**{**plain, "members": members, "programs": named, "limits": known_budgets})
