"""The Secrets of a group, made once: the engine's own key, what the ranks know each other by.

What is in them is in no result and in no log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sparkloom.onnode.now.labels import ONLY_KEY
from sparkloom.render import keys
from sparkloom.render.manifests import names, pod_secrets
from sparkloom.site.checks import report
from sparkloom.site.client import Client
from sparkloom.site.groups.group import RenderedGroup


@dataclass(frozen=True, slots=True)
class Kept:
    """One Secret as the cluster has it now, or would have it."""

    name: str
    made: bool  # it was not there, or held something else
    drift: list[dict[str, str]]


def of_group(reached: Client, group: RenderedGroup, *, dry: bool) -> Iterator[Kept]:
    """The engine's own key first. One that is usable stays as it is.

    That of a site with one profile has no group's label: it outlives its group, and the next one has it.
    """
    name = group.engine_key
    data, labels = keys.engine_data(reached.secret(name)), {} if name == ONLY_KEY else group.labels
    yield _put(reached, name, data, labels, "what the engine is asked with", dry=dry)
    if name := pod_secrets.group_secret(group.launch):
        # its labels say whose it is when the profile serves no more
        data, labels = keys.group_data(reached.secret(name)), names.labels(group.launch)
        yield _put(reached, name, data, labels, "what the ranks know each other by", dry=dry)


def _put(
    reached: Client, name: str, data: dict[str, str], labels: Mapping[str, str], expected: str, *, dry: bool
) -> Kept:
    there = reached.secret(name) is not None
    made = reached.put_secret(name, data, labels=labels, dry=dry)
    return Kept(name, made, report.secret(name, there=there, differs=made, expected=expected))
