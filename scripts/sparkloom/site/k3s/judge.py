"""What to do on each machine, from what was read there; refused first, for all machines together.

And which images its nodes take beside K3s' own, where no registry gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparkloom.base.finding import Finding
from sparkloom.inputs import lock_file
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.image_recipes import HOST
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import resolve
from sparkloom.onnode.host.read import digest
from sparkloom.onnode.images import reference
from sparkloom.render.k3s import machines, paths
from sparkloom.render.k3s.machines import ARCHITECTURES, artifacts
from sparkloom.render.k3s.options import Options, release
from sparkloom.site import images
from sparkloom.site.image_archives import Need

State = Mapping[str, Any]


def refusals(host: str, wanted: Mapping[str, Any], state: State, options: Options) -> Iterator[Finding]:
    """Why nothing must be changed on this machine."""
    if state["machine"] not in ARCHITECTURES:
        expected = " or ".join(ARCHITECTURES)
        yield Finding(host, "architecture", state["machine"], expected, "K3s needs another machine here")
        return
    for item in artifacts(options, state["machine"]):
        if not item["sha256"]:
            page = item["url"].rpartition("/")[0]
            advice = (
                f"name it in versions.yml; it stands beside the release's files ({page}/), where there is a way out"
            )
            yield Finding(host, item["name"], "no checksum", f"{item['variable']}", advice)
    yield from _others(host, wanted, state, options)
    yield from _ports(host, wanted, state["addresses"])
    yield from _version(host, state, options)


def _others(host: str, wanted: Mapping[str, Any], state: State, options: Options) -> Iterator[Finding]:
    if state["kubelet"]:
        advice = "stop and remove that cluster, or set cluster.kubernetes.provider: existing in cluster.yml"
        yield Finding(host, "kubelet.service", "another Kubernetes that runs here", "none", advice)
    for role, service in paths.SERVICES.items():
        unit = state["units"][service]
        if unit["exists"] and not unit["ours"] and not options.adopt:
            found = f"a K3s that something else installed ({paths.unit(role)})"
            advice = "k3s_adopt: true takes it over with its data; or set cluster.kubernetes.provider: existing"
            yield Finding(host, "K3s", found, "none, or one of sparkloom's", advice)
        elif unit["active"] and role != wanted["role"]:
            away = "playbooks/teardown.yml -e teardown_cluster=true takes K3s off, with its data (docs/own-sparks.md)"
            advice = f"change k3s_servers in hosts.yml, or begin anew: {away}"
            yield Finding(host, "K3s", f"a running {service}", wanted["service"], advice)
    if not state["default_route"]:
        advice = "give the management port a gateway in netplan; any address will do where there is no way out"
        yield Finding(host, "default route", "none", "one: K3s takes its addresses from it and ends without", advice)


def _ports(host: str, wanted: Mapping[str, Any], found: Mapping[str, list[str]]) -> Iterator[Finding]:
    """K3s would wait for its port for ever, and kubelet for its address."""
    if not found:
        return
    interface, there = wanted["interface"], ", ".join(sorted(found))
    if not found.get(interface):
        what = f"{interface} has no address" if interface in found else f"no {interface} (ports: {there})"
        advice = "management_interface in cluster.yml, or of a server in hosts.yml; or set the port up in netplan"
        yield Finding(host, "management port", what, f"{interface} with {', '.join(wanted['addresses'])}", advice)
        return
    for address in wanted["addresses"]:
        if not any(address in held for held in found.values()):
            what = f"no port with {address} ({interface} has {', '.join(found[interface])})"
            yield Finding(host, "management address", what, address, "management_address in hosts.yml, or netplan")


def _version(host: str, state: State, options: Options) -> Iterator[Finding]:
    if not state["version"]:
        return
    here, there = release(state["version"]), release(options.version)
    if there < here:
        advice = "Kubernetes cannot go back: k3s_version in versions.yml, or restore a snapshot of before"
        yield Finding(host, "K3s", state["version"], f"{options.version} or older", advice)
    elif there[:1] != here[:1] or there[1] - here[1] > 1:
        advice = f"one minor release at a time: first a {here[0]}.{here[1] + 1} in versions.yml"
        yield Finding(host, "K3s", state["version"], f"at least 1.{there[1] - 1}, to go to {options.version}", advice)


def warnings(host: str, state: State) -> Iterator[Finding]:
    for path in state["dropins"]:
        advice = f"say it in k3s_server_config or k3s_agent_config, and remove {path}"
        yield Finding(host, "K3s", f"{path}, which K3s reads over our config.yaml", "no such file", advice, "warning")


def doubts(options: Options) -> Iterator[Finding]:
    """What a site chose and may regret."""
    for argument in options.kubelet_args:
        if argument.startswith("eviction-") and "memory.available" in argument:
            found = f"{argument}: kubelet counts page cache as used, and ends the pod that just read its weights"
            advice = "leave memory.available out: that job is the memory guard's (node_base_memory_floor_gib)"
            yield Finding("k3s_kubelet_args", "eviction", found, "no threshold of memory", advice, "warning")


def registry(image: str) -> str:
    return reference.parse(image).name.partition("/")[0]


def mirrored(options: Options, image: str) -> bool:
    """Whether a registry of the site's own gives this image."""
    mirrors = options.registries.get("mirrors", {})
    return any((mirrors.get(host) or {}).get("endpoint") for host in ("*", registry(image)))


def unmirrored(options: Options, images: Sequence[str]) -> Iterator[Finding]:
    """A folder of release files stands for the network, but images still come from their registries."""
    hosts = sorted({registry(image) for image in images if not mirrored(options, image)})
    if options.artifacts and options.images_from == "registries" and hosts:
        found = (
            f"nodes pull from {', '.join(hosts)} and the engine's registry; k3s_artifacts holds K3s' own images only"
        )
        advice = "without a way out: k3s_images_from: archives, or a registry of yours in k3s_registries; else nothing"
        yield Finding("k3s_registries", "images", found, "a mirror with an endpoint for each", advice, "warning")


def missing(state: State, options: Options) -> list[dict[str, Any]]:
    """The programs that are not there, or not as they were installed."""
    return [
        item
        for item in artifacts(options, state["machine"])
        if state["programs"].get(item["name"], {}) != {"sha256": item["sha256"], "intact": True}
    ]


def reasons(wanted: Mapping[str, Any], state: State, options: Options, tokens: Mapping[str, str]) -> list[str]:
    """Why K3s must be started or restarted here; nothing when it was started with all of this and its node lives."""
    unit = state["units"][wanted["service"]]
    if not unit["active"]:
        return [f"{wanted['service']} does not run"]
    if not unit["enabled"]:
        return [f"{wanted['service']} is not started at boot"]
    expected = {**wanted["expected"], paths.BINARY: options.sha256[ARCHITECTURES[state["machine"]]], **tokens}
    stamp = state["stamp"]
    found = [f"{path} is not what K3s was started with" for path, hash_ in expected.items() if stamp.get(path) != hash_]
    if state["nvidia"] and not state["nvidia_known"]:
        found.append(f"{state['nvidia']} came after K3s' start")
    if not found and state["waits"]:
        return [unwell(wanted, state)]
    return found


def unwell(wanted: Mapping[str, Any], state: State) -> str:
    """A unit that runs says nothing of its node: an agent that is not let in asks for ever, and is active."""
    return f"{wanted['service']} runs, node {wanted['node']} does not: still waiting for {state['waits']}"


def sequence(planned: Mapping[str, Any], hosts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Who is restarted alone, in this order: servers, then agents that run. Agents that never ran join together."""

    def alone(name: str) -> bool:
        wanted, now = planned[name], hosts[name]
        return bool(now["reasons"]) and not wanted["first"] and (wanted["role"] == "server" or now["running"])

    order = sorted((name for name in hosts if alone(name)), key=lambda name: planned[name]["role"] != "server")
    return [{"host": name, **{key: planned[name][key] for key in ("service", "node")}, **hosts[name]} for name in order]


def together(planned: Mapping[str, Any], hosts: Mapping[str, Any]) -> list[str]:
    """Agents that never ran: nothing depends on them yet."""
    return [n for n, now in hosts.items() if now["reasons"] and not now["running"] and planned[n]["role"] == "agent"]


def held(folder: str, items: list[dict[str, Any]]) -> Iterator[Finding]:
    """Judge a folder of the controller that stands for the network: whole, or refused before a byte is sent."""
    for item in {item["name"]: item for item in items}.values():
        path = Path(folder).expanduser() / item["name"]
        if not path.is_file():
            advice = f"put it there (from {item['url']}), or set k3s_artifacts to nothing to download it"
            yield Finding("localhost", item["name"], f"no such file in {folder}", "the release's own file", advice)
        elif (found := digest(path)) != item["sha256"]:
            advice = f"another file, or {item['variable']} in versions.yml"
            yield Finding("localhost", item["name"], f"sha256 {found}", item["sha256"], advice)


def every(options: Options, cluster: Cluster, ours: Mapping[str, str], engines: Sequence[Need]) -> list[Need]:
    """`ours`: images by the variables that name them, empty where a site has none.

    Nothing where registries are asked, or one of the site's gives all.
    """
    if not options.artifacts or options.images_from == "registries":
        return []
    sparks = tuple(node.name for node in cluster.nodes)
    daemons = machines.members(cluster) if ours["multus_image"] and cluster.fabric.rails else []
    where = {
        "multus_image": tuple(member.name for member in daemons),
        "gpu_runtime_image": sparks if cluster.expect_gb10 else (),
        "gateway_router_image": sparks,
    }
    found = [
        Need(image, reference.parse(image).digest, where[variable], variable)
        for variable, image in ours.items()
        if image and where[variable]
    ]
    # what is built here cannot come before the cluster that it is built for
    from_elsewhere = [need for need in [*found, *engines] if registry(need.image) != HOST]
    return [need for need in from_elsewhere if not mirrored(options, need.image)]


def engine(loaded: LoadedProfile, nodes: Sequence[str], take: str, lock: Path) -> Need:
    """`take`: a digest that somebody chose for it."""
    image = resolve.image_reference(loaded)
    wanted = images.wanted(image, lock_file.read(lock, lock_file.Image), take, str(lock))
    return Need(image, wanted.given, tuple(nodes), f"profile {loaded.name}")
