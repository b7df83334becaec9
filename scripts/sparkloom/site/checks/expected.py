"""What a site expects of its machines before anything is done: its own settings, and what the profile needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import GB10
from sparkloom.launch.resolve import Launch

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Expected:
    """Every figure that preflight compares with; the names of the variables stand in the advice of the checks."""

    disk_path: str = "/var/lib"
    free_gib: float = 40
    store: str = ""
    weights_gib: Mapping[str, float] = field(default_factory=dict)  # by node
    driver: str = ""
    clock_seconds: float = 5
    kernels_allowed: tuple[str, ...] = ()
    memory_gib: float = GB10.free_before_load_gib


def weights(launch: Launch, cluster: Cluster) -> dict[str, float]:
    """GiB of the whole checkpoint, for every node that will hold it: each keeps all of it."""
    from sparkloom.judge import capacity

    model = launch.profile.profile.model
    size = (model.checkpoint.size_gb or 0) * 1e9 / GIB
    if not size:
        # the publisher's figure is not known: what the ranks load is the least that a checkpoint has
        figure = capacity.plan(launch, cluster).fit.memory.get("weights_gib_per_rank")
        size = float(figure.value or 0) * len(launch.ranks) if figure else 0.0
    return {rank.place.node.name: size for rank in launch.ranks}
