"""K3s itself on three bare machines: what no stand-in can say, containers, etcd, encryption, images between nodes.

The order matters: the cluster is made once, lives through a restart, a restore and other tokens, and is taken off.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from sparkloom.render.k3s import paths
from sparkloom.render.manifests import multus, page
from sparkloom.site import holding
from sparkloom.site.k3s import access
from testbed.base import names
from tests.k3s_signer import certificate
from tests.later import LATER
from tests.onnode.now.recorded import FACTS
from tests.rack.bare_cluster import (
    AGENTS,
    INVENTORY,
    SERVER,
    apply,
    asked,
    bare,
    cluster_yml,
    kubectl,
    on,
    patiently,
    said,
)
from tests.rack.running import run

pytestmark = [pytest.mark.rack, pytest.mark.slow, *LATER]
SECRET = "kept-where-nobody-reads-it"
ACCESS = names.REPO / ".build/bare/kubeconfig"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    bare("build")
    bare("down")
    assert "K3s itself" in bare("up", k3s="itself")
    done = cluster_yml()
    assert done.returncode == 0, done.stdout[-6000:]
    yield
    bare("down")


def pod(name: str, node: str, *, image: str = names.TOOLS_IMAGE, command: str = "sleep infinity") -> dict[str, Any]:
    container = {"name": "it", "image": image, "command": ["sh", "-c", command], "imagePullPolicy": "IfNotPresent"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 1},
    }


def address(name: str) -> str:
    """Once it runs."""

    def running() -> str:
        status = asked(f"get pod {name}")["status"]
        return str(status["podIP"]) if status["phase"] == "Running" else ""

    return str(patiently(running, 120, f"pod {name} to run"))


def pids() -> dict[str, str]:
    """{pod: the process of its container}, as the nodes see it."""
    rows = {}
    for name, node in (("one", "spark1"), ("two", "spark2")):
        told = json.loads(said(node, f"k3s crictl inspect $(k3s crictl ps -q --label io.kubernetes.pod.name={name})"))
        rows[name] = str(told["info"]["pid"])
    return rows


def reaches(source: str, url: str) -> bool:
    script = f"import urllib.request as u; print(u.urlopen({url!r}, timeout=5).status)"
    done = on(SERVER, f'k3s kubectl exec {source} -- python3 -c "{script}"')
    return done.stdout.strip() == "200"


def test_it_laid_down_what_the_role_counts_on() -> None:
    assert "v1.32.0+k3s1" in said(SERVER, "k3s --version")
    assert said(SERVER, f"readlink {paths.DATA}/server/node-token").endswith("/server/token")
    for machine in (SERVER, *AGENTS):
        assert said(machine, f"readlink {paths.DATA}/data/current").startswith(f"{paths.DATA}/data/")
        assert said(machine, f"readlink {paths.CNI}/bridge").endswith("cni")
        assert said(machine, f"stat -c %a {paths.KUBELET}") == "600"
    assert "client-certificate-data" in said(SERVER, f"cat {paths.KUBECONFIG}")


def test_pods_of_two_nodes_reach_each_other_and_a_service_by_its_name() -> None:
    server = "python3 -m http.server 8000"
    apply(pod("one", "spark1", command=server), pod("two", "spark2", command=server))
    spec = {"selector": {"app": "two"}, "ports": [{"port": 80, "targetPort": 8000}]}
    apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "two"}, "spec": spec})
    assert address("one") != address("two")
    patiently(lambda: reaches("one", f"http://{address('two')}:8000/"), 120, "pod one to reach pod two")
    patiently(
        lambda: reaches("one", "http://two.default.svc.cluster.local/"), 120, "pod one to reach the Service by its name"
    )


def test_a_network_policy_shuts_a_door() -> None:
    """By K3s' own controller, which needs ipset on the node and is silently left out without."""
    policy = {"podSelector": {"matchLabels": {"app": "two"}}, "policyTypes": ["Ingress"]}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "shut"}}
    apply({**kind, "spec": policy})
    patiently(lambda: not reaches("one", f"http://{address('two')}:8000/"), 60, "the door to be shut")
    kubectl("delete networkpolicy shut")
    patiently(lambda: reaches("one", f"http://{address('two')}:8000/"), 60, "the door to be open again")


def test_a_second_run_changes_nothing() -> None:
    done = cluster_yml()
    assert done.returncode == 0 and "changed=0" in done.stdout, done.stdout[-4000:]


def door(words: str, *, stdin: str = "") -> str:
    """What the administrator's access from here gets, with what it is refused."""
    on(SERVER, "cat >/root/access", stdin=ACCESS.read_text())
    done = on(SERVER, f"k3s kubectl --kubeconfig=/root/access {words} 2>&1", stdin=stdin)
    return done.stdout.strip()


def test_a_site_from_before_gets_an_access_of_its_own() -> None:
    """Until December 2026 K3s' own administrator's was kept here."""
    server = yaml.safe_load(ACCESS.read_text())["clusters"][0]["cluster"]["server"]
    text = said(SERVER, f"cat {paths.KUBECONFIG}").replace("https://127.0.0.1:6443", server)
    ACCESS.write_text(text.replace(": default", ": sparkloom-bare"))
    assert "system:masters" in door("auth whoami")
    done = cluster_yml()
    assert done.returncode == 0 and "system:masters" not in door("auth whoami"), done.stdout[-4000:]


def test_the_administrator_s_access_is_no_cluster_admin_s() -> None:
    assert "sparkloom:" in door("auth whoami") and "system:masters" not in door("auth whoami")
    assert door("auth can-i list secrets -A") == "yes"
    for verb in ("escalate clusterroles", "bind clusterroles", "impersonate users", "create pods", "create csr"):
        assert door(f"auth can-i {verb} -A").endswith("no"), verb
    for verb in ("get nodes --subresource=proxy", "create serviceaccounts --subresource=token"):
        assert door(f"auth can-i {verb} -A").endswith("no"), verb
    assert "not currently held" in door("create clusterrolebinding more --clusterrole=cluster-admin --user=me")
    assert "not currently held" in door("create clusterrole more --verb=* --resource=pods")


def test_all_that_playbooks_apply_it_may_apply() -> None:
    """Namespaces, kinds and roles are made, as others are judged by them; the rest is asked for and not kept."""
    golden = sorted((names.REPO / "tests/golden").glob("*/*.yaml"))
    texts = [text for path in golden if "\nkind: " in (text := path.read_text())]
    shipped = [one for text in texts for one in yaml.safe_load_all(text)]
    facts = json.loads(FACTS.read_text())
    shipped += [*multus.multus("multus:1", "/opt/cni/bin", "/etc/cni"), *page.page("python:3", "sparkloom", facts, [])]
    assert len(shipped) > 200
    kinds = ("Namespace", "CustomResourceDefinition", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    made = [one for one in shipped if one["kind"] in kinds]
    applied = "apply --server-side --force-conflicts -f -"
    for items, words in ((made, applied), (shipped, f"{applied} --dry-run=server")):
        listed = {"apiVersion": "v1", "kind": "List", "items": list(items)}
        said_of_it = door(words, stdin=json.dumps(listed))
        wrong = [line for line in said_of_it.splitlines() if "serverside-applied" not in line and "Warning" not in line]
        assert wrong == [], wrong[:5]
    assert "deleted" in door("delete -f - --wait=false", stdin=json.dumps({**listed, "items": made}))


def test_one_that_has_ended_is_named_and_the_next_run_renews_it() -> None:
    """Signed here with the cluster's own authority, as nobody can wait for a month."""
    kept = yaml.safe_load(ACCESS.read_text())
    tls = f"{paths.DATA}/server/tls"
    user = x509.load_pem_x509_certificate(base64.b64decode(kept["users"][0]["user"]["client-certificate-data"]))
    signer = serialization.load_pem_private_key(said(SERVER, f"cat {tls}/client-ca.key").encode(), None)
    authority = x509.load_pem_x509_certificate(said(SERVER, f"cat {tls}/client-ca.crt").encode())
    late = datetime.now(UTC) - timedelta(days=1)
    old = certificate(user.subject, user.public_key(), late - timedelta(days=30), 30, authority.subject, signer)
    kept["users"][0]["user"]["client-certificate-data"] = base64.b64encode(old.encode()).decode()
    ACCESS.write_text(yaml.safe_dump(kept))
    refused = run("sparkloom", "status", "-i", INVENTORY)
    said_of_it = " ".join((refused.stdout + refused.stderr).split())
    assert refused.returncode and f"ended on {late:%Y-%m-%d}" in said_of_it and "playbooks/cluster.yml" in said_of_it
    done = cluster_yml()
    assert done.returncode == 0 and "spark1" in done.stdout, done.stdout[-4000:]
    assert "Ready" in door("get nodes") and ACCESS.stat().st_mode & 0o777 == 0o600
    assert door(f"delete clusterrolebinding {access.user(holding.person())}") and "Forbidden" in door("get nodes")
    assert cluster_yml().returncode == 0 and "Ready" in door("get nodes")


def test_restarts_come_one_after_the_other_and_containers_go_on() -> None:
    before, places = pids(), {name: address(name) for name in ("one", "two")}
    done = cluster_yml("-e", '{"k3s_agent_config": {"debug": true}}')
    assert done.returncode == 0, done.stdout[-6000:]
    show = "systemctl show -p ExecMainStartTimestampMonotonic --value k3s-agent"
    first, second = sorted(int(said(machine, show)) for machine in AGENTS)
    assert second - first > 1e6, "both agents were restarted at once"
    assert pids() == before and {name: address(name) for name in places} == places


def test_a_label_that_somebody_changed_comes_back_with_a_restart() -> None:
    kubectl("label node spark2 sparkloom/fabric-index=7 --overwrite")
    since = time.time()
    said("spark2", "systemctl restart k3s-agent")

    def label() -> bool:
        return bool(asked("get node spark2")["metadata"]["labels"]["sparkloom/fabric-index"] == "2")

    patiently(label, 120, "the label of the settings to be back")
    assert time.time() - since < 120


def test_secrets_are_encrypted_from_the_first_start() -> None:
    kubectl(f"create secret generic hidden --from-literal=word={SECRET}")
    assert "Encryption Status: Enabled" in said(SERVER, "k3s secrets-encrypt status")
    sync = f"sleep 1; grep -rc --binary-files=text {SECRET} {paths.DATA}/server/db/etcd | grep -v ':0$' || true"
    assert said(SERVER, sync) == ""
    kubectl("create configmap shown --from-literal=word=kept-where-everybody-reads-it")
    assert said(SERVER, sync.replace(SECRET, "kept-where-everybody-reads-it")) != ""


def test_an_image_that_one_node_has_is_had_by_the_others() -> None:
    """The embedded registry: no registry of this name is reached from here."""
    name = "docker.io/sparkloom/only-here:1"
    said("spark1", f"k3s ctr -n k8s.io images tag {names.TOOLS_IMAGE} {name}")
    patiently(lambda: on("spark2", f"k3s crictl pull {name}").returncode == 0, 60, "spark2 to have spark1's image")
    apply(pod("borrows", "spark2", image=name))
    assert address("borrows")
    kubectl("delete pod borrows --wait=false")


def test_a_snapshot_brings_the_cluster_back_to_what_it_was() -> None:
    kubectl("create configmap before --from-literal=a=b")
    snapshot = said(SERVER, "k3s etcd-snapshot save --name asked 2>&1")
    assert "saved" in snapshot, snapshot
    file = said(SERVER, f"ls {paths.DATA}/server/db/snapshots/asked-*")
    kubectl("create configmap after --from-literal=a=b")
    said(SERVER, "systemctl stop k3s")
    restored = on(SERVER, f"k3s server --cluster-reset --cluster-reset-restore-path={file} 2>&1", seconds=300)
    assert "reset" in restored.stdout, restored.stdout[-3000:]
    done = cluster_yml()
    assert done.returncode == 0, done.stdout[-6000:]
    held = {item["metadata"]["name"] for item in asked("get configmaps")["items"]}
    assert "before" in held and "after" not in held
    assert said(SERVER, "k3s kubectl get secret hidden -o jsonpath={.data.word} | base64 -d") == SECRET
    patiently(lambda: all(_ready(node) for node in (SERVER, *AGENTS)), 120, "all nodes to be Ready again")


def _ready(node: str) -> bool:
    conditions = asked(f"get node {node}")["status"]["conditions"]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_other_tokens_reach_every_machine() -> None:
    """As K3s' own documentation does it, then the playbook."""
    old = said(SERVER, f"cat {paths.TOKEN}")
    told = said(SERVER, f"k3s token rotate --token $(cat {paths.TOKEN}) --new-token {'ab' * 32} 2>&1")
    assert "otated" in told, told
    said(SERVER, f"printf '%s\\n' {'ab' * 32} > {paths.TOKEN}")
    done = cluster_yml()
    assert done.returncode == 0, done.stdout[-6000:]
    assert old not in said(SERVER, f"cat {paths.DATA}/server/token")
    for machine, service in ((SERVER, "k3s"), ("spark1", "k3s-agent")):  # each starts with what it has on disk now
        said(machine, f"systemctl restart {service}", seconds=300)
    done = cluster_yml()
    assert done.returncode == 0, done.stdout[-6000:]
    assert all(_ready(node) for node in (SERVER, *AGENTS))


def test_it_goes_and_leaves_nothing() -> None:
    """With containers that run, an interface of flannel's, and rules of three makers."""
    assert pids()
    teardown = ("ansible-playbook", "-i", INVENTORY, "playbooks/teardown.yml", "-e", "teardown_cluster=true")
    refused = run(*teardown)
    assert refused.returncode and "Pod one in namespace default" in refused.stdout, refused.stdout[-3000:]
    assert pids(), "refused, and taken away all the same"
    done = run(*teardown, "-e", "teardown_others=true")
    assert done.returncode == 0, done.stdout[-6000:]
    for machine in (SERVER, *AGENTS):
        look = (
            "pgrep -a 'k3s|containerd';"
            "ls -d /var/lib/rancher/* /etc/rancher/* /run/k3s /var/lib/cni 2>/dev/null;"
            "mount | grep -E 'k3s|kubelet/pods|cni-'; ip -br link | grep -E 'cni0|flannel|veth';"
            "iptables-save | grep -E 'KUBE|CNI|FLANNEL|flanneld'; ip netns list | grep cni-; true"
        )
        assert said(machine, look) == "", machine
