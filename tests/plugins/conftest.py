"""The project's module_utils, where a module looks for them on a node."""

from __future__ import annotations

from pathlib import Path

import ansible.module_utils

ansible.module_utils.__path__.append(str(Path(__file__).resolve().parents[2] / "plugins/module_utils"))
