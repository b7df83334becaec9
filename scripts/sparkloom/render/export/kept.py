"""What no command holds of a profile: its model's facts, evidence, requests, and which words are sparkloom's own."""

from __future__ import annotations

from typing import Any

from sparkloom.launch import engines, reading
from sparkloom.launch.engines import base
from sparkloom.launch.imported import command
from sparkloom.launch.imported.draft import CONSENT
from sparkloom.launch.resolve import Launch
from sparkloom.launch.values import Origin, Setting
from sparkloom.render.export import host

OWN = ("profile", "set")  # origins of what stands in the profile itself


def of(launch: Launch) -> dict[str, Any]:
    profile = launch.profile.profile
    return {
        "name": launch.profile.name,
        "summary": profile.summary,
        "model": {key: value for key, value in _plain(profile.model).items() if key != CONSENT},
        "engine": {**_plain(profile.engine), "name": launch.engine, "release": profile.engine.release},
        "requests": _plain(profile.requests),
        "evidence": [_plain(item) for item in profile.evidence],
        "derived": {"flags": flags(launch), "env": environment(launch)},
    }


def flags(launch: Launch) -> dict[str, str]:
    """Flags that sparkloom added to the profile's, as text."""
    rank = launch.ranks[0]
    given = [*(s for s in launch.settings if s.origin.kind not in OWN), *rank.settings]
    table = {setting.name: _text(setting) for setting in given if setting.value not in (None, False)}
    words = engines.get(launch.engine).key_words
    return table | ({words[0].lstrip("-").replace("-", "_"): words[1]} if words else {})


def environment(launch: Launch) -> dict[str, str]:
    own = set(launch.profile.profile.env)
    return {name: value for name, value in host.environment(launch.ranks[0]).items() if name not in own}


def respelled(launch: Launch, plain: dict[str, Any]) -> dict[str, Any]:
    """Launch keys that a command line gives back otherwise: under a release's own name, as text, or not at all."""
    engine, profile = engines.get(launch.engine), launch.profile.profile
    entries = {}
    for key, value in profile.launch.flags.items():
        if key in plain and plain[key] == value and type(plain[key]) is type(value):
            continue
        names = [_known(launch, s.name) for s in engine.spell([Setting(key, value, Origin("profile"))], launch.release)]
        entries[key] = {"value": value, "as": {name: plain[name] for name in names if name in plain}}
    return entries


def _known(launch: Launch, name: str) -> str:
    """The key under which an import has a flag."""
    if name in engines.get(launch.engine).filed:
        return engines.get(launch.engine).filed[name]
    catalog = reading.catalog(launch.profile, launch.release)
    flag, called = catalog.flag(name) if catalog else None, engines.get(launch.engine).called.values()
    return command.key_of(flag, f"--{name.replace('_', '-')}", catalog, called) if flag and catalog else name


def _text(setting: Setting) -> str:
    return "true" if setting.value is True else " ".join(base.values(setting.value))


def _plain(part: Any) -> dict[str, Any]:
    return dict(part.model_dump(exclude_defaults=True, warnings=False))
