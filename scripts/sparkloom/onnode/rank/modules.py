"""Packages that a flag of this launch needs: looked for before the weights are read, not minutes into the load."""

from __future__ import annotations

from collections.abc import Callable

from sparkloom.onnode.rank import causes, patching
from sparkloom.onnode.rank.plan import GroupPlan


def there(name: str) -> bool:
    return patching.spec(name) is not None


def missing(plan: GroupPlan, found: Callable[[str], bool] = there) -> str:
    """The cause that the engine would end with, in the rules' words; empty where nothing is known to be missing.

    An engine that this Python does not see lives in an environment of its own: nothing is said about that one.
    """
    if not plan.package or not found(plan.package):
        return ""
    for entry in plan.modules:
        if not found(entry["module"]):
            line = (
                f"ModuleNotFoundError: No module named '{entry['module']}', which {entry['flag']} needs in this image"
            )
            return causes.named([line], plan.patterns)
    return ""
