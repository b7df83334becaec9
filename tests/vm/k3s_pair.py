"""K3s itself for the virtual machines: two Sparks as agents with a kernel of their own, and their server beside them.

The server runs on this computer, in a network namespace that the machines reach by their management port: emulated it
would miss its own leases. Pods run on the two machines alone, so what they say crosses the LAN between the two.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from sparkloom.render.k3s import machines, paths
from testbed.base import vm_names
from testbed.base.vm_names import Machine
from testbed.beds.vm import login
from testbed.make import binaries, oci
from testbed.make.real import k3s
from testbed.make.vm import trees
from tests.k3s_sites import chosen, site
from tests.until import until

FOLDER = vm_names.STATE / "k3s"
ROOT, PID = FOLDER / "server", FOLDER / "server.pid"
SERVER, LAN = "box1", "lan"
NAMESPACE, PORT = "slvm-k3s", "slvm-k3s"
GATEWAY = "10.0.2.2"  # this computer, as QEMU's user network shows it; K3s ends where no default route is
IMAGE = "localhost/sparkloom/busybox:1"
# What no pod of ours needs here; each would run emulated, or want an image that was never packed.
WITHOUT = ("--disable=coredns,servicelb,local-storage,metrics-server,traefik", "--disable-kube-proxy",
           "--disable-network-policy", "--disable-helm-controller")  # fmt: skip
# A server that is no node: it has no containers, and its folders lie over this computer's for itself only.
START = """mount --make-rprivate /
for folder in etc/rancher var/lib/rancher; do mkdir -p /$folder; mount --bind "$0/$folder" /$folder; done
exec "$@" """
SUMS = {"amd64": "0" * 64}  # of files that nobody downloads here
# Machines that are emulated beside others' work miss their leases, and are no worse for it.
ALONE = "leader-elect=false"
SLOW = {"embedded-registry": False, "kube-controller-manager-arg": ["node-monitor-grace-period=10m", ALONE],
        "kube-scheduler-arg": [ALONE], "kube-cloud-controller-manager-arg": [ALONE]}  # fmt: skip
PATIENCE = 1200  # seconds; beside a whole CI run two nodes took 840 to be Ready
patiently = partial(until, despite=(AssertionError, subprocess.TimeoutExpired))
RESERVED = "reserved="  # as much memory as these machines have


def planned(backend: str | None) -> dict[str, Any]:
    """What our renderer gives each machine; without a word of the site on the backend, its own choice."""
    given: dict[str, Any] = {"k3s_version": k3s.RELEASE, "k3s_sha256": SUMS, "k3s_images_sha256": SUMS}
    given["k3s_server_config"] = SLOW | ({"flannel-backend": backend} if backend else {})
    arguments = [argument for argument in chosen().kubelet_args if RESERVED not in argument]
    cluster = site([SERVER], nodes=2).model_copy(update={"management_interface": LAN})
    return machines.plan(cluster, chosen(k3s_kubelet_args=arguments, **given))


class Pair:
    """To be closed, whatever happens: server and namespace outlive us."""

    def __init__(self, agents: list[Machine], backend: str | None) -> None:
        self.agents, self.plan = agents, planned(backend)

    def stands(self) -> bool:
        """Whether an earlier session kept it."""
        return _is_k3s(_server()) and len(self.asked("get nodes")["items"]) == len(self.agents)

    def address(self, name: str) -> str:
        return str(self.plan["hosts"][name]["addresses"][0])

    def files(self, name: str) -> dict[str, tuple[str, int]]:
        return {file["path"]: (file["content"], int(file["mode"], 8)) for file in self.plan["hosts"][name]["files"]}

    # --- the server -----------------------------------------------------------------------------------------

    def cable(self) -> None:
        """The namespace, with an address that the machines' management port leads to."""
        self.close()
        server = self.address(SERVER)
        for words in (
            f"netns add {NAMESPACE}",
            f"link add {PORT} type veth peer name {LAN} netns {NAMESPACE}",
            f"link set {PORT} up",
            f"address add {server.rpartition('.')[0]}.254/24 dev {PORT}",
            f"-n {NAMESPACE} link set lo up",
            f"-n {NAMESPACE} link set {LAN} up",
            f"-n {NAMESPACE} address add {server}/24 dev {LAN}",
            f"-n {NAMESPACE} route add default via {server.rpartition('.')[0]}.254",
        ):
            login.run(["ip", *words.split()])

    def serve(self) -> None:
        """Start the server, or start it again, with the files of the plan."""
        self.end_server()
        tokens = {paths.TOKEN: ("of-servers\n", 0o600), paths.AGENT_TOKEN: ("of-agents\n", 0o600)}
        for path, (content, mode) in (self.files(SERVER) | tokens).items():
            target = ROOT / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
            target.chmod(mode)
        (ROOT / "var/lib/rancher").mkdir(parents=True, exist_ok=True)
        inside = ["ip", "netns", "exec", NAMESPACE, "unshare", "--mount", "sh", "-ec", START, str(ROOT)]
        command = [*inside, str(k3s.program()), "server", "--disable-agent", *WITHOUT]
        with (FOLDER / "server.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        PID.write_text(str(process.pid))
        patiently(lambda: self.kubectl("get --raw /readyz") == "ok", 180, "the server to be ready")

    def kubectl(self, words: str, *, stdin: str = "", seconds: float = 60) -> str:
        program = next((ROOT / "var/lib/rancher/k3s/data").glob("*/bin/kubectl"), None)
        assert program, "K3s did not unpack itself yet"
        config = f"{ROOT}{paths.KUBECONFIG}"
        command = ["ip", "netns", "exec", NAMESPACE, str(program), "--kubeconfig", config, *words.split()]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, f"kubectl {words}: {done.stderr}"
        return done.stdout.strip()

    def asked(self, words: str) -> Any:
        return json.loads(self.kubectl(f"{words} -o json"))

    # --- the agents -----------------------------------------------------------------------------------------

    def join(self) -> None:
        """Bring K3s, the images and the plan's files, and start."""
        token = (ROOT / paths.JOIN_TOKENS["agent"].lstrip("/")).read_text()
        archive = FOLDER / "images.tar"
        self._pack(archive)
        with ThreadPoolExecutor(len(self.agents)) as pool:
            list(pool.map(lambda machine: self._join(machine, token, archive), self.agents))

    def _pack(self, archive: Path) -> None:
        pause = next(name for name, program in k3s.IMAGES.items() if program == "pause")
        programs = {pause: binaries.binary("pause", "pause"), IMAGE: trees.guest_tree() / "usr/bin/busybox"}
        with tempfile.TemporaryDirectory() as scratch:
            images = []
            for name, program in programs.items():
                tree = Path(scratch, program.name)
                tree.mkdir()
                shutil.copy2(program, tree / program.name)
                layer = oci.pack(tree, Path(scratch, "layers"))
                images.append(oci.Image([name], [layer], {"Entrypoint": [f"/{program.name}"]}))
            oci.write(images, archive)

    def _join(self, machine: Machine, token: str, archive: Path) -> None:
        self._bring(
            machine, {paths.TOKEN: (token, 0o600)}, {paths.BINARY: k3s.program(), f"{paths.IMAGES}/it.tar": archive}
        )
        login.sh(
            machine,
            f"""ip link set {LAN} up; ip address replace {self.address(machine.name)}/24 dev {LAN}
            ip route replace default via {GATEWAY}
            systemctl daemon-reload; systemctl start --no-block k3s-agent""",
        )

    def _bring(self, machine: Machine, texts: dict[str, tuple[str, int]], files: dict[str, Path]) -> None:
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                for path, (content, mode) in (self.files(machine.name) | texts).items():
                    _add(tar, path, content, mode)
                for path, source in files.items():
                    tar.add(source, path)
            packed.seek(0)
            unpack = [*login.argv(machine, "-o", "BatchMode=yes"), "tar -x -C / --no-same-owner"]
            subprocess.run(unpack, stdin=packed, check=True, timeout=600)

    def change(self, backend: str | None) -> None:
        """As `cluster.yml` does after the site changed its mind: files, then restarts, the server first."""
        self.plan = planned(backend)
        self.serve()
        for machine in self.agents:
            self._bring(machine, {}, {})
            login.sh(machine, "systemctl daemon-reload; systemctl restart k3s-agent")

    def ready(self) -> None:
        """Each node said so since this was asked, not before."""
        since = time.time()

        def fresh() -> bool:
            leases = self.asked("get leases -n kube-node-lease")["items"]
            return len([one for one in leases if _seconds(one["spec"]["renewTime"]) > since]) == len(self.agents)

        def all_ready() -> bool:
            nodes = self.asked("get nodes")["items"]
            told = [c["status"] for node in nodes for c in node["status"]["conditions"] if c["type"] == "Ready"]
            return told == ["True"] * len(self.agents)

        patiently(fresh, PATIENCE, "both nodes' leases")
        patiently(all_ready, PATIENCE, "both nodes to be Ready")

    # --- the end --------------------------------------------------------------------------------------------

    def end_server(self) -> None:
        if _is_k3s(server := _server()):
            os.kill(server, signal.SIGTERM)
            patiently(lambda: not _is_k3s(server), 60, "the server to end")

    def close(self) -> None:
        self.end_server()
        subprocess.run(["ip", "netns", "delete", NAMESPACE], capture_output=True)


def _server() -> int:
    return int(PID.read_text()) if PID.exists() else 0


def _is_k3s(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return b"k3s" in Path(f"/proc/{process}/cmdline").read_bytes() and state != "Z"
    except OSError:
        return False


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def _add(tar: tarfile.TarFile, path: str, content: str, mode: int) -> None:
    data = content.encode()
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
