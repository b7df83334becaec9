"""Where a role's cluster is reached is said once, in a block's module_defaults, and holds for every task below it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.places import REPO

GROUP = "group/kubernetes.core.k8s"
INCLUDES = ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks")
USERS = sorted({path.parts[-3] for path in REPO.glob("roles/*/tasks/*.yml") if "kubernetes.core." in path.read_text()})


def walked(folder: Path, entries: Any, defaults: dict[str, Any], seen: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    """Every task that talks to the cluster, through included files too, with the defaults that hold for it."""
    for entry in entries or []:
        held = defaults | entry.get("module_defaults", {})
        for part in ("block", "rescue", "always"):
            yield from walked(folder, entry.get(part), held, seen)
        for include in (entry[key] for key in INCLUDES if key in entry):
            if include not in seen:
                yield from walked(folder, yaml.safe_load((folder / include).read_text()), held, (*seen, include))
        for task in (entry[key] for key in entry if key.startswith("kubernetes.core.")):
            yield task, held


@pytest.mark.parametrize("role", USERS)
def test_every_task_of_the_cluster_takes_its_access_from_the_group(role: str) -> None:
    folder = REPO / f"roles/{role}/tasks"
    tasks = list(walked(folder, yaml.safe_load((folder / "main.yml").read_text()), {}, ("main.yml",)))
    assert tasks
    for task, held in tasks:
        assert "kubeconfig" not in task and list(held[GROUP]) == ["kubeconfig"]


def test_the_roles_that_talk_to_the_cluster() -> None:
    assert USERS == ["gateway", "gpu_runtime", "metrics", "multus", "page"]
