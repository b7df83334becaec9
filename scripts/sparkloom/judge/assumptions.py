"""Collects what is assumed: of a launch on a site, and of somebody's recipe. Nothing else makes an `Assumption`."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sparkloom.base.assumption import SIGN, Assumption
from sparkloom.inputs import precision
from sparkloom.inputs.catalogs import argv, releases
from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.importers.found import short
from sparkloom.inputs.platform import Platform
from sparkloom.inputs.profile import Fork
from sparkloom.judge import profile_status
from sparkloom.launch import engines
from sparkloom.launch.imported import spoken
from sparkloom.launch.resolve import Launch, image_recipe

if TYPE_CHECKING:
    from sparkloom.inputs.known_models import Facts
    from sparkloom.launch.imported.draft import Draft

RELEASE = "--engine-version RELEASE"
CONFIG = "--config config.json"
NOT_RUN = ("unvalidated", "inferred")
WIDTH = 118  # of a comment in a draft


def of_launch(launch: Launch, platform: Platform, told: bool) -> list[Assumption]:
    """Of a profile on a site. `told`: a person named the release."""
    profile, found = launch.profile.profile, [*of_platform(platform)]
    if precision.GUESSED in profile.model.source:
        why = f"{precision.BY_NAME}; {profile.model.source}"
        found.append(Assumption("facts", f"model {profile.model.id}", why, f"import {CONFIG}"))
    if profile_status.status(profile) in NOT_RUN and not told and image_recipe(launch.profile) is None:
        found += _of_image(launch.image, f"{launch.engine} {launch.release}")
    if releases.known(launch.engine):
        official, fork = engines.catalog(launch.engine, launch.release), profile.engine.fork or Fork(name="", source="")
        flags = {name: value for name, value in profile.launch.flags.items() if name in fork.flags}
        found += [*of_catalog(official), *of_fork(official, flags, [name for name in profile.env if name in fork.env])]
    return found


def of_platform(platform: Platform) -> Iterator[Assumption]:
    if platform.measured_free_gib is None:
        why = "as other Sparks had it; playbooks/preflight.yml has not measured this site's"
        yield Assumption("memory", "free memory", why, "-i SITE, after its preflight", decides=False)


def of_catalog(catalog: Catalog) -> Iterator[Assumption]:
    """A release whose flags another one's parser judges."""
    if catalog.asked.note:
        what = f"flags of {catalog.engine} {catalog.asked.asked}"
        yield Assumption("flags", what, catalog.asked.note, f"{RELEASE}, one with a catalog")


def of_fork(official: Catalog, flags: Mapping[str, Any], variables: Collection[str]) -> Iterator[Assumption]:
    """What its author says that an engine takes beyond its release."""
    release = f"{official.engine} {official.asked.asked}"
    for key, value in flags.items():
        flag, what = "--" + key.replace("_", "-"), "value" if official.flag(key) else "flag"
        written = flag if value in (True, None) else f"{flag} {short(argv.as_word(value))}"
        why = f"no such {what} in {release}; kept as its author's word"
        yield Assumption("flags", written, why, f"plan --set launch.{key}= leaves it out")
    for name in variables:
        why = f"no variable of {release}; kept as its author's word"
        yield Assumption("flags", f"env {name}", why, f"plan --set env.{name}= leaves it out")


def of_source(draft: Draft, facts: Facts | None) -> list[Assumption]:
    """Of somebody's recipe or command."""
    told, found = draft.spoken, list[Assumption]()
    if told is None or told.catalog is None:
        why = "not one that is served here, so nothing of its words is judged"
        return [Assumption("flags", f"engine {draft.engine}", why, "a recipe of an engine that is")]
    if facts is None or facts.doubt:
        why = f"{facts.doubt}; {facts.source}" if facts else "no facts of it here; `sparkloom profile new` asks the hub"
        found.append(Assumption("facts", f"model {draft.model}", why, CONFIG))
    if told.how != spoken.GIVEN:
        found += _of_image(draft.start.image, f"{draft.engine} {told.release}")
    found += of_catalog(told.catalog) if told.sure else [Assumption("release", "release", told.how, RELEASE)]
    fork = draft.data["engine"].get("fork") or {}
    written = {key: draft.data["launch"].get(key) for key in fork.get("flags", ())}
    return [*found, *of_fork(told.catalog, written, fork.get("env", ()))]


def _of_image(image: str, release: str) -> Iterator[Assumption]:
    """Somebody's: that it speaks the release is his word, or only its tag's."""
    if image and not spoken.published(image):
        yield Assumption("release", f"image {image}", f"not one of the engine's own; taken for {release}", RELEASE)


def comments(texts: Iterable[str]) -> list[str]:
    """The lines of YAML above a draft."""
    lines = [line for text in texts for line in comment(f"{SIGN} {text}", hang="  ")]
    return ["# assumed, and to be settled before this is trusted:", *lines] if lines else []


def comment(text: str, pad: str = "", hang: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH - len(pad),
        initial_indent=f"{pad}# ",
        subsequent_indent=f"{pad}# {hang}",
        break_long_words=False,
        break_on_hyphens=False,
    )
