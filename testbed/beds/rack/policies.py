"""Network policies hold on the rack as under K3s: its controller runs on each node beside the kubelet, not in a pod."""

from __future__ import annotations

from testbed.base import docker, names
from testbed.base.shell import out, run
from testbed.base.steps import Say, Step
from testbed.beds.rack import cluster
from testbed.make import policy

UNIT = "testbed-policy.service"
ACCESS = "/etc/kubernetes/admin.conf"  # of the node that has it; K3s' own takes its server's too
SERVICE = f"""[Unit]
Description=Network policies as K3s enforces them
After=containerd.service

[Service]
Environment=PATH={policy.HOME}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart={policy.HOME}/kube-router --run-router=false --run-firewall=true --run-service-proxy=false \\
  --kubeconfig={policy.HOME}/access.conf --hostname-override=%H --service-cluster-ip-range={names.SERVICE_SUBNET}
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
"""
# The chain that its first full look at the cluster makes.
HOLDS = 'systemctl is-active -q {unit} && [ "$(cat {home}/key)" = {key} ] && iptables -S KUBE-ROUTER-FORWARD >/dev/null'


def _holds(container: str) -> str:
    return HOLDS.format(unit=UNIT, home=policy.HOME, key=policy.place().name)


def _there() -> bool:
    states = docker.containers()
    if any(states.get(container) != "running" for container in names.NODES.values()):
        return False
    return all(
        run(["docker", "exec", c, "bash", "-c", _holds(c)], check=False).returncode == 0 for c in names.NODES.values()
    )


def _bring(say: Say) -> None:
    say("giving it to every node")
    access = out(["docker", "exec", names.NODES["spark1"], "cat", ACCESS])

    def give(_: str, container: str) -> None:
        cluster.node_sh(container, f"systemctl stop {UNIT} 2>/dev/null || true; mkdir -p {policy.HOME}")
        run(["docker", "cp", "-q", f"{policy.tree()}/.", f"{container}:{policy.HOME}/"])
        script = [
            "umask 077",
            f"cat > {policy.HOME}/access.conf <<'EOF'\n{access}\nEOF",
            f"cat > /etc/systemd/system/{UNIT} <<'EOF'\n{SERVICE}EOF",
            f"echo {policy.place().name} > {policy.HOME}/key",
            f"systemctl daemon-reload; systemctl enable --now -q {UNIT}",
            f"for i in $(seq 120); do {_holds(container)} && exit 0; sleep 0.5; done",
            f"journalctl -u {UNIT} -n 20 --no-pager >&2; exit 1",
        ]
        cluster.node_sh(container, "\n".join(script))

    cluster.everywhere(give)
    say("each node's rules stand")


def steps() -> list[Step]:
    return [Step("policies", "makes network policies hold, as K3s does", _there, _bring)]
