"""The project's module_utils, where a module looks for them on a node."""

from __future__ import annotations

import ansible.module_utils

from tests.places import REPO

ansible.module_utils.__path__.append(str(REPO / "plugins/module_utils"))
