"""The Kubernetes cluster: four kind nodes, a plain pod network between them, and what a GPU node reports."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from testbed.base import docker, names, store
from testbed.base.shell import RackError, ok, out, run
from testbed.base.steps import Say, Step
from testbed.beds import person
from testbed.beds.rack import inventory
from testbed.make import binaries, nodeimage

MARK = names.STATE / "cluster.json"
KIND_CONFIG = names.KIND_DIR / "cluster.yaml"
BIN = names.STATE / "bin"
READY_SECONDS = 180
SYSTEM = "kube-system"
KUBELET_ANSWERS = f"for i in $(seq {READY_SECONDS}); do curl -sf 127.0.0.1:10248/healthz && exit; sleep 1; done; exit 1"
NETWORK = names.CLUSTER  # a Docker network of its own: other kind clusters of this machine keep theirs
KIND_ENV = {"KIND_EXPERIMENTAL_DOCKER_NETWORK": NETWORK}


def kubectl(*words: str, stdin: str | None = None, check: bool = True, timeout: float = 200) -> str:
    tool = nodeimage.kubectl()
    command: list[str | Path] = [tool, f"--kubeconfig={names.KUBECONFIG}", *words]
    return run(command, stdin=stdin, check=check, timeout=timeout).stdout.strip()


def node_sh(container: str, script: str, *, check: bool = True) -> str:
    return run(["docker", "exec", "-i", container, "bash", "-es"], stdin=script, check=check).stdout.strip()


def everywhere(action: Any) -> list[Any]:
    """Run action(inventory name, container) on all nodes at once."""
    with ThreadPoolExecutor(len(names.NODES)) as pool:
        return list(pool.map(lambda item: action(*item), names.NODES.items()))


# --- create ------------------------------------------------------------------------------------------------


def _ids() -> dict[str, str]:
    ids = {}
    for container in docker.containers():
        ids[container] = out(["docker", "inspect", "--format", "{{.Id}}", container])
    return ids


def exists() -> bool:
    """Whether a completely made cluster is there (running or not)."""
    mark = store.read_json(MARK)
    return bool(mark) and mark.get("containers") == _ids() and set(_ids()) == set(names.NODES.values())


def is_current() -> bool:
    return store.read_json(MARK).get("image") == nodeimage.tag()  # type: ignore[comparison-overlap]


def _create(say: Say) -> None:
    kind: Path = binaries.binary("kind", "kind")
    if docker.containers():
        say("removing what is left of an unfinished or foreign cluster of this name")
        run([kind, "delete", "cluster", "--name", names.CLUSTER], env=KIND_ENV, check=False)
    names.STATE.mkdir(parents=True, exist_ok=True)
    log = names.STATE / "kind.log"
    log.unlink(missing_ok=True)
    MARK.unlink(missing_ok=True)
    say(f"kind create cluster, image {nodeimage.tag()} (log: {log})")
    command: list[str | Path] = [kind, "create", "cluster", "--name", names.CLUSTER, "--image", nodeimage.tag()]
    options: list[str | Path] = ["--config", KIND_CONFIG, "--kubeconfig", names.KUBECONFIG, "--retain", "-v", "1"]
    run([*command, *options], log=log, env=KIND_ENV, timeout=600)
    BIN.mkdir(parents=True, exist_ok=True)
    for name, target in (("kind", kind), ("kubectl", nodeimage.kubectl())):
        (BIN / name).unlink(missing_ok=True)
        (BIN / name).symlink_to(target)
    store.write_json(MARK, {"containers": _ids(), "image": nodeimage.tag(), "created": time.strftime("%F %T")})


# --- network and readiness ---------------------------------------------------------------------------------


def running() -> bool:
    states = docker.containers()
    return set(states) == set(names.NODES.values()) and set(states.values()) == {"running"}


def _start_stopped(say: Say) -> None:
    stopped = [name for name, state in docker.containers().items() if state != "running"]
    if stopped:
        say(f"starting {', '.join(sorted(stopped))}")
        run(["docker", "start", *stopped])
        names.forget_machines(inventory.path())


def nodes() -> dict[str, dict[str, str]]:
    """{container: {ip, cidr, ready}} as the API server says."""
    rows = {}
    for item in json.loads(kubectl("get", "nodes", "-o", "json"))["items"]:
        addresses = {a["type"]: a["address"] for a in item["status"]["addresses"]}
        conditions = {c["type"]: c["status"] for c in item["status"]["conditions"]}
        rows[item["metadata"]["name"]] = {
            "ip": addresses["InternalIP"],
            "cidr": item["spec"].get("podCIDR", ""),
            "ready": conditions.get("Ready", "Unknown"),
            "gpu": item["status"]["allocatable"].get("nvidia.com/gpu", "0"),
        }
    return rows


def conflist(cidr: str) -> str:
    """The default network of pods: a bridge per node with addresses out of the node's own range."""
    ipam = {"type": "host-local", "ranges": [[{"subnet": cidr}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True, "mtu": 1500}
    plugins = [{**bridge, "ipam": ipam}, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return json.dumps({"cniVersion": "0.4.0", "name": "rack-pods", "plugins": plugins})


def _network_script(container: str, known: dict[str, dict[str, str]]) -> str:
    mine = known[container]
    rule = f"POSTROUTING -s {mine['cidr']} ! -d {names.POD_SUBNET} -j MASQUERADE"
    routes = [f"ip route replace {n['cidr']} via {n['ip']}" for name, n in known.items() if name != container]
    conf = f"{names.CNI_CONF}/10-rack-pods.conflist"
    return "\n".join(
        [
            f"cat > {conf}.new <<'EOF'\n{conflist(mine['cidr'])}\nEOF",
            f"cmp -s {conf}.new {conf} && rm {conf}.new || mv {conf}.new {conf}",
            f"iptables -t nat -C {rule} 2>/dev/null || iptables -t nat -A {rule}",
            *routes,
        ]
    )


def _api_ready() -> bool:
    tool = nodeimage.kubectl()
    return ok([tool, f"--kubeconfig={names.KUBECONFIG}", "get", "--raw=/readyz"])


def _wait_api() -> dict[str, dict[str, str]]:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if _api_ready():
            known = nodes()
            if len(known) == len(names.NODES) and all(n["cidr"] for n in known.values()):
                return known
        time.sleep(1)
    raise RackError(
        f"the API server did not answer with {len(names.NODES)} nodes in {READY_SECONDS} s; see {names.STATE}/kind.log"
    )


def _join_up(say: Say) -> None:
    known = _wait_api()
    say("pod network and routes on every node")
    everywhere(lambda _, container: node_sh(container, _network_script(container, known)))
    kubectl("taint", "nodes", "--all", "node-role.kubernetes.io/control-plane-", check=False)
    say("waiting for every node to be Ready")
    # after a restart the API server still believes an old report: ask the kubelets themselves first
    everywhere(lambda _, container: node_sh(container, KUBELET_ANSWERS))
    kubectl("wait", "--for=condition=Ready", "nodes", "--all", f"--timeout={READY_SECONDS}s")
    say("waiting for one GPU on every node")
    _wait_gpus()
    # what crashed waits up to five minutes before it tries again; a new pod tries at once
    for pod in [name for name, state in _system_pods().items() if state == "CrashLoopBackOff"]:
        kubectl("-n", SYSTEM, "delete", "pod", pod, "--wait=false")
    for what in ("daemonset/kube-proxy", "deployment/coredns"):
        say(f"waiting for {what}")
        kubectl("-n", SYSTEM, "rollout", "status", what, f"--timeout={READY_SECONDS}s")


def _system_pods() -> dict[str, str]:
    """{pod: `ready`, or why it is not}, of Kubernetes' own."""
    states = {}
    for pod in json.loads(kubectl("-n", SYSTEM, "get", "pods", "-o", "json"))["items"]:
        containers = pod["status"].get("containerStatuses", [])
        ready = bool(containers) and all(c["ready"] for c in containers)
        waiting = [c["state"]["waiting"].get("reason", "") for c in containers if "waiting" in c["state"]]
        states[pod["metadata"]["name"]] = "ready" if ready else (waiting or [pod["status"]["phase"]])[0]
    return states


def _has_gpu(node: dict[str, str]) -> bool:
    """One, or as many time slices as the product offers where several groups are served."""
    return node["gpu"] != "0"


def _wait_gpus() -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not all(map(_has_gpu, (known := nodes()).values())) or set(known) != set(names.NODES.values()):
        if time.monotonic() > deadline:
            gpus = {name: row["gpu"] for name, row in known.items()}
            raise RackError(f"expected an nvidia.com/gpu on each node, found {gpus}; see sparkloom-gpu.service there")
        time.sleep(0.5)


def _joined() -> bool:
    if not running() or not _api_ready():
        return False
    known = nodes()
    if len(known) != len(names.NODES) or any(n["ready"] != "True" or not _has_gpu(n) for n in known.values()):
        return False
    routed = f"[ $(ip route | grep -c ' via .* dev eth0') -ge {len(names.NODES)} ]"
    whole = all(ok(["docker", "exec", c, "bash", "-c", routed]) for c in names.NODES.values())
    return whole and all(state == "ready" for state in _system_pods().values())


def steps() -> list[Step]:
    return [
        Step("cluster", "creates four Kubernetes nodes with kind", exists, _create),
        Step("power", "starts the nodes that are off", running, _start_stopped),
        Step("login", f"an ordinary user on each node ({person.USER}), as on a Spark", _known, _introduce),
    ]


SSH = names.STATE / "ssh"
BY_CONTAINER = {container: container for container in names.NODES.values()}  # what the inventory calls them by


def _known() -> bool:
    return person.known(SSH, BY_CONTAINER)


def _introduce(say: Say) -> None:
    names.forget_machines(inventory.path())
    person.introduce(SSH, BY_CONTAINER)
    say(f"ssh -F {SSH}/config {names.NODES['spark1']}")


def joining() -> list[Step]:
    """After the rails: a machine has its network cards when it starts, and its pods ask for them at once."""
    return [Step("network", "pod network, node readiness, DNS, one GPU per node", _joined, _join_up)]
