"""What each machine should have: its part in the cluster, its files, the programs to install."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sparkloom.base.errors import InputError, Problem
from sparkloom.inputs.cluster import Cluster, Node, Server
from sparkloom.render.k3s import config, flags, paths
from sparkloom.render.k3s.config import Machine
from sparkloom.render.k3s.options import Options

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PLUGINS = ("host-device", "static")  # what the rails' attachments name, and K3s does not bring


def every(cluster: Cluster) -> list[Machine]:
    """Sparks first. A server beside them is no concern of a site whose Kubernetes is there already."""
    ours = cluster.kubernetes.provider == "k3s"
    sparks = {node.name: node for node in cluster.nodes}
    servers = {server.name: server for server in cluster.servers}
    serving = list(servers) or [cluster.nodes[0].name]
    beside = [server for name, server in servers.items() if name not in sparks] if ours else []
    listed: list[Node | Server] = [*cluster.nodes, *beside]
    return [
        Machine(
            name=each.name,
            node=each.kubernetes_node,
            role=("server" if each.name in serving else "agent") if ours else "",
            address=each.management_address or "",
            interface=(servers[each.name].management_interface if each.name in servers else None)
            or cluster.management_interface,
            first=each.name == serving[0],
            fabric_index=sparks[each.name].fabric_index if each.name in sparks else None,
        )
        for each in listed
    ]


def members(cluster: Cluster) -> list[Machine]:
    """Servers first, in the order of the group k3s_servers; every other Spark is an agent."""
    order = [server.name for server in cluster.servers] or [cluster.nodes[0].name]
    found = sorted(every(cluster), key=lambda each: order.index(each.name) if each.name in order else len(order))
    missing = "management_address is missing; K3s joins and serves by it"
    problems = [
        Problem("hosts.yml", 1, 1, f"{each.name}: {missing}", "missing-key") for each in found if not each.address
    ]
    if len(order) not in (1, 3, 5):
        message = f"k3s_servers: found {len(order)} servers; etcd survives a loss only with an odd number: 1 or 3"
        problems.append(Problem("hosts.yml", 0, 0, message, "servers"))
    for attribute, values in (
        ("management_address", [each.address for each in found]),
        ("kubernetes_node", [each.node for each in found]),
    ):
        for value in {v for v in values if v and values.count(v) > 1}:
            problems.append(Problem("hosts.yml", 0, 0, f"{attribute}: {value} stands there twice", "twice"))
    if problems:
        raise InputError(problems)
    return found


def plan(cluster: Cluster, options: Options) -> dict[str, Any]:
    """{host: what it should have}, and who is first."""
    every = members(cluster)
    hosts = {member.name: _host(cluster, every, member, options) for member in every}
    return {"hosts": hosts, "first": every[0].name, "api": f"https://{config.joined_at(every, options)}:{config.PORT}"}


def _host(cluster: Cluster, every: list[Machine], member: Machine, options: Options) -> dict[str, Any]:
    told = config.config(cluster, every, member, options)
    flags.require(options.version, member.role, told, f"k3s_{member.role}_config")
    files = {
        paths.CONFIG: (config.text(told), "0600"),
        paths.REGISTRIES: (config.text(config.registries(options)), "0600"),
        paths.SYSCTL: (config.SYSCTL.read_text(encoding="utf-8"), "0644"),
        paths.unit(member.role): (config.unit(member, options), "0644"),
    }
    if member.role == "server":
        files[paths.AUDIT] = (config.AUDIT.read_text(encoding="utf-8"), "0600")
    return {
        "role": member.role,
        "first": member.first,
        "node": member.node,
        "interface": told["flannel-iface"],
        "addresses": _each(told["node-ip"]),
        "service": paths.SERVICES[member.role],
        "files": [{"path": path, "content": content, "mode": mode} for path, (content, mode) in files.items()],
        "expected": {path: digest(content) for path, (content, _) in files.items()},
    }


def _each(given: Any) -> list[str]:
    """Addresses as K3s takes them: one, several with commas, or a list."""
    return [one.strip() for item in (given if isinstance(given, list) else [given]) for one in str(item).split(",")]


def secrets(host: Mapping[str, Any], tokens: Mapping[str, str]) -> dict[str, str]:
    """Token files of a machine that joins; the first server makes its own."""
    if host["first"]:
        return {}
    joining = {paths.TOKEN: tokens[host["role"]]}
    return joining | ({paths.AGENT_TOKEN: tokens["agent_passphrase"]} if host["role"] == "server" else {})


def artifacts(options: Options, machine: str) -> list[dict[str, Any]]:
    """What a machine of this kind needs, with where each thing comes from and goes to."""
    arch = ARCHITECTURES[machine]
    k3s = f"{options.url}/{options.version.replace('+', '%2B')}"
    program = "k3s" if arch == "amd64" else f"k3s-{arch}"
    plugins = f"{options.cni_version}/cni-plugins-linux-{arch}-{options.cni_version}.tgz"
    images = f"k3s-airgap-images-{arch}.tar.zst"
    links = {f"{paths.CNI}/{plugin}": plugin for plugin in PLUGINS}

    def artifact(url: str, variable: str, sums: Mapping[str, str], files: Mapping[str, str | None]) -> dict[str, Any]:
        name, sha256 = url.rpartition("/")[2], sums.get(arch, "")
        return {"name": name, "url": url, "sha256": sha256, "variable": f"{variable}.{arch}", "files": files}

    needed = [
        artifact(f"{k3s}/{program}", "k3s_sha256", options.sha256, {paths.BINARY: None}),
        artifact(f"{options.cni_url}/{plugins}", "k3s_cni_sha256", options.cni_sha256, links),
    ]
    if options.artifacts:
        place = {f"{paths.IMAGES}/{images}": None}
        needed.append(artifact(f"{k3s}/{images}", "k3s_images_sha256", options.images_sha256, place))
    return needed


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
