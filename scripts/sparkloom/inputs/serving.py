"""What a site serves: `serve:` of its group_vars/all/cluster.yml, a list of profiles, or one `profile:` as ever.

An entry is a profile's name, or a mapping with `profile:` and what else is to be said of its group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from sparkloom.base import document
from sparkloom.base.document import Document, Loc
from sparkloom.base.errors import InputError, Problem, did_you_mean
from sparkloom.inputs import group_name, inventory
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.profile import Strict

OURS = ("router", "page", "waker")  # Services beside those of groups
GATEWAY = "gateway_enabled"  # false in an inventory: this site has no endpoint of ours
MOST = 64  # groups of one site
MOST_IDLE = 1440  # minutes, a day: who waits longer than that wants a group that does not stop
LEAST_SHARE, MOST_SHARE = 0.02, 0.95  # of a Spark's memory: less holds no model, and the host needs the rest


def _nodes(value: Any) -> Any:
    """A count, or names; lists come as tuples, which nothing changes."""
    named = isinstance(value, list | tuple) and value and all(isinstance(name, str) for name in value)
    counted = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 8
    if not named and not counted:
        raise ValueError(f"expected how many Sparks (1 to 8), or their names as [spark1, spark2]; found {value!r}")
    return tuple(value) if named else value


def _share(value: float) -> float:
    if not LEAST_SHARE <= value <= MOST_SHARE:
        limits = f"{LEAST_SHARE:g} to {MOST_SHARE:g}"
        raise ValueError(f"expected the share of a Spark's memory that it may take, {limits}; found {value:g}")
    return value


def _idle(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_IDLE:
        limits = f"1 to {MOST_IDLE}"
        raise ValueError(f"expected after how many minutes without a request it stops, {limits}; found {value!r}")
    return value


def _alias(value: str) -> str:
    if not value.strip() or value != value.strip() or len(value) > 200:
        raise ValueError(f"expected the name that clients ask for, without spaces around it; found {value!r}")
    return value


GroupName = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]{0,43}[a-z0-9])?$")]
Text = Annotated[str, Field(min_length=1)]


class Wanted(Strict):
    """One group: a profile on Sparks of its own, or on a share of them."""

    profile: Text
    nodes: Annotated[int | tuple[str, ...] | None, BeforeValidator(_nodes)] = Field(
        default=None, description="how many Sparks, where not as many as the profile says; or which, rank 0 first"
    )
    name: GroupName | None = Field(default=None, description="the group's; the profile's name unless given")
    alias: Annotated[str, AfterValidator(_alias)] | None = Field(
        default=None, description="the `model` that clients ask for; what the engine calls it unless given"
    )
    fraction: Annotated[float, AfterValidator(_share)] | None = Field(
        default=None,
        description="share of each Spark's memory; others may have the rest. Without it, Sparks of its own",
    )
    idle_minutes: Annotated[int | None, BeforeValidator(_idle)] = Field(
        default=None,
        description="on demand: it stops after so many minutes without a request, and the next request starts it",
    )
    turns: GroupName | None = Field(
        default=None,
        description="groups that say the same here stand on the same Sparks, and one of them is awake at a time",
    )

    @property
    def called(self) -> str:
        """The group's name; today's single profile is a group of its own name."""
        return self.name or _after(self.profile)

    @property
    def pinned(self) -> tuple[str, ...]:
        return self.nodes if isinstance(self.nodes, tuple) else ()

    @property
    def count(self) -> int | None:
        """How many Sparks the inventory asks for; None where the profile decides."""
        return len(self.nodes) if isinstance(self.nodes, tuple) else self.nodes

    @property
    def on_demand(self) -> bool:
        """Whether it stops by itself, and a request starts it again."""
        return self.idle_minutes is not None


def called(item: Any) -> str:
    """The name of the group that an entry makes, as it is written in a list that is not read yet."""
    said = whole(item)
    return said.get("name") or _after(said["profile"])


def _after(profile: str) -> str:
    return Path(profile).stem if _is_path(profile) else profile


def whole(item: Any) -> dict[str, Any]:
    """An entry is a profile's name, or a mapping."""
    return {"profile": item} if isinstance(item, str) else item


class _Listed(Strict):
    serve: Annotated[list[Wanted], Field(max_length=MOST)]


@dataclass(frozen=True, slots=True)
class Serving:
    """The entries in the inventory's order, and where each of them stands."""

    entries: tuple[Wanted, ...]
    document: Document
    listed: bool  # by `serve:`; else it is the one `profile:`
    reached: bool = True  # through an endpoint of ours: without one no request wakes what sleeps

    @property
    def demanded(self) -> list[int]:
        """Which entries are on demand."""
        return [number for number, entry in enumerate(self.entries) if entry.on_demand]

    def loc(self, number: int, *keys: str | int) -> Loc:
        return ("serve", number, *keys) if self.listed else ("profile",)

    def problem(self, number: int, message: str, rule: str, *keys: str | int) -> Problem:
        """At that key of an entry, or where the entry stands."""
        return self.document.problem(self.loc(number, *keys), message, rule)

    def where(self, number: int, *keys: str | int) -> str:
        """As findings name a place."""
        return ":".join(str(part) for part in self.document.position(self.loc(number, *keys)))


def read(inventory: str | Path | Mapping[str, Any] | None, cluster: Cluster) -> Serving:
    """Of a folder, or of Ansible's variables."""
    return from_vars(inventory, cluster) if isinstance(inventory, Mapping) else load(inventory, cluster)


def load(folder: str | Path | None, cluster: Cluster) -> Serving:
    """Of an inventory folder; the shipped example's when none is given."""
    file = _of_folder(folder)
    listed = of_document(document.load(file), cluster)
    said = [document.load(other).data for other in sorted(file.parent.glob("*.yml"))] if listed.demanded else []
    return replace(listed, reached=all(data.get(GATEWAY, True) is not False for data in said))


def has_list(of: str | Path | Mapping[str, Any] | None) -> bool:
    """Whether an inventory speaks of several groups."""
    return "serve" in (of if isinstance(of, Mapping) else document.load(_of_folder(of)).data)


def _of_folder(folder: str | Path | None) -> Path:
    path = inventory.folder_of(folder) if folder else inventory.DEFAULT_INVENTORY
    return path / "group_vars" / "all" / "cluster.yml"


def from_vars(variables: Mapping[str, Any], cluster: Cluster) -> Serving:
    """From Ansible's variables: `serve`, `profile`, either or both."""
    given = {key: variables[key] for key in ("serve", "profile") if variables.get(key) is not None}
    listed = of_document(Document("inventory variables", given), cluster)
    return replace(listed, reached=variables.get(GATEWAY, True) is not False)


def of_document(source: Document, cluster: Cluster) -> Serving:
    """Everything that is wrong with the list is said at once, each at its place."""
    listed = "serve" in source.data
    serving = Serving(_listed(source) if listed else _single(source), source, listed)
    problems = [*_profile(serving), *_twice(serving), *_pins(serving, cluster), *_turns(serving), *_missing(serving)]
    if problems:
        raise InputError(problems)
    return serving


def _single(source: Document) -> tuple[Wanted, ...]:
    named = source.data.get("profile")
    if not isinstance(named, str) or not named.strip():
        message = "nothing says what is served; write profile: NAME, or serve: with a list of profiles"
        raise source.refusal(("profile",), message, "missing-key")
    return (Wanted(profile=named),)


def _listed(source: Document) -> tuple[Wanted, ...]:
    items = source.data["serve"]
    if not isinstance(items, list):
        message = (
            f"serve: expected a list of profiles, found {items!r}; write `- profile: NAME` below it for each"
            if not isinstance(items, dict)
            else "serve: expected a list; put a dash before each entry, as in `- profile: NAME`"
        )
        raise source.refusal(("serve",), message, "wrong-type")
    entries = [whole(item) for item in items]
    written = Document(source.file, {"serve": entries}, source.marks, source.files)
    return tuple(document.validate(_Listed, written).serve)


def _profile(serving: Serving) -> Iterator[Problem]:
    """`profile:` beside `serve:` is what the playbooks serve until they take the list; it must be in it."""
    named = serving.document.data.get("profile")
    if not serving.listed or named is None:
        return
    listed = [entry.profile for entry in serving.entries]
    if named not in listed:
        there = ", ".join(listed) or "nothing"
        message = f"profile: {named} is not in serve: ({there}); write it there too, or take this line out"
        yield serving.document.problem(("profile",), message, "two-answers")


def _twice(serving: Serving) -> Iterator[Problem]:
    names = [entry.called for entry in serving.entries]
    for number, name in enumerate(names):
        if group_name.label(name) in OURS:
            key = "name" if serving.entries[number].name else "profile"
            message = f"the group is called {name}, as a Service of this site's own is; write another `name:` here"
            yield serving.problem(number, message, "same-name", key)
    for later, earlier, both in group_name.meetings(names):
        key = "name" if serving.entries[later].name else "profile"
        message = (
            f"the group is called {names[later]}, and that of entry {earlier + 1} {names[earlier]}: both would have an "
            f"object {both}; write another `name:` here"
        )
        yield serving.problem(later, message, "same-name", key)
    aliases = [entry.alias for entry in serving.entries]
    for number, alias in enumerate(aliases):
        if alias and alias in aliases[:number]:
            message = f"alias: {alias} is that of entry {aliases.index(alias) + 1} too; clients could mean either"
            yield serving.problem(number, message, "same-alias", "alias")


def _pins(serving: Serving, cluster: Cluster) -> Iterator[Problem]:
    known = [node.name for node in cluster.nodes]
    for number, entry in enumerate(serving.entries):
        for place, name in enumerate(entry.pinned):
            if name not in known:
                message = f"nodes: '{name}' is no Spark of this inventory{did_you_mean(name, known)}"
                yield serving.problem(number, message, "no-such-node", "nodes", place)
            elif name in entry.pinned[:place]:
                message = f"nodes: {name} stands there twice; a Spark has one GPU and takes one rank of a group"
                yield serving.problem(number, message, "node-twice", "nodes", place)


def _turns(serving: Serving) -> Iterator[Problem]:
    """Who takes turns stops by itself, and has the place of the others."""
    first: dict[str, int] = {}
    for number, entry in enumerate(serving.entries):
        if entry.turns is None:
            continue
        if entry.idle_minutes is None:
            message = (
                f"turns: {entry.turns} needs `idle_minutes:` beside it; {entry.called} would never stop, and the "
                "others of this turn never start"
            )
            yield serving.problem(number, message, "turn-never-ends", "turns")
        other = first.setdefault(entry.turns, number)
        if other != number:
            yield from _unlike(serving, number, other)
        if entry.pinned and not serving.entries[other].pinned:
            first[entry.turns] = number  # the place that later ones are held against


def _unlike(serving: Serving, number: int, other: int) -> Iterator[Problem]:
    """Groups of one turn take one place, so whatever says which place is the same."""
    entry, earlier = serving.entries[number], serving.entries[other]
    if entry.pinned and earlier.pinned and entry.pinned != earlier.pinned:
        message = (
            f"nodes: [{', '.join(entry.pinned)}], and entry {other + 1} of turn {entry.turns} has "
            f"[{', '.join(earlier.pinned)}]; they take turns in one place: write the same Sparks in the same order"
        )
        yield serving.problem(number, message, "turns-differ", "nodes")
    if entry.fraction != earlier.fraction:
        mine, its = (f"fraction: {one:g}" if one else "no fraction" for one in (entry.fraction, earlier.fraction))
        key = "turns" if entry.fraction is None else "fraction"
        message = f"{mine}, and entry {other + 1} of turn {entry.turns} has {its}; the place they take turns in is one"
        yield serving.problem(number, message, "turns-differ", key)


def _missing(serving: Serving) -> Iterator[Problem]:
    """A profile that is not there is said where it is named."""
    for number, entry in enumerate(serving.entries):
        try:
            path = profiles.find(entry.profile)
        except InputError as error:
            yield serving.problem(number, f"{entry.profile}: {error.problems[0].message}", "no-such-profile", "profile")
            continue
        if _is_path(entry.profile) and not path.is_file():
            yield serving.problem(number, f"{entry.profile}: no such file", "no-such-profile", "profile")


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith((".yml", ".yaml"))
