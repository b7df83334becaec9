"""A launch as rules may see it when nothing but the model's name is known."""

from __future__ import annotations

from sparkloom.inputs import families, known_models
from sparkloom.inputs.platform import GB10, Platform
from sparkloom.launch import engines, pins
from sparkloom.launch.resolve import Launch
from sparkloom.launch.view import LaunchView


def view(launch: Launch, platform: Platform = GB10) -> LaunchView:
    """As Launch.view, with the facts that the name tells: unknown stays unknown, and no rule concludes from it."""
    profile = launch.profile.profile
    model, engine = profile.model, profile.engine
    family = families.family(model.id)
    return LaunchView(
        engine=launch.engine,
        release=launch.release,
        image=launch.image,
        carries=frozenset([*engine.carries, *(f"patch:{name}" for name in engine.patches)]),
        model_id=model.id,
        moving=pins.moving(model),
        architecture=family.architecture,
        packing=known_models.split(model.id)[1],
        facts=family.facts,
        flags=engines.get(launch.engine).canonical(launch.settings),
        env={variable.name: variable.value for variable in launch.ranks[0].env},
        platform=platform,
    ).split(launch.topology.parallel)
