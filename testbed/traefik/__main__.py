"""`python -m testbed.traefik build|install`: K3s' Traefik, for a rack that has none of its own."""

from __future__ import annotations

import json
import sys

from testbed.rack import cluster, load, names, steps
from testbed.rack.shell import answer
from testbed.traefik import build, objects

WAIT = 120


def make() -> int:
    steps.perform(build.steps())
    return 0


def install() -> int:
    make()
    load.load(build.archive(), ["spark1"])
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(build.definitions()))
    listed = {"apiVersion": "v1", "kind": "List", "items": objects.objects()}
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(listed))
    cluster.kubectl("wait", "--for=condition=Established", "crd/ingressroutes.traefik.io", f"--timeout={WAIT}s")
    space = ("-n", objects.SPACE)
    cluster.kubectl(*space, "rollout", "status", f"deployment/{objects.NAME}", f"--timeout={WAIT}s")
    address = cluster.nodes()[objects.NODE]["ip"]
    status = json.dumps({"status": {"loadBalancer": {"ingress": [{"ip": address}]}}})
    cluster.kubectl(*space, "patch", "service", objects.NAME, "--subresource=status", "--type=merge", "-p", status)
    print(f"Traefik {build.VERSION} at https://{address}", file=sys.stderr)
    return 0


def main() -> int:
    actions = {"build": make, "install": install}
    if sys.argv[1:2] not in [[name] for name in actions]:
        print(__doc__, file=sys.stderr)
        return 2
    return answer(actions[sys.argv[1]], names.CACHE / "logs" / "error.log")


if __name__ == "__main__":
    sys.exit(main())
