"""What is ours goes, in a safe order and by its label; what someone else keeps beside it stays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from sparkloom.base.errors import InputError
from sparkloom.render.manifests import multus, names, page
from sparkloom.site import teardown
from sparkloom.site.objects import GONE, Taker
from tests.places import REPO

MINE = dict(names.PART_OF)


class Kube:
    """The dynamic client's few calls over a dictionary. A deleted workload takes its pods along, a namespace all."""

    def __init__(self, *objects: tuple[str, str, str, dict[str, str]]) -> None:
        self.known = {kind for kind, *_ in objects} | {"Pod", "Namespace"}
        self.things = [
            SimpleNamespace(kind=kind, metadata=SimpleNamespace(
                name=name, namespace=space or None, labels=labels, annotations={}, ownerReferences=None))
            for kind, space, name, labels in objects
        ]  # fmt: skip
        self.order: list[str] = []
        self.resources = self

    def get(self, api_version: str, kind: str) -> Any:
        if kind not in self.known:
            raise ResourceNotFoundError(kind)
        return SimpleNamespace(get=lambda **a: self.read(kind, **a), delete=lambda **a: self.remove(kind, **a))

    def read(self, kind: str, namespace: str | None = None, label_selector: str = "") -> Any:
        wanted = dict(pair.split("=") for pair in label_selector.split(",")) if label_selector else {}
        return SimpleNamespace(items=[
            t for t in self.things
            if t.kind == kind and namespace in (None, t.metadata.namespace)
            and wanted.items() <= (t.metadata.labels or {}).items()
        ])  # fmt: skip

    def remove(self, kind: str, name: str, body: dict[str, str], namespace: str | None = None) -> None:
        assert body["propagationPolicy"] == "Foreground"
        self.order.append(f"{kind} {name}")

        def goes(thing: Any) -> bool:
            mine = thing.metadata.namespace == namespace
            return ((thing.kind, thing.metadata.name) == (kind, name) and mine) or (
                kind == "StatefulSet" and thing.kind == "Pod" and mine
            ) or (kind == "Namespace" and thing.metadata.namespace == name)  # fmt: skip

        self.things = [thing for thing in self.things if not goes(thing)]

    def names(self) -> set[str]:
        return {f"{thing.kind} {thing.metadata.name}" for thing in self.things}


def taker(kube: Kube, *, dry: bool = False, patience: float = 0.0) -> Taker:
    return Taker(kube, "sparkloom", dry, lambda text: None, patience)


SERVED = (
    ("StatefulSet", "sparkloom", "x-rank0", MINE), ("Pod", "sparkloom", "x-rank0-0", MINE),
    ("Service", "sparkloom", "x", MINE), ("ConfigMap", "sparkloom", "x-record", MINE),
)  # fmt: skip
MULTUS = multus.multus("i", "/b", "/c")
NETWORK = (
    ("Namespace", "", "sparkloom", MINE), ("PriorityClass", "", "sparkloom-engine", MINE),
    ("NetworkAttachmentDefinition", "sparkloom", "rail-a-vf0", MINE),
    *((o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"], MINE) for o in MULTUS),
)  # fmt: skip
USERS = (("Service", "sparkloom", "mine", {}), ("Secret", "sparkloom", "hf-token", {}))


def test_serving_goes_workloads_first_and_nothing_of_others() -> None:
    kube = Kube(*SERVED, *NETWORK, *USERS)
    work = taker(kube)
    teardown.serving(work)
    assert kube.order[0] == "StatefulSet x-rank0" and set(kube.order) == set(work.gone)
    assert {"Service mine", "Secret hf-token", "Namespace sparkloom"} <= kube.names()
    assert not {"StatefulSet x-rank0", "Pod x-rank0-0", "Service x", "ConfigMap x-record"} & kube.names()
    again = taker(kube)
    teardown.serving(again)
    assert again.gone == []


def test_metrics_go_with_what_is_served_also_where_an_operator_looks() -> None:
    """Red before: a DaemonSet of ours stayed, and the wait for its pods never ended."""
    told = (
        ("DaemonSet", "sparkloom", "sparkloom-hosts", MINE),
        ("PodMonitor", "monitoring", "sparkloom-ranks", MINE),
        ("PrometheusRule", "monitoring", "sparkloom", MINE),
        ("PodMonitor", "monitoring", "theirs", {}),
    )
    kube = Kube(*told)
    teardown.serving(taker(kube))
    assert kube.names() == {"PodMonitor theirs"}


def of(group: str, *objects: tuple[str, str]) -> list[tuple[str, str, str, dict[str, str]]]:
    return [(kind, "sparkloom", name, {**MINE, names.PROFILE: group}) for kind, name in objects]


def test_one_group_ends_alone_and_nothing_of_the_site_or_of_another_group_with_it() -> None:
    own = of("x", ("StatefulSet", "x-rank0"), ("Pod", "x-rank0-0"), ("Service", "x"), ("ConfigMap", "x-record"),
             ("Secret", "x-engine-key"), ("NetworkPolicy", "x"))  # fmt: skip
    other = of("y", ("StatefulSet", "y-rank0"), ("Service", "y"), ("Secret", "y-group"))
    site = [("Deployment", "sparkloom", "router", MINE), ("Service", "sparkloom", "router", MINE),
            ("Secret", "sparkloom", "client-keys", MINE), ("Secret", "sparkloom", "router", MINE)]  # fmt: skip
    kube = Kube(*own, *other, *site, *NETWORK, *USERS, ("ConfigMap", "sparkloom", "served", MINE))
    before = kube.names()
    work = taker(kube)
    teardown.group(work, ["x"], {("ConfigMap", "served")})
    assert before - kube.names() == {f"{kind} {name}" for kind, _, name, _ in own} | {"ConfigMap served"}
    assert kube.order[0] == "StatefulSet x-rank0" and set(kube.order) == set(work.gone)
    again = taker(kube)
    teardown.group(again, ["x"], set())
    assert again.gone == []


def test_only_the_group_s_own_pods_are_waited_for() -> None:
    kube = Kube(*of("x", ("Pod", "x-rank0-0")), *of("y", ("Pod", "y-rank0-0")))
    with pytest.raises(InputError, match=r"found x-rank0-0 after 0 s"):
        teardown.group(taker(kube), ["x"])
    teardown.group(taker(kube), ["z"])


def test_a_pod_that_does_not_end_is_named_and_nothing_is_forced() -> None:
    kube = Kube(("Pod", "sparkloom", "stuck", MINE))
    with pytest.raises(InputError, match=r"found stuck after 0 s.*Do not delete it by force"):
        teardown.serving(taker(kube))
    assert kube.order == []


def test_networks_are_refused_while_a_pod_is_there() -> None:
    kube = Kube(*SERVED, *NETWORK)
    with pytest.raises(InputError, match=r"x-rank0-0.*teardown_serving=true"):
        teardown.networks(taker(kube))
    assert kube.order == []


def test_networks_and_multus_go_when_nobody_else_needs_them() -> None:
    kube = Kube(*NETWORK)
    teardown.networks(taker(kube))
    assert kube.names() == set() and kube.order[0].startswith("NetworkAttachmentDefinition")
    assert kube.order[-1].startswith("CustomResourceDefinition")
    again = taker(kube)
    teardown.networks(again)
    assert again.gone == []


def test_a_namespace_with_something_of_yours_stays() -> None:
    kube = Kube(*NETWORK, *USERS, ("ConfigMap", "sparkloom", "kube-root-ca.crt", {}))
    said: list[str] = []
    work = taker(kube)
    work.say = said.append
    teardown.networks(work)
    assert "Namespace sparkloom" in kube.names() and "Secret hf-token" in kube.names()
    assert "Secret hf-token, Service mine" in said[0] and "kube-root-ca" not in said[0]


def test_the_page_goes_with_what_it_shows_and_another_site_keeps_its_own() -> None:
    """What it may read of nodes belongs to no namespace."""
    across = [(kind, "", name, MINE) for kind in ("ClusterRole", "ClusterRoleBinding")
              for name in ("sparkloom-page", "other-page", "multus")]  # fmt: skip
    kube = Kube(*SERVED, ("Deployment", "sparkloom", "page", MINE), *across)
    teardown.serving(taker(kube))
    left = kube.names()
    assert "Deployment page" not in left and "ClusterRole sparkloom-page" not in left
    assert {"ClusterRole other-page", "ClusterRoleBinding other-page", "ClusterRole multus"} <= left


def test_multus_stays_where_others_use_it_or_where_it_is_not_ours() -> None:
    kube = Kube(*NETWORK, ("NetworkAttachmentDefinition", "other", "theirs", {}))
    stays = teardown.networks(taker(kube))
    assert stays and "DaemonSet kube-multus-ds" in kube.names()
    theirs = [(kind, space, name, {} if kind != "Namespace" else MINE) for kind, space, name, _ in NETWORK]
    kube = Kube(*theirs)
    teardown.networks(taker(kube))
    assert "DaemonSet kube-multus-ds" in kube.names()


def test_a_dry_run_names_what_would_go_and_removes_nothing() -> None:
    kube = Kube(*SERVED, *NETWORK)
    work = taker(kube, dry=True)
    teardown.serving(work)
    teardown.networks(work)
    assert kube.order == [] and {"StatefulSet x-rank0", "Namespace sparkloom"} <= set(work.gone)


def test_every_kind_that_is_ever_applied_is_known_here() -> None:
    applied = {
        (item["apiVersion"], item["kind"])
        for path in REPO.glob("tests/golden/*/manifests.yaml")
        for item in yaml.safe_load_all(path.read_text())
    }
    applied |= {(item["apiVersion"], item["kind"]) for item in page.page("i", "sparkloom", {"site": "home"}, [])}
    known = {
        *GONE["across"],
        *teardown.WORKLOADS,
        *teardown.REST,
        teardown.NETWORKS,
        teardown.NAMESPACE,
        teardown.PRIORITY,
    }
    assert applied and applied <= known, applied - known


NO = dict.fromkeys(teardown.PARTS, False)


@pytest.mark.parametrize(
    ("consent", "tags", "asked"),
    [
        ({}, ["all"], set(teardown.PARTS)),
        ({}, ["teardown"], set(teardown.PARTS)),
        ({"serving": True}, ["all"], set()),
        ({}, ["fabric"], {"fabric"}),
        ({"serving": True}, ["fabric"], {"fabric"}),
        ({"fabric": True}, ["fabric"], set()),
        ({"fabric": True}, ["fabric", "nodes"], {"nodes"}),
    ],
)
def test_each_part_asks_for_its_own_consent_by_name(consent: dict[str, bool], tags: list[str], asked: set[str]) -> None:
    said = teardown.refusal({**NO, **consent}, tags)
    assert {part for part in teardown.PARTS if f"-e teardown_{part}=true" in said} == asked


def test_a_group_that_is_named_is_a_consent_to_its_own_end_and_to_nothing_else() -> None:
    assert teardown.refusal(NO, ["all"], "chat") == "" == teardown.refusal({**NO, "serving": True}, ["all"], "chat")
    assert teardown.refusal(NO, ["serving"], "chat") == ""
    said = teardown.refusal({**NO, "fabric": True, "weights": True}, ["all"], "chat")
    assert "teardown_group=chat ends one group alone" in said and "teardown_fabric, teardown_weights" in said
    assert "-e teardown_group=NAME" in teardown.refusal(NO, ["all"])
    assert "-e teardown_fabric=true" in teardown.refusal(NO, ["fabric"], "chat")
