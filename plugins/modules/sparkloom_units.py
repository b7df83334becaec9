#!/usr/bin/python
from __future__ import annotations

from functools import partial

from ansible.module_utils import sparkloom_networkd as networkd
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_read import completed

DOCUMENTATION = r"""
module: sparkloom_units
short_description: Enable, start, stop or restart several units in one run
description: [A unit that should run is enabled and active; one that should not is neither.]
options:
  units:
    type: list
    elements: dict
    required: true
    description: [Which units.]
    suboptions:
      name: {type: str, required: true, description: [With its suffix.]}
      run: {type: bool, required: true, description: ["Whether it should run, now and after a boot."]}
      now: {type: bool, default: true, description: ["False: wanted at boot, and neither started nor restarted."]}
  written:
    type: bool
    default: false
    description: [Their files were just written; systemd reads them again and what runs is restarted.]
"""

systemctl = partial(completed, "systemctl", timeout=120)
ENTRY = {
    "name": {"type": "str", "required": True},
    "run": {"type": "bool", "required": True},
    "now": {"type": "bool", "default": True},
}


def is_(word: str, unit: str) -> bool:
    return systemctl(f"is-{word}", "--quiet", unit).returncode == 0


def steps(unit: dict, written: bool) -> list[tuple[str, ...]]:
    """What systemctl has to be told, in order."""
    name, enabled, active = unit["name"], is_("enabled", unit["name"]), is_("active", unit["name"])
    if not unit["run"]:
        return [("stop", name)] * active + [("disable", name)] * enabled
    words = [] if enabled else [("enable", name)]
    if not unit["now"]:
        return words
    if active and written:
        words.append(("restart", name))
    return words if active else [*words, ("start", name)]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "list", "elements": "dict", "required": True, "options": ENTRY},
            "written": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    written = module.params["written"]
    if not module.check_mode:
        networkd.hold(module)
    if written and not module.check_mode:
        systemctl("daemon-reload")
    done: list[str] = []
    for unit in module.params["units"]:
        for words in steps(unit, written):
            done.append(" ".join(words))
            if module.check_mode:
                continue
            answer = systemctl(*words)
            if answer.returncode:
                name = unit["name"]
                why = " ".join((answer.stderr or answer.stdout).split())
                module.fail_json(msg=f"systemctl {done[-1]}: {why}; see journalctl -u {name} on the node", done=done)
    module.exit_json(changed=bool(done), done=done)


if __name__ == "__main__":
    main()
