"""Rules: one trap per file. `check(launch)` gives findings, sorted by severity."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from sparkloom.base.finding import Finding, ranked
from sparkloom.inputs import families
from sparkloom.judge.rules.base import Context, Rule
from sparkloom.launch import engines
from sparkloom.launch.resolve import Launch

NOT_RULES = {"base", "sources"}


@cache
def every() -> tuple[Rule, ...]:
    """All rules, found by their files; a file with no rule is a mistake and fails here."""
    found = []
    for info in iter_modules(__path__):
        if info.name in NOT_RULES:
            continue
        module = import_module(f"{__name__}.{info.name}")
        own = [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Rule) and value is not Rule
        ]
        found += [rule() for rule in own if rule.__module__ == module.__name__]
    return tuple(sorted(found, key=lambda rule: rule.id))


def context(launch: Launch) -> Context:
    profile, adapter = launch.profile.profile, engines.get(launch.engine)
    parallel = launch.topology.parallel
    return Context(
        engine=launch.engine,
        release=launch.release,
        image=launch.image,
        carries=frozenset([*profile.engine.carries, *(f"patch:{name}" for name in profile.engine.patches)]),
        model_id=profile.model.id,
        architecture=profile.model.architecture,
        packing=profile.model.checkpoint.packing,
        facts=families.facts_of(profile.model),
        nodes=parallel.nodes,
        tp=parallel.tp,
        pp=parallel.pp,
        ep=parallel.ep,
        flags=adapter.canonical(launch.settings),
        env={variable.name: variable.value for variable in launch.ranks[0].env},
    )


def check(launch: Launch) -> list[Finding]:
    """What the rules say about a launch."""
    ctx = context(launch)
    places = {setting.name: setting.origin.where for setting in launch.settings}
    return ranked(
        _finding(rule, hit.message, _where(launch, places, hit.flag)) for rule in every() for hit in rule.judge(ctx)
    )


def fired(ctx: Context, rules: Iterable[Rule] | None = None) -> list[Rule]:
    """The rules that match a context."""
    return [rule for rule in (every() if rules is None else rules) if next(iter(rule.judge(ctx)), None) is not None]


def _where(launch: Launch, places: dict[str, str], flag: str) -> str:
    if flag.startswith("env."):
        return launch.profile.where("env", flag.removeprefix("env."))
    if flag.startswith("engine."):
        return launch.profile.where("engine", flag.removeprefix("engine."))
    return places.get(flag) or launch.profile.where("launch", flag)


def _finding(rule: Rule, message: str, where: str) -> Finding:
    text = f"{message}: {rule.why}"
    sources = tuple(" ".join(filter(None, (source.what, source.date, source.link))) for source in rule.evidence)
    return Finding(where, rule.id, text, expected="", fix=rule.fix, severity=rule.severity, evidence=sources)
