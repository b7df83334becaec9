"""One group as it is to run: its member of the plan, rendered, with what a wait, a proof and a record need of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom import case
from sparkloom.base.repository import kept
from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import patience
from sparkloom.launch.groups import Placed
from sparkloom.launch.resolve import Launch
from sparkloom.render import keys
from sparkloom.render.manifests import names, pod_secrets, supervision
from sparkloom.site.checks import report
from sparkloom.site.client import Client
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

    def secrets(self, reached: Client, *, dry: bool) -> Iterator[Kept]:
        """Made once: the engine's own key first, then what the ranks know each other by. One that is usable stays.

        That of a site with one profile has no group's label: it outlives its group, and the next one has it.
        """
        name = self.engine_key
        data, labels = keys.engine_data(reached.secret(name)), {} if name == keys.SECRET else self.labels
        yield _put(reached, name, data, labels, "what the engine is asked with", dry=dry)
        if wanted := pod_secrets.wanted(self.launch):
            data = keys.group_data(reached.secret(wanted["name"]))
            yield _put(reached, wanted["name"], data, wanted["labels"], "what the ranks know each other by", dry=dry)

    def pods(self, timeout: float, restarts: int) -> ServedGroup:
        """Whom to wait for, and how long: as long as its load was measured to take, unless a site says so."""
        limit = timeout or patience.wait_seconds(self.launch.profile.profile.model.measured.load_seconds)
        read = supervision.read(self.launch, self.policy)
        return ServedGroup(self.labels, self.rendered.digest, len(self.launch.ranks), limit, restarts, read)


@dataclass(frozen=True, slots=True)
class Kept:
    """One Secret as the cluster has it now, or would have it."""

    name: str
    made: bool  # it was not there, or held something else
    drift: list[dict[str, str]]


def _put(
    reached: Client, name: str, data: dict[str, str], labels: Mapping[str, str], expected: str, *, dry: bool
) -> Kept:
    there = reached.secret(name) is not None
    made = reached.put_secret(name, data, labels=labels, dry=dry)
    return Kept(name, made, report.secret(name, there=there, differs=made, expected=expected))
