"""resolve(profile, cluster) -> Launch: exactly what each node runs, every value with its origin.

The engine adapters know how an engine spells things; this module knows the order of decisions:
profile first, then what follows from the topology, then what this platform and fabric require.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, overload

from sparkloom.base.errors import InputError, Problem
from sparkloom.inputs import families, image_recipes, lock_file
from sparkloom.inputs.catalogs import releases
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.image_recipes import LoadedRecipe
from sparkloom.inputs.platform import GB10, Platform
from sparkloom.inputs.profile import LoadedProfile, LoadedSketch
from sparkloom.launch import engines, fabric, patience, pins, ports, reading
from sparkloom.launch.engines import base
from sparkloom.launch.groups import Placed
from sparkloom.launch.values import EnvVar, Origin, Place, Setting, Topology
from sparkloom.launch.view import LaunchView, ModelView


@dataclass(frozen=True, slots=True)
class Rank:
    index: int
    place: Place
    argv: tuple[str, ...]
    env: tuple[EnvVar, ...]
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class LaunchSketch:
    """A launch of a model of which there may be no more than its name."""

    profile: LoadedSketch
    engine: str
    release: str
    image: str
    port: int
    topology: Topology
    settings: tuple[Setting, ...]
    ranks: tuple[Rank, ...]
    # The rails that NCCL must use; none for one node or an engine without NCCL. In a ring a rail has two devices, and
    # NCCL's log names one of them before it looks which leads to the peer.
    fabric: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)  # path in the pod -> content (an engine's own config file)
    ports: tuple[ports.Port, ...] = ()  # all that is listened at in its pods
    gpu: bool = True  # its pods must find one
    seat: Placed | None = None  # of a group among others; None where one profile is served

    @property
    def group(self) -> str:
        """The name that its objects are called by: the profile's, unless a fleet's list gives another."""
        return self.seat.name if self.seat else self.profile.name

    def where(self, name: str) -> str:
        """Where a flag was written, by its name here or the oldest one; or `env.NAME` and its like."""
        section, _, key = name.partition(".")
        if section in ("env", "engine", "model"):
            return self.profile.where(section, key)
        engine = engines.get(self.engine)
        called = (one.origin.where for one in self.settings if name in (one.name, *engine.canonical([one])))
        return next(filter(None, called), "") or self.profile.where("launch", *name.split("."))

    def view(self, platform: Platform = GB10) -> LaunchView:
        """This launch as rules see it: what a name does not tell stays unknown, and no rule concludes from it."""
        from sparkloom.inputs import known_models  # whose readers of checkpoints no profile needs

        model = self.profile.profile.model
        family, packing = families.family(model.id), known_models.split(model.id)[1]
        told = self._common(platform)
        return LaunchView(**told, architecture=family.architecture, packing=packing, facts=family.facts)

    def _common(self, platform: Platform) -> dict[str, Any]:
        """What a view has of any launch."""
        profile, recipe = self.profile.profile, image_recipe(self.profile)
        return {
            "engine": self.engine,
            "release": self.release,
            "image": self.image,
            "built_from": profile.engine.built_from or (f"recipe {recipe.name}" if recipe else ""),
            "recipe": recipe.recipe if recipe else None,
            "carries": frozenset([*profile.engine.carries, *(f"patch:{name}" for name in profile.engine.patches)]),
            "model_id": profile.model.id,
            "moving": pins.moving(profile.model),
            "consented": frozenset(profile.model.runs_unpinned_code_of),
            "flags": engines.get(self.engine).canonical(self.settings),
            "env": {variable.name: variable.value for variable in self.ranks[0].env},
            "platform": platform,
            "egress": self.topology.egress,
            **self.topology.parallel.model_dump(),
        }


@dataclass(frozen=True, slots=True)
class Launch(LaunchSketch):
    profile: LoadedProfile

    def view(self, platform: Platform = GB10) -> ModelView:
        """This launch as rules and capacity see it."""
        model, told = self.profile.profile.model, self._common(platform)
        packing, facts = model.checkpoint.packing, families.facts_of(model)
        return ModelView(**told, architecture=model.architecture, packing=packing, facts=facts, model=model)


@overload
def resolve(
    loaded: LoadedProfile, cluster: Cluster, *, release: str | None = None, seat: Placed | None = None
) -> Launch: ...
@overload
def resolve(loaded: LoadedSketch, cluster: Cluster) -> LaunchSketch: ...
def resolve(
    loaded: LoadedSketch, cluster: Cluster, *, release: str | None = None, seat: Placed | None = None
) -> LaunchSketch:
    """The launch of a profile on a cluster; `release` overrides the dialect (`--engine-version`).

    `seat`: of one group of a fleet, on a cluster as that group sees it (groups.seated).
    """
    engine = engines.of(loaded)
    loaded = pins.pinned(loaded, cluster.models)
    spoken = _release(loaded, release)
    loaded = reading.typed(loaded, spoken)
    _may_be_many(loaded, engine)
    image_recipe(loaded)  # refuses one that is not there
    topology = place(loaded, cluster, seat)
    catalog = engines.catalog(engine.name, spoken) if releases.known(engine.name) else None
    derived = [*engine.derived(loaded, topology), *patience.settings(engine, catalog)]
    chosen = _from_profile(loaded)
    settings = merge(seat.over(chosen) if seat else chosen, derived)
    patient = patience.environment(engine, catalog)
    spelled = engine.spell(settings, spoken)
    ranks = tuple(
        Rank(
            index=spot.rank,
            place=spot,
            argv=engine.argv(spelled, topology, spot, spoken),
            env=_environment(loaded, [*engine.environment(topology, spot), *patient]),
            settings=engine.rank_settings(topology, spot),
        )
        for spot in topology.places
    )
    flags, variables = engine.canonical(spelled), {variable.name: variable.value for variable in ranks[0].env}
    taken = (*engine.ports(flags, variables, spoken, len(ranks)), *ports.OURS)
    if problems := ports.faults(loaded, taken):
        raise InputError(problems)
    kind: type[LaunchSketch] = Launch if isinstance(loaded, LoadedProfile) else LaunchSketch
    return kind(
        profile=loaded,
        engine=engine.name,
        release=spoken,
        image=lock_file.at(image_reference(loaded), cluster.images),
        port=engine.port,
        ports=taken,
        topology=topology,
        settings=spelled,
        ranks=ranks,
        fabric=tuple(dict.fromkeys(end.half for end in topology.head.endpoints)) if engine.nccl else (),
        files=engine.files(settings, loaded),
        gpu=cluster.expect_gpu,
        seat=seat,
    )


def _release(loaded: LoadedSketch, asked: str | None) -> str:
    """The release whose dialect is spoken; text without a release number in front is refused."""
    release = loaded.profile.engine.release if asked is None else asked
    if releases.number(release) is not None:
        return release
    known = ", ".join(releases.known(loaded.profile.engine.name))
    message = f"'{release}' does not begin with a release number; catalogs here: {known}"
    if asked is not None:
        raise InputError.single("--engine-version", message, rule="bad-release")
    raise InputError([loaded.document.problem(("engine", "release"), message, "bad-release")])


def _may_be_many(loaded: LoadedSketch, engine: base.Adapter) -> None:
    """Where ranks cannot meet, each would load the whole model and serve by itself, or fail late."""
    nodes = loaded.profile.launch.parallel.nodes
    if engine.alone and nodes > 1:
        able = ", ".join(name for name in engines.names() if not engines.get(name).alone)
        found = f"launch.parallel.nodes = {nodes}, but {engine.name} is served on one node only: {engine.alone}"
        message = f"{found}; write parallel: {{nodes: 1, tp: 1}}, or take another engine.name ({able})"
        raise InputError([loaded.document.problem(("launch", "parallel", "nodes"), message, "one-node-engine")])
    copies = loaded.profile.launch.parallel.dp
    if engine.no_copies and copies > 1:
        message = f"launch.parallel.dp = {copies}, but {engine.name} {engine.no_copies}"
        raise InputError([loaded.document.problem(("launch", "parallel", "dp"), message, "no-data-parallel")])


def place(loaded: LoadedSketch, cluster: Cluster, seat: Placed | None = None) -> Topology:
    """The first `nodes` machines of the inventory, in its order, or those of the seat; rank 0 is the head."""
    parallel = loaded.profile.launch.parallel
    if parallel.nodes > len(cluster.nodes):
        known = ", ".join(node.name for node in cluster.nodes)
        message = f"launch.parallel.nodes = {parallel.nodes}, but inventory '{cluster.name}' has only: {known}"
        raise InputError([loaded.document.problem(("launch", "parallel", "nodes"), message, "too-few-nodes")])
    if parallel.nodes > 1 and not cluster.fabric.rails:
        found = f"launch.parallel.nodes = {parallel.nodes}, but fabric.yml of '{cluster.name}' has no rails"
        message = f"{found}; cable the nodes and declare fabric.rails, or take a profile for one node"
        raise InputError([loaded.document.problem(("launch", "parallel", "nodes"), message, "no-rails")])
    plan = fabric.plan(cluster)
    vf = cluster.fabric.serving_vf
    chosen = seat.on(cluster) if seat else cluster.nodes[: parallel.nodes]
    between = {rail.name for rail in cluster.fabric.segments if sum(rail.joins(node.name) for node in chosen) > 1}
    places = tuple(
        Place(rank, node, tuple(end for end in plan.of(node.name, vf) if end.rail in between))
        for rank, node in enumerate(chosen)
    )
    many = bool(cluster.fabric.ring) and len(places) > 2
    return Topology(parallel, places, cluster.fabric.lossless, ring=many, egress=bool(cluster.egress))


def image_reference(loaded: LoadedSketch) -> str:
    engine = loaded.profile.engine
    return f"{engine.image}@{engine.digest}" if engine.digest else engine.image


def image_recipe(loaded: LoadedSketch) -> LoadedRecipe | None:
    """By which the profile's image is built; None where that is somebody else's. A name without a recipe is refused
    where the profile says it.
    """
    name = loaded.profile.engine.recipe
    if name is None:
        return None
    try:
        return _recipe(name, os.environ.get(image_recipes.OWN, ""))
    except InputError as error:
        problems = [
            Problem(*loaded.document.position(("engine", "recipe")), problem.message, problem.rule)
            if problem.rule == "missing-file"
            else problem
            for problem in error.problems
        ]
        raise InputError(problems) from None


@lru_cache(maxsize=64)
def _recipe(name: str, own: str) -> LoadedRecipe:
    """Once: a search asks for the same launch thousands of times."""
    return image_recipes.load(name)


def _from_profile(loaded: LoadedSketch) -> list[Setting]:
    engine, folder = engines.of(loaded), base.model_folder(loaded.profile.model.id)
    result, problems = [], []
    for name, value in loaded.profile.launch.flags.items():
        if name in engine.reserved:
            message = f"launch.{name} follows from launch.parallel, the model and the inventory; remove it here"
            problems.append(loaded.document.problem(("launch", name), message, "computed-flag"))
        if isinstance(value, str):
            value = value.replace(base.MODEL_FOLDER, folder)
        where = loaded.where("launch", name)
        why = reading.why(loaded.profile.engine.fork, name)
        result.append(Setting(name, value, Origin("set" if where.startswith("--set") else "profile", where, why)))
    if problems:
        raise InputError(problems)
    return result


def merge(chosen: Sequence[Setting], derived: Sequence[Setting]) -> list[Setting]:
    """Derived settings first, in the engine's order; what a profile says itself wins over a default."""
    named = {setting.name for setting in chosen}
    return [setting for setting in derived if setting.name not in named] + list(chosen)


def _environment(loaded: LoadedSketch, derived: Sequence[EnvVar]) -> tuple[EnvVar, ...]:
    fork = loaded.profile.engine.fork
    own = {
        name: EnvVar(name, value, Origin("profile", loaded.where("env", name), reading.why(fork, name, variable=True)))
        for name, value in loaded.profile.env.items()
    }
    kept = [variable for variable in derived if variable.name not in own]
    return tuple(sorted([*kept, *own.values()], key=lambda variable: variable.name))
