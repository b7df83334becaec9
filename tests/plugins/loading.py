"""Our modules as Ansible would load them: their shared utilities lie beside Ansible's own."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import ansible.module_utils

REPO = Path(__file__).resolve().parents[2]
UTILITIES = str(REPO / "plugins/module_utils")


def module(name: str) -> ModuleType:
    if UTILITIES not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(UTILITIES)
    spec = importlib.util.spec_from_file_location(name, REPO / f"plugins/modules/{name}.py")
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
