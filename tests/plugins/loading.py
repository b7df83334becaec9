"""Our modules by name; tests/conftest.py puts their shared utilities beside Ansible's own."""

from __future__ import annotations

import functools
import importlib.util
from types import ModuleType

from tests.places import REPO


def module(name: str, kind: str = "modules") -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPO / f"plugins/{kind}/{name}.py")
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@functools.cache
def action(name: str) -> ModuleType:
    """An action plugin's file, as Ansible loads it."""
    spec = importlib.util.spec_from_file_location(f"action_{name}", REPO / f"plugins/action/{name}.py")
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
