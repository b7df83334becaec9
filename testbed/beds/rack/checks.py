"""What `up` proves of the rack it made: all pods reach each other, names resolve, a Service has many endpoints."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from testbed.base import names, store
from testbed.base.shell import RackError, out
from testbed.base.steps import Say, Step
from testbed.beds.rack import cluster

SPACE = "rack-check"
PASSED = names.STATE / "checked.json"
# a pod asks all others and the Service, and reports what it saw as JSON
ASK = r"""
import json, sys, time, urllib.request
def get(url, tries=8):
    for left in range(tries, 0, -1):
        try:
            return urllib.request.urlopen(url, timeout=3).read().decode().strip()
        except OSError as error:
            if left == 1:
                return f"{type(error).__name__}: {error}"
            time.sleep(1)  # kube-proxy learns of the endpoints a moment after the pods are ready
peers = json.loads(sys.argv[1])
service = "http://probe.%s.svc.cluster.local/" % sys.argv[2]
seen, until = set(), time.monotonic() + 20
while len(seen) < 2 and time.monotonic() < until:  # and it learns of them one by one
    seen |= {get(service) for _ in range(16)}
print(json.dumps({"peers": {name: get(f"http://{ip}:8080/") for name, ip in peers.items()}, "service": sorted(seen)}))
"""


def _manifests() -> list[dict[str, object]]:
    labels = {"app": "probe"}
    serve = "mkdir -p /tmp/w && cd /tmp/w && hostname > index.html && exec python3 -m http.server 8080"
    container = {
        "name": "probe",
        "image": names.TOOLS_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", serve],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    pod = {"terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    meta = {"name": "probe", "namespace": SPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": meta,
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    ]


def check(say: Say) -> dict[str, object]:
    """Raises RackError with what was found and expected; cleans up after itself."""
    say("a probe pod on every node")
    kubectl = cluster.kubectl
    # what is left of a check that was stopped, or that ended a moment ago
    kubectl("delete", "namespace", SPACE, "--ignore-not-found", "--timeout=120s")
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": _manifests()})
    kubectl("apply", "-f", "-", stdin=manifest)
    try:
        kubectl("-n", SPACE, "rollout", "status", "daemonset/probe", "--timeout=120s")
        pods = json.loads(kubectl("-n", SPACE, "get", "pods", "-o", "json"))["items"]
        addresses = {p["metadata"]["name"]: p["status"].get("podIP", "") for p in pods}
        say("every pod asks every pod, and the Service by its name")
        with ThreadPoolExecutor(len(addresses)) as pool:
            answers = dict(zip(addresses, pool.map(lambda pod: _ask(pod, addresses), addresses), strict=True))
        return judge(answers)
    finally:
        kubectl("delete", "namespace", SPACE, "--wait=false", check=False)


def _ask(pod: str, addresses: dict[str, str]) -> dict[str, object]:
    words = ["exec", "-n", SPACE, pod, "--", "python3", "-c", ASK, json.dumps(addresses), SPACE]
    answer: dict[str, object] = json.loads(cluster.kubectl(*words))
    return answer


def judge(answers: dict[str, dict[str, object]]) -> dict[str, object]:
    """All pairs must answer with their own name; the Service must have answered from more than one pod, by name."""
    bad, pairs, endpoints = [], 0, set()
    for pod, answer in answers.items():
        peers, service = answer["peers"], answer["service"]
        assert isinstance(peers, dict) and isinstance(service, list)
        for other, heard in peers.items():
            pairs += 1
            if heard != other:
                bad.append(f"{pod} -> {other}: {heard}")
        strange = [name for name in service if name not in answers]
        bad += [f"{pod} -> Service: {heard}" for heard in strange]
        if len(service) < 2:
            bad.append(f"{pod} -> Service: only ever {service} of {len(answers)} endpoints")
        endpoints |= set(service)
    if len(answers) != len(names.NODES):
        bad.append(f"{len(answers)} probe pods, expected {len(names.NODES)}")
    if bad:
        raise RackError("the pod network does not work as it must:\n  " + "\n  ".join(bad))
    return {"pairs": pairs, "endpoints": len(endpoints)}


def _boots() -> dict[str, str]:
    """{container: when it was started}: a check holds for these boots."""
    form = "{{.Name}}\t{{.State.StartedAt}}"
    text = out(["docker", "inspect", "--format", form, *names.NODES.values()], check=False)
    return dict(line.removeprefix("/").split("\t") for line in text.splitlines())


def _passed() -> bool:
    return bool(_boots()) and store.read_json(PASSED).get("boots") == _boots()


def _prove(say: Say) -> None:
    PASSED.unlink(missing_ok=True)
    found = check(say)
    say(f"{found['pairs']} pod pairs, names, a Service that answers from {found['endpoints']} endpoints: fine")
    store.write_json(PASSED, {"boots": _boots(), "found": found})


def steps(again: bool = False) -> list[Step]:
    title = "proves it: all pairs of pods, DNS, several endpoints of a Service"
    return [Step("check", title, lambda: not again and _passed(), _prove)]
