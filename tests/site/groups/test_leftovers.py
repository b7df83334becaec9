"""What an earlier profile left goes once another was proved; nobody else's things, and nothing of one that stands."""

from __future__ import annotations

from types import SimpleNamespace as NS
from typing import Any

import pytest

from sparkloom.render.manifests import names
from sparkloom.site import objects
from sparkloom.site.groups import leftovers

STORE: list[tuple[str, str, dict[str, str]]] = []


def picked(labels: dict[str, str], selector: str) -> bool:
    """As the API server reads a selector."""
    for part in selector.split(","):
        key, _, value = part.partition("!=") if "!=" in part else part.partition("=")
        right = labels.get(key) != value if "!=" in part else labels.get(key) == value if "=" in part else key in labels
        if not right:
            return False
    return True


class Kube:
    """The dynamic client's few calls over what is there."""

    def __init__(self) -> None:
        self.resources = self

    def get(self, api_version: str, kind: str) -> Any:
        def listed(namespace: str, label_selector: str) -> Any:
            found = [(name, labels) for k, name, labels in STORE if k == kind and picked(labels, label_selector)]
            return NS(items=[NS(metadata=NS(name=name, namespace=namespace, labels=labels)) for name, labels in found])

        def deleted(name: str, namespace: str, body: Any) -> None:
            STORE[:] = [entry for entry in STORE if entry[:2] != (kind, name)]

        return NS(get=listed, delete=deleted)


def test_what_was_left_goes_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "DynamicClient", lambda client: Kube())
    of = {profile: {**names.ENGINES, names.PROFILE: profile} for profile in ("old", "mine", "stands")}
    STORE[:] = [
        ("Service", "old", of["old"]), ("ConfigMap", "old-rank", of["old"]), ("NetworkPolicy", "old", of["old"]),
        ("PodDisruptionBudget", "old", of["old"]), ("Service", "mine", of["mine"]),
        ("Secret", "old-group", of["old"]), ("Secret", "mine-group", of["mine"]),
        ("Secret", "engine-key", dict(names.PART_OF)),
        ("ConfigMap", "served", dict(names.PART_OF)), ("Service", "theirs", {"app": "x"}),
        ("Service", "stands", of["stands"]), ("StatefulSet", "stands-rank0", of["stands"]),
    ]  # fmt: skip
    reached: Any = NS(core=NS(api_client=None), namespace="sparkloom")
    would = leftovers.take(reached, {"mine"}, dry=True)
    assert would == [
        "Service old",
        "ConfigMap old-rank",
        "Secret old-group",
        "NetworkPolicy old",
        "PodDisruptionBudget old",
    ]
    assert len(STORE) == 12 and leftovers.take(reached, {"mine"}) == would
    assert [name for _, name, _ in STORE] == [
        "mine",
        "mine-group",
        "engine-key",
        "served",
        "theirs",
        "stands",
        "stands-rank0",
    ]
    assert leftovers.take(reached, {"mine"}) == []
