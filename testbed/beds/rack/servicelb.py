"""The nodes' ports of a Service of type LoadBalancer, as K3s' ServiceLB opens them: a unit on the first node."""

from __future__ import annotations

from testbed.base import docker, names, store
from testbed.base.shell import run
from testbed.base.steps import Say, Step
from testbed.beds.rack import cluster

UNIT = "testbed-servicelb.service"
SOURCE = names.REPO / "testbed/standins/servicelb.py"
PROGRAM = "/opt/testbed-servicelb.py"
SERVICE = f"""[Unit]
Description=Service load balancer, in place of K3s' own

[Service]
ExecStart=/usr/bin/python3 {PROGRAM}
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
"""
FORMER = ("-n", "kube-system", "delete", "deployment/traefik", "service/traefik", "--ignore-not-found")


def recipe() -> str:
    return store.key_of([SOURCE, SERVICE])


def _there() -> bool:
    container = names.NODES["spark1"]
    if docker.containers().get(container) != "running":
        return False
    holds = f'systemctl is-active -q {UNIT} && [ "$(cat {PROGRAM}.key)" = {recipe()} ]'
    return run(["docker", "exec", container, "bash", "-c", holds], check=False).returncode == 0


def _bring(say: Say) -> None:
    say("giving it to the first node")
    container = names.NODES["spark1"]
    cluster.kubectl(*FORMER)  # which had the ports on racks from before
    run(["docker", "cp", "-q", str(SOURCE), f"{container}:{PROGRAM}"])
    script = [
        f"cat > /etc/systemd/system/{UNIT} <<'EOF'\n{SERVICE}EOF",
        f"systemctl daemon-reload; systemctl enable -q {UNIT}; systemctl restart {UNIT}",
        f"echo {recipe()} > {PROGRAM}.key",
    ]
    cluster.node_sh(container, "\n".join(script))


def steps() -> list[Step]:
    return [Step("endpoint", "opens ports of the nodes to Services, as K3s does", _there, _bring)]
