"""What the cluster is given: valid in every release, with the least rights, and open to one Prometheus only."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.render.manifests import names
from sparkloom.render.metrics import dashboards, exporter, labels, prometheus, series
from sparkloom.site import metrics
from sparkloom.site.objects import GONE
from tests.prometheus import program
from tests.render.manifests import schemas

CLUSTER = case.cluster(None)
JOBS = {series.RANKS, series.ENGINES, series.ROUTER, series.WAKER, series.HOSTS}
IMAGES = ("exporter:v1", "prometheus:v1")
OPERATED = metrics.Scraper("monitoring", "k8s", "operator", {"app.kubernetes.io/name": "prometheus"}, {"release": "x"})
ANNOTATED = metrics.Scraper("watch", "prometheus-server", "annotations", {"app": "prometheus"})
FOUND = {
    "nobody": (metrics.Found(), "auto"),
    "operator": (metrics.Found((OPERATED,)), "auto"),
    "annotations": (metrics.Found((ANNOTATED,)), "auto"),
    "install": (metrics.Found(), "install"),
    "beside": (metrics.Found((OPERATED,), ("monitoring/node-exporter",)), "auto"),
    "none": (metrics.Found((OPERATED,)), "none"),
}


def objects(which: str) -> list[dict[str, Any]]:
    found, wish = FOUND[which]
    return metrics.plan(CLUSTER, found, wish, IMAGES, 4)[0]  # type: ignore[arg-type]


def of_kind(which: str, kind: str) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in objects(which) if item["kind"] == kind}


@pytest.mark.parametrize("which", FOUND)
def test_all_is_valid_in_every_release_named_ours_and_there_once(which: str) -> None:
    made = objects(which)
    ours = [item for item in made if not item["apiVersion"].startswith(metrics.MONITORING)]
    assert [text for release in schemas.RELEASES for item in ours for text in schemas.problems(item, release)] == []
    assert all(labels.OURS.items() <= item["metadata"]["labels"].items() for item in made)
    named = [(item["kind"], item["metadata"]["namespace"], item["metadata"]["name"]) for item in made]
    assert len(set(named)) == len(named)
    assert {(item["apiVersion"], item["kind"]) for item in made} <= {*GONE["metrics"], ("v1", "PersistentVolumeClaim")}


def test_the_exporter_may_read_and_nothing_else() -> None:
    (item,) = exporter.objects(CLUSTER, "x:1", another=False)
    spec = item["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & set(spec)
    assert spec["automountServiceAccountToken"] is False and spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert [v["hostPath"]["path"] for v in spec["volumes"]] == ["/proc", "/sys", "/run/sparkloom/metrics"]


@pytest.mark.parametrize("which", FOUND)
def test_no_policy_lets_everybody_in(which: str) -> None:
    """An empty list of peers means all of them, to Kubernetes."""
    for policy in of_kind(which, "NetworkPolicy").values():
        for way in policy["spec"].get("ingress", []):
            assert way["from"] and all(peer for peer in way["from"]) and way["ports"], policy["metadata"]["name"]


def test_a_policy_without_rules_has_no_empty_list() -> None:
    """Red on the rack: the API server keeps `ingress: []` otherwise, and every second run changed three policies."""
    policies = [one for which in FOUND for one in of_kind(which, "NetworkPolicy").values()]
    assert policies and all(one["spec"].get(way) != [] for one in policies for way in ("ingress", "egress"))


def test_ranks_are_open_to_the_one_that_scrapes_and_to_nobody_else() -> None:
    heard = {which: of_kind(which, "NetworkPolicy")["sparkloom-ranks-heard"]["spec"] for which in FOUND}
    assert all(spec["podSelector"]["matchLabels"] == names.ENGINES for spec in heard.values())
    assert "ingress" not in heard["nobody"] and "ingress" not in heard["none"]
    for which, space, pods in (("operator", "monitoring", OPERATED.pods), ("annotations", "watch", ANNOTATED.pods)):
        (way,) = heard[which]["ingress"]
        (peer,) = way["from"]
        assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": space}
        assert peer["podSelector"]["matchLabels"] == pods
        assert [port["port"] for port in way["ports"]] == [20101]
    (way,) = heard["install"]["ingress"]
    assert way["from"] == [{"podSelector": {"matchLabels": labels.PROMETHEUS}}], "of our own namespace"


@pytest.mark.parametrize(("job", "port"), [("sparkloom-router", 9090), ("sparkloom-waker", 8091)])
def test_figures_of_people_are_open_to_no_pod_that_only_calls_itself_prometheus(job: str, port: int) -> None:
    """Red before: the router's and the waker's own policies let in any pod of any namespace with that label."""
    (way,) = of_kind("annotations", "NetworkPolicy")[f"{job}-heard"]["spec"]["ingress"]
    (peer,) = way["from"]
    assert peer["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "watch"}
    assert [one["port"] for one in way["ports"]] == [port]


def test_ours_reads_pods_of_our_namespace_and_nothing_of_the_cluster() -> None:
    made = prometheus.objects(CLUSTER, "p:1", 4)
    assert not [item for item in made if item["kind"].startswith("Cluster")]
    (role,) = (item for item in made if item["kind"] == "Role")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    (deployment,) = (item for item in made if item["kind"] == "Deployment")
    words = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--storage.tsdb.retention.size=4GB" in words


def test_a_change_of_its_rules_renews_it() -> None:
    def stamp(cluster: Any) -> str:
        (one,) = (item for item in prometheus.objects(cluster, "p:1", 4) if item["kind"] == "Deployment")
        return str(one["spec"]["template"]["metadata"]["annotations"][names.CONFIG_HASH])

    assert stamp(CLUSTER) != stamp(CLUSTER.model_copy(update={"name": "other"}))


def test_prometheus_itself_takes_its_configuration(tmp_path: Path) -> None:
    """With rules; files of a service account are looked for where it runs only."""
    for name, text in prometheus.files(CLUSTER).items():
        (tmp_path / name).write_text(text.replace("/etc/prometheus/rules.yml", str(tmp_path / "rules.yml")))
    done = subprocess.run(
        [program("promtool"), "check", "config", str(tmp_path / "prometheus.yml")], capture_output=True, text=True
    )
    assert done.returncode == 0 and "20 rules found" in done.stdout, done.stdout + done.stderr


def test_a_node_is_called_as_in_the_inventory() -> None:
    nodes = [n.model_copy(update={"kubernetes_node": f"k-{n.name}.lan"}) for n in CLUSTER.nodes]
    rules = prometheus.node_rules(CLUSTER.model_copy(update={"nodes": nodes}))
    assert rules[1]["regex"] == r"k\-spark1\.lan" and rules[1]["replacement"] == "spark1"
    assert len(prometheus.node_rules(CLUSTER)) == 1


def test_an_operator_is_told_the_same_as_our_own() -> None:
    monitors = {
        item["metadata"]["name"]: item for item in prometheus.pod_monitors(CLUSTER, "monitoring", {"release": "x"})
    }
    assert set(monitors) == JOBS
    for item in monitors.values():
        assert item["metadata"]["namespace"] == "monitoring" and item["metadata"]["labels"]["release"] == "x"
        assert item["spec"]["namespaceSelector"]["matchNames"] == ["sparkloom"]
        (asked,) = item["spec"]["podMetricsEndpoints"]
        assert asked["honorLabels"] is True
        assert {"targetLabel": "job", "replacement": item["metadata"]["name"]} in asked["relabelings"]
        (address,) = (r for r in asked["relabelings"] if r.get("targetLabel") == "__address__")
        assert address["replacement"].startswith("$1:") and address["sourceLabels"] == ["__meta_kubernetes_pod_ip"]
    (engines,) = monitors["sparkloom-engines"]["spec"]["podMetricsEndpoints"]
    assert engines["path"] == "/metrics/engine"


def test_services_carry_the_customary_annotations() -> None:
    made = of_kind("annotations", "Service")
    told = {name: item["metadata"]["annotations"] for name, item in made.items()}
    assert told["sparkloom-engines"] == {
        "prometheus.io/scrape": "true", "prometheus.io/port": "20101", "prometheus.io/path": "/metrics/engine",
    }  # fmt: skip
    assert set(told) == JOBS


def test_beside_another_exporter_no_series_is_there_twice() -> None:
    words = of_kind("beside", "DaemonSet")["sparkloom-hosts"]["spec"]["template"]["spec"]["containers"][0]["args"]
    on = {word.removeprefix("--collector.") for word in words if word.startswith("--collector.") and "=" not in word}
    assert on == {"disable-defaults", "textfile", "buddyinfo"}


def test_dashboards_are_found_by_a_sidecar_and_fit_into_a_config_map() -> None:
    made = [item for item in objects("nobody") if "grafana_dashboard" in item["metadata"]["labels"]]
    assert len(made) == 5
    for item in made:
        ((name, text),) = item["data"].items()
        assert json.loads(text) == json.loads(dashboards.files()[name]) and len(text) < 200_000
    assert yaml.safe_load(yaml.safe_dump(made)) == made
