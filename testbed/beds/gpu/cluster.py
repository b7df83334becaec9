"""A cluster of this one machine: Kubernetes' own programs, etcd, containerd with NVIDIA's runtime, two CNI plugins.

What `render` wrote goes to its API server as it is. Two things are stand-ins. An image of an engine has tens of GB:
here each image is an empty layer over which the machine's own root is mounted, with the environment of that image. And
there is no K3s around it: the RuntimeClass and containerd's lines for NVIDIA's runtime are those that K3s writes.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from testbed.beds.gpu import place
from testbed.beds.gpu.container import PATH
from testbed.make import oci

KUBE, PLUGINS, HOME = place.ROOT / "kube", place.ROOT / "cni", Path("/run/sparkloom-kube")
TOKEN, NODE, API, HOST = "t" * 40, "spark1", "https://127.0.0.1:6443", "10.99.0.1"
PAUSE = "localhost/sparkloom-testbed/pause:1"
MARK = "machine-root"  # in the empty layer, to find it again
SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubeadm")
PLURALS = {"NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses", "RuntimeClass": "runtimeclasses"}
RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia",
}  # fmt: skip
CONTAINERD = f"""version = 2
root = "{HOME}/containerd"
state = "{HOME}/state"
[grpc]
address = "{HOME}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PLUGINS}"
conf_dir = "{HOME}/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes."runc"]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes."nvidia"]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes."nvidia".options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
NETWORK = {
    "cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {
        "type": "host-local", "dataDir": f"{HOME}/ipam", "ranges": [[{"subnet": "10.98.0.0/24"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }}],
}  # fmt: skip
KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"}, "containerRuntimeEndpoint": f"unix://{HOME}/containerd.sock",
    "failSwapOn": False, "enforceNodeAllocatable": [], "resolvConf": "", "localStorageCapacityIsolation": False,
    "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
    "imageGCHighThresholdPercent": 100,
}  # fmt: skip


def absent() -> str:
    """Why there is none here; empty where its programs are."""
    packed = place.ROOT / "cluster.tar.xz"
    if packed.exists() and not KUBE.is_dir():
        place.done(["tar", "-C", place.ROOT, "-xJf", packed], 120)
    return "" if KUBE.is_dir() else f"no {packed}: the pack's folder `cluster` brings it"


def image(names: list[str], env: Iterable[str] = (), **told: Any) -> oci.Image:
    """The machine's own root as an image."""
    tree = HOME / "layer"
    tree.mkdir(parents=True, exist_ok=True)
    (tree / MARK).touch()
    return oci.Image(names, [oci.pack(tree, HOME / "layers")], {"Env": [f"PATH={PATH}", *env], **told})


class Cluster:
    def __init__(self, engine: str, plugin: str) -> None:
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.engine, self.plugin = engine, plugin

    def __enter__(self) -> Cluster:
        try:
            self._prepare()
            self._containerd()
            self._control_plane()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        """The node's pods end with it, then its programs."""
        for name in reversed(self.processes):
            self.processes[name].terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def _prepare(self) -> None:
        HOME.mkdir(parents=True, exist_ok=True)
        if not os.path.ismount(HOME):  # an overlay's upper folder may lie on no overlay
            place.done(["mount", "-t", "tmpfs", "-o", "size=20g", "kube", HOME])
        for name in ("net.d", "api"):
            (HOME / name).mkdir(exist_ok=True)
        for name in SERVERS:
            (KUBE / name).unlink(missing_ok=True)
            (KUBE / name).hardlink_to(KUBE / "kubernetes")
        (HOME / "net.d/10-pods.conflist").write_text(json.dumps(NETWORK))
        (HOME / "containerd.toml").write_text(CONTAINERD)
        (HOME / "kubelet.json").write_text(json.dumps(KUBELET))
        (HOME / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        told = {"name": "here", "cluster": {"server": API, "insecure-skip-tls-verify": True}}
        (HOME / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "here", "clusters": [told],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
            "users": [{"name": "here", "user": {"token": TOKEN}}],
        }))  # fmt: skip

    def _start(self, name: str, *words: str | Path) -> None:
        env = {**os.environ, "PATH": f"{KUBE}:/usr/local/sbin:{os.environ['PATH']}:/usr/sbin:/sbin"}
        env.pop("PYTHONPATH", None)
        with (place.OUT / f"kube-{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen([KUBE / name, *words], stdout=log, stderr=log, env=env, cwd="/")

    def _containerd(self) -> None:
        self._start("containerd", "--config", HOME / "containerd.toml")
        (HOME / "pause").mkdir(exist_ok=True)
        shutil.copy(KUBE / "pause", HOME / "pause/pause")
        pause = oci.Image([PAUSE], [oci.pack(HOME / "pause", HOME / "layers")], {"Entrypoint": ["/pause"]})
        gpus = ["NVIDIA_VISIBLE_DEVICES=all"]
        engine = image([self.engine], [*gpus, "NVIDIA_DRIVER_CAPABILITIES=compute,utility", f"PYTHONPATH={place.SITE}"])
        tagged, _, digest = self.plugin.partition("@")  # of a reference with both, CRI looks for the digest alone
        plugin = image(
            [f"{tagged.rpartition(':')[0]}@{digest}" if digest else tagged],
            [*gpus, "NVIDIA_DRIVER_CAPABILITIES=utility"], Entrypoint=["/usr/bin/nvidia-device-plugin"],
        )  # fmt: skip
        oci.write([pause, engine, plugin], HOME / "images.tar")
        ctr = [KUBE / "ctr", "--address", HOME / "containerd.sock", "--namespace", "k8s.io", "images"]
        self.until("containerd", lambda: place.done([*ctr, "list", "-q"])[0] == 0, 20)
        code, said = place.done([*ctr, "import", HOME / "images.tar"], 60)
        assert code == 0, said
        layers = list((HOME / "containerd").glob(f"io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs/{MARK}"))
        assert layers, said
        for layer in layers:
            code, said = place.done(["mount", "--bind", "/", layer.parent])
            assert code == 0, said

    def _control_plane(self) -> None:
        code, said = place.done([KUBE / "kubeadm", "init", "phase", "certs", "sa", "--cert-dir", HOME])
        assert code == 0, said
        config = ("--kubeconfig", HOME / "kubeconfig")
        self._start(
            "etcd", "--data-dir", HOME / "etcd", "--unsafe-no-fsync",
            *("--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379"),
        )  # fmt: skip
        self._start(
            "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--service-cluster-ip-range=10.97.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={HOME}/sa.pub",
            f"--service-account-signing-key-file={HOME}/sa.key", f"--token-auth-file={HOME}/tokens.csv",
            "--authorization-mode=AlwaysAllow", f"--cert-dir={HOME}/api", "--bind-address=127.0.0.1",
            f"--advertise-address={HOST}", "--endpoint-reconciler-type=none", "--allow-privileged=true",
        )  # fmt: skip
        self.until("kube-apiserver", lambda: self.ask("GET", "/readyz")[0] == 200, 60)
        manager = ("--leader-elect=false", f"--service-account-private-key-file={HOME}/sa.key")
        self._start("kube-controller-manager", *config, *manager)
        self._start("kube-scheduler", *config, "--leader-elect=false")
        kubelet = ("--config", HOME / "kubelet.json", "--hostname-override", NODE, "--node-ip", HOST)
        self._start("kubelet", *config, *kubelet)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{API}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as answer:
                said = answer.read().decode()
                return answer.status, json.loads(said) if said.startswith("{") else said
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def apply(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Each as it is."""
        for one in objects:
            code, said = self.ask("POST", folder(one), one)
            assert code in (200, 201, 409), f"{one['kind']} {one['metadata']['name']}: {code} {said}"

    def get(self, path: str) -> dict[str, Any]:
        code, said = self.ask("GET", path)
        return dict(said) if code == 200 else {}

    def node(self) -> dict[str, Any]:
        return dict(self.get(f"/api/v1/nodes/{NODE}").get("status", {}))

    def pods(self, namespace: str) -> list[dict[str, Any]]:
        return list(self.get(f"/api/v1/namespaces/{namespace}/pods").get("items", []))

    def until(self, what: str, so: Callable[[], Any], seconds: float) -> float:
        """Seconds until it was so; the end of a program's log, or of what happened, where it was not."""
        begun = time.monotonic()
        while not so():
            dead = [name for name, process in self.processes.items() if process.poll() is not None]
            if dead or time.monotonic() - begun > min(seconds, place.left()):
                raise AssertionError(f"{what}: ended: {dead}; {self._why(dead or [what])}")
            time.sleep(0.3)
        return time.monotonic() - begun

    def _why(self, programs: list[str]) -> str:
        logs = [place.OUT / f"kube-{name}.log" for name in programs]
        ends = [log.read_text(errors="replace")[-1500:] for log in logs if log.exists()]
        events = self.get("/api/v1/events").get("items", [])
        return "\n".join([*ends, *(f"{one['reason']}: {one.get('message')}"[:300] for one in events[-12:])])


def folder(one: Mapping[str, Any]) -> str:
    """The path of its kind in the API."""
    version, namespace = one["apiVersion"], one["metadata"].get("namespace")
    kind = PLURALS.get(one["kind"], f"{one['kind'].lower()}s")
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/{'api' if version == 'v1' else 'apis'}/{version}{within}/{kind}"


def secret(name: str, namespace: str, texts: Mapping[str, str]) -> dict[str, Any]:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}
