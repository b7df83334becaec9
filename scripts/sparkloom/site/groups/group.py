"""One group as it is to run: its member of the plan, rendered, with what a wait, a proof and a record need of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base.repository import kept
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import patience
from sparkloom.launch.groups import Placed
from sparkloom.launch.resolve import Launch
from sparkloom.render.manifests import names, pod_secrets, supervision
from sparkloom.site.groups.waiting import ServedGroup


@dataclass(frozen=True, slots=True)
class RenderedGroup:
    rendered: case.Rendered
    policy: str

    @classmethod
    def of(cls, member: Mapping[str, Any], cluster: Cluster, policy: str, *, force: bool) -> RenderedGroup:
        seat = Placed.of(member["seat"])
        return cls(case.render(member["profile"], cluster, seat=seat, force=force, policy=policy), policy)

    @property
    def launch(self) -> Launch:
        return self.rendered.case.launch

    @property
    def name(self) -> str:
        """What is kept is named by it: a profile may be given by its path."""
        return self.launch.group

    @property
    def profile(self) -> str:
        return self.launch.profile.name

    @property
    def labels(self) -> dict[str, str]:
        return names.selector(self.launch)

    @property
    def label(self) -> str:
        return self.labels[names.PROFILE]

    @property
    def engine_key(self) -> str:
        return pod_secrets.engine_key(self.launch)

    @property
    def folder(self) -> Path:
        return kept(self.rendered.case.cluster.name)

    def record(self) -> dict[str, str]:
        """What its record says of it."""
        launch = self.launch
        return {
            "profile": self.profile,
            "model": launch.profile.profile.model.id,
            "engine": launch.engine,
            "release": launch.release,
            "image": launch.image,
        }

    def pods(self, timeout: float, restarts: int) -> ServedGroup:
        """Whom to wait for, and how long: as long as its load was measured to take, unless a site says so."""
        limit = timeout or patience.wait_seconds(self.launch.profile.profile.model.measured.load_seconds)
        read = supervision.read(self.launch, self.policy)
        return ServedGroup(self.labels, self.rendered.digest, len(self.launch.ranks), limit, restarts, read)
