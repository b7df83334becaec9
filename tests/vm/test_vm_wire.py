"""What somebody reads who listens on the management network while a pod of one node asks a pod of another.

K3s itself on two kernels with WireGuard, with the settings of our own rendering. First as a site that chose `vxlan`:
key and prompt stand on the wire in the clear, so this test can see them. Then the same site with our choice.
The engine is a stand-in of thirty lines; between the two pods everything is real.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.beds.vm import login
from testbed.make.real import k3s
from tests.vm.k3s_pair import IMAGE, PATIENCE, Pair, patiently
from tests.vm.machines import Rack
from tests.vm.wire import Wire

pytestmark = [
    pytest.mark.vm,
    pytest.mark.slow,
    pytest.mark.skipif(not k3s.is_built(), reason="K3s itself was never built: python -m testbed bare build"),
]
KEY, PROMPT, ANSWER = "sk-wire-5f1d8c60a2", "which island has the tallest lighthouse", "neither of the two you named"
ENGINE, ASK = (Path(__file__).with_name(name).read_text() for name in ("chat_engine.py", "chat_ask.py"))
PORT = 8000
VXLAN, WIREGUARD = 8472, 51820  # flannel's ports
PROBES, BYTES = 3, 4 << 20
# The same engine beside the pods, for a rate without encapsulation.
PLAIN = f"""systemctl is-active --quiet plain ||
    systemd-run --quiet --unit=plain --setenv=PORT={PORT} python3 -c '{ENGINE}'"""
PYTHON = ["/busybox", "chroot", "/host", "/usr/bin/python3", "-u"]  # the machine's own, in the pod's network


def pod(name: str, node: str, program: str) -> dict[str, Any]:
    told = [{"name": key, "value": value} for key, value in (("KEY", KEY), ("ANSWER", ANSWER), ("PORT", str(PORT)))]
    container = {"name": "it", "image": IMAGE, "imagePullPolicy": "Never", "command": [*PYTHON, "-c", program],
                 "env": told, "volumeMounts": [{"name": "host", "mountPath": "/host"}]}  # fmt: skip
    volume = {"name": "host", "hostPath": {"path": "/"}}
    spec = {"nodeName": node, "containers": [container], "volumes": [volume], "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False, "enableServiceLinks": False}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def start(pair: Pair) -> None:
    """An engine on the first machine, somebody who asks on the second."""
    pods = [pod("engine", "spark1", ENGINE), pod("asker", "spark2", "import time; time.sleep(1 << 30)")]
    pair.kubectl("apply -f -", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))

    def running() -> bool:
        return all(pair.asked(f"get pod {name}")["status"]["phase"] == "Running" for name in ("engine", "asker"))

    patiently(running, PATIENCE, "both pods to run")


def between_pods(pair: Pair, *words: str) -> str:
    address = pair.asked("get pod engine")["status"]["podIP"]
    line = f"exec -i asker -- {' '.join(PYTHON)} - {address}:{PORT} {' '.join(words)}"
    return pair.kubectl(line, stdin=ASK, seconds=300)


def beside_pods(pair: Pair, *words: str) -> str:
    """The same between the machines themselves, with no encapsulation."""
    command = f"python3 - {pair.address('spark1')}:{PORT} {' '.join(words)}"
    return login.run([*login.argv(pair.agents[1]), command], stdin=ASK, timeout=300).stdout


def chat(pair: Pair) -> Wire:
    with Wire(pair.agents[1]) as wire:
        assert patiently(lambda: between_pods(pair, "chat", KEY, PROMPT), PATIENCE, "an answer") == ANSWER
    return wire


def share(pair: Pair) -> float:
    """How fast pods' bytes cross, as a share of the machines' own in the same minute: an emulated figure."""
    seconds = [[float(way(pair, "bytes", str(BYTES))) for way in (beside_pods, between_pods)] for _ in range(PROBES)]
    plain, pods = (statistics.median(column) for column in zip(*seconds, strict=True))
    print(f"{BYTES >> 20} MiB: {plain:.2f} s between machines, {pods:.2f} s between pods")
    return plain / pods


def links(pair: Pair) -> list[dict[str, int]]:
    """{flannel's link: its MTU} on each machine."""
    found = []
    for machine in pair.agents:
        rows = json.loads(login.out(machine, "ip -j link"))
        found.append({row["ifname"]: row["mtu"] for row in rows if row["ifname"].startswith("flannel")})
    return found


@pytest.fixture(scope="module")
def pair(rack: Rack) -> Iterator[Pair]:
    """SPARKLOOM_VM_KEEP=1 goes on with one that stands with `vxlan`, and leaves it."""
    keep, made = bool(os.environ.get("SPARKLOOM_VM_KEEP")), Pair(rack.machines, "vxlan")
    try:
        if not (keep and made.stands()):
            made.cable()
            made.serve()
            made.join()
        made.ready()
        login.sh(rack.machines[0], PLAIN)
        start(made)
        yield made
    finally:
        if not keep:
            made.close()


def test_with_vxlan_a_listener_reads_key_prompt_and_answer(pair: Pair) -> None:
    """The control: without it, a test that sees nothing would prove nothing."""
    wire = chat(pair)
    assert all(wire.holds(words) for words in (KEY, PROMPT, ANSWER))
    assert wire.frames(VXLAN) > 4 and wire.frames(WIREGUARD) == 0
    assert links(pair) == [{"flannel.1": 1450}] * 2
    print(f"vxlan: {share(pair):.2f} of the machines' own rate")


def test_the_site_changes_to_our_choice_and_no_pod_talks_on_through_the_old_link(pair: Pair) -> None:
    """Pods live on from before. The unit takes the old link away, whose routes are narrower than the new one's."""
    before = [pair.asked(f"get pod {name}")["metadata"]["uid"] for name in ("engine", "asker")]
    pair.change(None)
    pair.ready()
    wire = chat(pair)
    assert links(pair) == [{"flannel-wg": 1420}] * 2
    assert [pair.asked(f"get pod {name}")["metadata"]["uid"] for name in ("engine", "asker")] == before
    assert not any(wire.holds(words) for words in (KEY, PROMPT, ANSWER))
    assert float(between_pods(pair, "bytes", str(BYTES))) > 0, "pods with the old link's MTU send long packets too"


def test_with_wireguard_a_listener_reads_nothing(pair: Pair) -> None:
    """Pods that began with it; and what their bytes cost."""
    pair.kubectl("delete pod engine asker --wait=true", seconds=200)
    start(pair)
    wire = chat(pair)
    assert not any(wire.holds(words) for words in (KEY, PROMPT, ANSWER))
    assert wire.frames(WIREGUARD) > 4 and wire.frames(VXLAN) == 0
    assert pair.kubectl("exec asker -- /busybox cat /sys/class/net/eth0/mtu") == "1420"
    print(f"wireguard: {share(pair):.2f} of the machines' own rate")
