"""What an earlier profile left goes once another was proved; nobody else's things, and nothing of one that stands."""

from __future__ import annotations

from types import SimpleNamespace as NS
from typing import Any

import kubernetes.client
import pytest

from sparkloom.render.manifests import names
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


class Api:
    def __init__(self, client: Any) -> None:
        pass

    def __getattr__(self, call: str) -> Any:
        verb, _, kind = call.partition("_namespaced_")

        def listed(namespace: str, label_selector: str) -> Any:
            found = [(name, labels) for k, name, labels in STORE if k == kind and picked(labels, label_selector)]
            return NS(items=[NS(metadata=NS(name=name, labels=labels)) for name, labels in found])

        def deleted(name: str, namespace: str) -> None:
            STORE[:] = [entry for entry in STORE if entry[:2] != (kind, name)]

        return listed if verb == "list" else deleted


def test_what_was_left_goes_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for group in ("AppsV1Api", "CoreV1Api", "NetworkingV1Api", "PolicyV1Api"):
        monkeypatch.setattr(kubernetes.client, group, Api)
    of = {profile: {**names.ENGINES, names.PROFILE: profile} for profile in ("old", "mine", "stands")}
    STORE[:] = [
        ("service", "old", of["old"]), ("config_map", "old-rank", of["old"]), ("network_policy", "old", of["old"]),
        ("pod_disruption_budget", "old", of["old"]), ("service", "mine", of["mine"]),
        ("secret", "old-group", of["old"]), ("secret", "mine-group", of["mine"]),
        ("secret", "engine-key", dict(names.PART_OF)),
        ("config_map", "served", dict(names.PART_OF)), ("service", "theirs", {"app": "x"}),
        ("service", "stands", of["stands"]), ("stateful_set", "stands-rank0", of["stands"]),
    ]  # fmt: skip
    reached: Any = NS(core=NS(api_client=None), namespace="sparkloom")
    would = [f"{kind} {name}" for kind, _, name in leftovers.found(reached, {"mine"})]
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
