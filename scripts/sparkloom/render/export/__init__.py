"""A judged launch for people without Kubernetes: a sparkrun recipe, a compose file, or plain commands per node.

Beside the commands stands what no command holds (`kept`), so that `sparkloom import` makes the same profile of it.
What people change in a command is in the profile then; what they leave is what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sparkloom.inputs.importers import source
from sparkloom.launch import engines
from sparkloom.launch.imported.draft import draft
from sparkloom.launch.resolve import Launch
from sparkloom.render.export import commands, compose, kept, sparkrun

Writer = Callable[[Launch, Mapping[str, Any]], str]
FORMS: Mapping[str, Writer] = {"sparkrun": sparkrun.write, "compose": compose.write, "commands": commands.write}


def text(launch: Launch, form: str) -> str:
    """Written, read back, and written again with those values that do not come back of themselves."""
    write = FORMS[form]
    facts = kept.of(launch)
    found = source.read(write(launch, facts), form, engines.programs())
    facts["launch"] = kept.respelled(launch, draft(found, form).data["launch"])
    return write(launch, {key: value for key, value in facts.items() if value})


def not_carried(launch: Launch) -> list[str]:
    """What a pod does for a launch and these forms do not."""
    patches = launch.profile.profile.engine.patches
    said = [f"source patch {name}: a rank applies it at its start; take an image that has it" for name in patches]
    consents = launch.profile.profile.model.runs_unpinned_code_of
    said += [f"consent to run the code of {name}: each person gives that for their own Sparks" for name in consents]
    if len(launch.ranks) > 1:
        said.append("the supervisor: when one rank ends, nobody restarts the group; stop all and start all")
    return said
