"""Two namespaces as two nodes: the pods' network through this machine, and two wires between them as the rails."""

from __future__ import annotations

from pathlib import Path

from testbed.beds.gpu import place

RAILS = {1: "192.168.100", 2: "192.168.101"}


def make() -> None:
    if Path("/var/run/netns/rank0").exists():
        return
    ip = f"env LD_LIBRARY_PATH={place.LIB} {place.BIN}/ip"
    words = ["set -e", "mkdir -p /var/run/netns"]
    for rank in (0, 1):
        inside = f"{ip} -n rank{rank}"
        words += [
            f"{ip} netns add rank{rank}", f"{inside} link set lo up",
            f"{ip} link add h{rank} type veth peer name eth0 netns rank{rank}",
            f"{ip} addr add 10.99.{rank}.1/24 dev h{rank}", f"{ip} link set h{rank} up",
            f"{inside} addr add 10.99.{rank}.10/24 dev eth0", f"{inside} link set eth0 up",
            f"{inside} route add default via 10.99.{rank}.1",
        ]  # fmt: skip
    for number, net in RAILS.items():
        words.append(
            f"{ip} -n rank0 link add net{number} mtu 9000 type veth peer name net{number} mtu 9000 netns rank1"
        )
        for rank in (0, 1):
            words += [
                f"{ip} -n rank{rank} addr add {net}.{11 + rank}/24 dev net{number}",
                f"{ip} -n rank{rank} link set net{number} up",
            ]
    code, said = place.done("; ".join([*words, "echo 1 >/proc/sys/net/ipv4/ip_forward"]))
    assert code == 0, said
