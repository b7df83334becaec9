"""What the command line and the Ansible adapters call: a profile's name and an inventory in, plain data out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkloom.base.assumption import Assumption
from sparkloom.base.errors import InputError
from sparkloom.base.errors import Refused as Refused  # what `render` raises, for whoever calls it
from sparkloom.base.finding import Finding, errors, ranked
from sparkloom.inputs import inventory as inventories
from sparkloom.inputs import profile as profiles
from sparkloom.inputs import site_memory
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import fabric as fabrics
from sparkloom.launch import fleet_record
from sparkloom.launch.groups import Placed
from sparkloom.launch.resolve import Launch, Rank, resolve
from sparkloom.launch.values import EnvVar, Setting

if TYPE_CHECKING:  # who only renders loads no capacity
    from sparkloom.judge.capacity.verdict import Asked
    from sparkloom.judge.fleet import FleetPlan

Given = str | Path | Mapping[str, Any] | None  # an inventory's folder, or Ansible's variables
Inventory = Given | Cluster
Runs = Mapping[str, Placed] | None  # what a cluster was asked for
POLICY = "refuse"  # of a site that says nothing else: model_serving_transport


@dataclass(frozen=True, slots=True)
class Case:
    """One profile on one cluster, resolved and judged."""

    cluster: Cluster
    launch: Launch
    findings: list[Finding]
    assumed: list[Assumption]

    @property
    def errors(self) -> list[Finding]:
        return errors(self.findings)


@dataclass(frozen=True, slots=True)
class HandedOut:
    """An export, and what a pod does for the launch that it does not."""

    case: Case
    text: str
    not_carried: list[str]


@dataclass(frozen=True, slots=True)
class Rendered:
    """What is applied for a case, in that order, and the hash of it that every rank's pod carries."""

    case: Case
    objects: list[dict[str, Any]]
    digest: str


def cluster(inventory: Inventory = None) -> Cluster:
    """Cluster from an inventory folder, from variables that Ansible resolved, or the shipped example."""
    if isinstance(inventory, Cluster):
        return inventory
    return inventories.from_vars(inventory) if isinstance(inventory, Mapping) else inventories.load(inventory)


def judge(
    profile: str | LoadedProfile,
    inventory: Inventory = None,
    *,
    overrides: Iterable[str] = (),
    release: str | None = None,
    seat: Placed | None = None,
) -> Case:
    """Loads, resolves and judges one profile; with a seat, which a plan gave it, as that group of a fleet."""
    from sparkloom.judge import assumptions, fits, flags, profile_status, rules

    loaded = profile
    if isinstance(loaded, str):
        loaded = profiles.load(loaded, overrides=seat.overrides if seat else overrides)
    flags.require_known(loaded)
    target = seat.site(cluster(inventory)) if seat else cluster(inventory)
    launch = resolve(loaded, target, release=release, seat=seat)
    sparks = measured(target, launch)
    findings = [
        *flags.check(launch),
        *rules.check(launch, sparks),
        # whether a group fits beside others, its plan has judged
        *(() if seat else fits.check(launch, target, sparks)),
        *profile_status.check(launch.profile),
    ]
    return Case(target, launch, ranked(findings), assumptions.of_launch(launch, sparks, release is not None))


def measured(cluster: Cluster, launch: Launch) -> Platform:
    """The Sparks of a launch, with what preflight measured of them."""
    return site_memory.platform(cluster.name, [place.node.name for place in launch.topology.places])


def plan(profile: str, inventory: Inventory = None, *, sessions: Asked | None = None, **options: Any) -> dict[str, Any]:
    """What `sparkloom plan --json` prints: does it start, does it fit, how fast at best, what is launched.

    `sessions`: so many conversations of that length, for which room and time to the first token are told too.
    """
    from sparkloom.judge import profile_status, start
    from sparkloom.judge.capacity import verdict

    judged = judge(profile, inventory, **options)
    launch, sparks = judged.launch, measured(judged.cluster, judged.launch)
    planned = verdict.plan(launch, judged.cluster, sparks)
    ran = profile_status.measured(launch.profile) and launch.release == launch.profile.profile.engine.release
    asked = {"sessions": verdict.sessions(launch.view(sparks), sessions)} if sessions else {}
    return {
        "profile": judged.launch.profile.name,
        "cluster": judged.cluster.name,
        "start": start.start(judged.findings, planned.fits, judged.assumed, ran)._asdict(),
        **planned.as_dict(),
        **asked,
        "launch": launch_dict(launch),
        "findings": [finding.as_dict() for finding in judged.findings],
        "assumed": [asdict(one) for one in judged.assumed],
    }


def ranking(inventory: Inventory = None, *, asked: Asked, nodes: int | None = None) -> list[dict[str, Any]]:
    """What `sparkloom profiles --fits --json` prints: profiles that nothing speaks against, the fastest first."""
    from sparkloom.judge.capacity import verdict

    target = cluster(inventory)

    def judged(name: str) -> verdict.Candidate | None:
        loaded = profiles.load(name)
        if loaded.profile.launch.parallel.nodes > len(target.nodes):
            return None
        case = judge(loaded, target)
        serious = [finding for finding in case.errors if finding.rule != "does-not-fit"]  # sessions say that themselves
        return None if serious else (case.launch.profile, case.launch.view(measured(target, case.launch)))

    return verdict.ranking(filter(None, map(judged, profiles.names())), asked, nodes)


def suited(wanted: str, inventory: Inventory = None) -> str:
    """The wanted profile where the site has Sparks enough for it, else the measured one that fits; itself if none does.

    On as many Sparks as there are, of the wanted model before others, then the fastest for one user.
    """
    from sparkloom.judge import profile_status, start

    target = cluster(inventory)
    most = len(target.nodes) if target.fabric.rails else 1
    asked = profiles.load(wanted).profile
    if asked.launch.parallel.nodes <= most:
        return wanted
    known = [one for one in profile_status.listing() if one["status"] == "measured" and one["nodes"] <= most]
    known.sort(key=lambda one: (-one["nodes"], one["model"] != asked.model.id, -(one["n1"] or 0.0)))
    good = (one["name"] for one in known if plan(one["name"], target)["start"]["verdict"] in start.GOOD)
    return next(good, wanted)


def take_in(text: str, name: str, inventory: Inventory = None, **options: Any) -> dict[str, Any]:
    """What `sparkloom import --json` prints: a profile of somebody's recipe, what of it is in none, and the verdict.

    Without an inventory the rack is as large as the recipe asks for; `options` are those of `imported.take_in`.
    """
    from sparkloom.judge import imported

    taken = imported.take_in(text, name, **options)
    target = cluster(inventory)
    return imported.judge(taken, imported.roomy(target, taken.draft.nodes) if inventory is None else target).as_dict()


def hand_out(profile: str, form: str, inventory: Inventory = None, *, force: bool = False, **options: Any) -> HandedOut:
    """A judged launch as text for people without Kubernetes: `sparkrun`, `compose` or `commands`."""
    from sparkloom.render import export
    from sparkloom.render.export import host

    judged = judge(profile, host.at_hosts(cluster(inventory)), **options)
    if judged.errors and not force:
        raise Refused(judged.errors)
    return HandedOut(judged, export.text(judged.launch, form), export.not_carried(judged.launch))


def render(
    profile: str, inventory: Inventory = None, *, force: bool = False, policy: str = POLICY, **options: Any
) -> Rendered:
    """The manifests that are applied; error findings refuse them unless forced.

    `policy` says what a rank does when NCCL took another way than the rails: refuse, or warn.
    """
    from sparkloom.render import manifests

    judged = judge(profile, inventory, **options)
    if judged.errors and not force:
        raise Refused(judged.errors)
    return Rendered(judged, *manifests.build(judged.launch, judged.cluster, policy))


def render_group(
    name: str,
    inventory: Given = None,
    *,
    record: Path | None = None,
    runs: Runs = None,
    force: bool = False,
) -> Rendered:
    """As `render`, of one group of a fleet where its plan puts it, under the group's own names."""
    planned = fleet(inventory, record, runs)
    seat = planned.one(name).group
    return render(seat.profile, planned.cluster, force=force, seat=seat)


def fleet(inventory: Given = None, record: Path | None = None, runs: Runs = None) -> FleetPlan:
    """Where each entry of the inventory's `serve:` goes; what runs stays, unless it must not.

    What runs is what a cluster was asked for (`runs`), or what stands in `record`, else in build/<site>/fleet.json.
    """
    from sparkloom.inputs import serving
    from sparkloom.judge import fleet as fleets

    target = cluster(inventory)
    listed = serving.read(inventory, target)
    if runs is None:
        runs = fleet_record.read(record or fleet_record.path(target.name), must=record is not None)
    return fleets.plan(listed, target, runs)


def fabric(inventory: Inventory = None) -> dict[str, Any]:
    """The fabric plan: per node and rail everything that the host and the pods need."""
    return fabrics.as_dict(fabrics.plan(cluster(inventory)))


def launch_dict(launch: Launch) -> dict[str, Any]:
    """A launch as plain data, with the origin of every value."""
    return {
        "engine": launch.engine,
        "release": launch.release,
        "image": launch.image,
        "port": launch.port,
        "settings": [_said(setting) for setting in launch.settings],
        "ranks": [
            {
                "rank": rank.index,
                "node": rank.place.node.name,
                "addresses": {e.rail: e.cidr for e in rank.place.endpoints},
                "argv": list(rank.argv),
                "env": [_said(variable) for variable in rank.env],
            }
            for rank in launch.ranks
        ],
    }


def _said(one: Setting | EnvVar) -> dict[str, Any]:
    origin = one.origin
    return {"name": one.name, "value": one.value, "origin": origin.kind, "where": origin.where, "why": origin.why}


def rank_of(judged: Case, index: int) -> Rank:
    """One rank of a profile's launch by number."""
    launch = judged.launch
    if not 0 <= index < len(launch.ranks):
        message = f"{index}: profile '{launch.profile.name}' has ranks 0 to {len(launch.ranks) - 1}"
        raise InputError.single("--rank", message, rule="no-such-rank")
    return launch.ranks[index]
