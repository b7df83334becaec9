#!/usr/bin/python
from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: sparkloom_k3s_others
short_description: Name what others keep in K3s' folders on a machine
description:
  - Volumes of the local provisioner, containers that Kubernetes does not know, and pods by the names of their logs.
  - Reads only; it needs no API server, so that it also tells of a cluster that no longer runs.
options:
  volumes: {type: path, required: true, description: [Where the local provisioner keeps volumes.]}
  containers: {type: path, required: true, description: ["containerd's folder of running containers, by namespace."]}
  logs: {type: path, required: true, description: [Where kubelet keeps pods' output.]}
  ours:
    type: list
    elements: str
    required: true
    description: [Namespaces whose pods are Kubernetes' or ours.]
"""
KUBERNETES = "k8s.io"  # containerd's namespace of all that kubelet runs


def inside(folder: Path) -> list:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def others(args: dict) -> list:
    """As a person reads it; `ctr` and its like run containers beside kubelet's."""
    spaces = [space for space in inside(Path(args["containers"])) if space.name != KUBERNETES]
    # kubelet calls a pod's folder NAMESPACE_NAME_UID
    pods = [path.name.split("_") for path in inside(Path(args["logs"]))]
    return [
        *(f"volume {path}" for path in inside(Path(args["volumes"]))),
        *(f"container {path.name} (containerd's namespace {space.name})" for space in spaces for path in inside(space)),
        *(f"pod {pod[0]}/{pod[1]}" for pod in pods if len(pod) > 1 and pod[0] not in args["ours"]),
    ]


def main() -> None:
    path = {"type": "path", "required": True}
    module = AnsibleModule(
        argument_spec={
            "volumes": path,
            "containers": path,
            "logs": path,
            "ours": {"type": "list", "elements": "str", "required": True},
        },
        supports_check_mode=True,
    )
    module.exit_json(changed=False, others=others(module.params))


if __name__ == "__main__":
    main()
