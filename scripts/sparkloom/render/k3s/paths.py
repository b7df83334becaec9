"""Where K3s and what belongs to it live on a node: the one copy of each path."""

from __future__ import annotations

BINARY = "/usr/local/bin/k3s"
ETC = "/etc/rancher/k3s"
CONFIG = f"{ETC}/config.yaml"
REGISTRIES = f"{ETC}/registries.yaml"
AUDIT = f"{ETC}/audit-policy.yaml"  # of a server: what its API writes down
SYSCTL = "/etc/sysctl.d/90-sparkloom-k3s.conf"  # what the kubelet asks of the kernel
TOKEN = f"{ETC}/sparkloom-token"
AGENT_TOKEN = f"{ETC}/sparkloom-agent-token"
KUBECONFIG = f"{ETC}/k3s.yaml"

DATA = "/var/lib/rancher/k3s"
AUTHORITY = f"{DATA}/server/tls/server-ca.crt"  # by which the API is known
AUDIT_LOG = f"{DATA}/server/logs/audit.log"
# fixed since v1.31.2; before, it moved with every release (docs.k3s.io, "CNI")
CNI = f"{DATA}/data/cni"
IMAGES = f"{DATA}/agent/images"
KUBELET = f"{DATA}/agent/kubelet.kubeconfig"
VOLUMES = f"{DATA}/storage"  # of the local provisioner
CONTAINERS = "/run/k3s/containerd/io.containerd.runtime.v2.task"  # by containerd's namespaces
CONTAINERD = f"{DATA}/agent/etc/containerd/config.toml"
# K3s writes these once it has its own certificate: they carry its hash, so that a joining node knows whom it talks to
JOIN_TOKENS = {"server": f"{DATA}/server/token", "agent": f"{DATA}/server/agent-token"}

RECORD = "/var/lib/sparkloom/k3s-programs.json"  # what was installed from which archive
STAGING = "/var/lib/sparkloom/k3s"  # what came from the controller, until it is installed
ARCHIVES = "/var/lib/sparkloom/images"  # of images that came from the controller, until they are imported
STAMP = "/run/sparkloom-k3s.stamp"  # the hashes of what the running K3s was started with
SERVICES = {"server": "k3s", "agent": "k3s-agent"}
# K3s looks for container runtimes in its PATH, when it starts. NVIDIA's GPU operator puts them into the first of these.
SEARCH = "/usr/local/nvidia/toolkit:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def unit(role: str) -> str:
    return f"/etc/systemd/system/{SERVICES[role]}.service"


# What the role's files are; K3s' own data is below DATA and /var/lib/kubelet.
OURS = (BINARY, CONFIG, REGISTRIES, AUDIT, SYSCTL, TOKEN, AGENT_TOKEN, KUBECONFIG, RECORD, STAGING, ARCHIVES, STAMP)
LOGS = ("/var/log/pods", "/var/log/containers")  # kubelet's: pods' output, and links to it
DRIVERS = tuple(
    f"/usr/libexec/kubernetes{inner}"
    for inner in ("/kubelet-plugins/volume/exec", "/kubelet-plugins/volume", "/kubelet-plugins", "")
)
# What K3s leaves behind: folders, and links that containers and flannel made.
LEFT = (DATA, ETC, "/var/lib/kubelet", "/etc/rancher/node", "/run/k3s", "/run/flannel", "/var/lib/cni", *LOGS)
# Taken away when nothing else is in them, the innermost first: somebody's volume driver may lie among kubelet's.
EMPTY = ("/etc/rancher", "/var/lib/rancher", *DRIVERS)
LINKS = ("cni0", "flannel.1", "flannel-v6.1", "flannel-wg", "flannel-wg-v6", "kube-ipvs0")
