#!/usr/bin/python
from __future__ import annotations

from pathlib import Path

from ansible.module_utils import sparkloom_definitions as definitions
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: sparkloom_definitions
short_description: Read what defines a node's network ports
description:
  - Netplan's files, profiles of NetworkManager, files of networkd, and the live addresses. Changes nothing.
options:
  sysfs_root: {type: path, default: /sys, description: [Where sysfs is mounted.]}
"""


def main() -> None:
    module = AnsibleModule(argument_spec={"sysfs_root": {"type": "path", "default": "/sys"}}, supports_check_mode=True)
    found = {"files": definitions.definitions(), "links": definitions.links(Path(module.params["sysfs_root"]))}
    module.exit_json(changed=False, network=found)


if __name__ == "__main__":
    main()
