"""Other people's namespaces, volumes and containers are named before a K3s of ours goes with them."""

from __future__ import annotations

from types import SimpleNamespace

from sparkloom.site import teardown
from tests.site.test_teardown import MINE, NETWORK, SERVED, Kube, taker

BORN = (
    *(("Namespace", "", name, {}) for name in ("kube-system", "kube-public", "kube-node-lease", "default")),
    ("Service", "default", "kubernetes", {}), ("ConfigMap", "default", "kube-root-ca.crt", {}),
    ("Pod", "kube-system", "coredns-1", {}),
)  # fmt: skip
THEIRS = (
    ("Namespace", "", "photos", {}), *(("Pod", "photos", f"web-{n}", {}) for n in range(5)),
    ("Namespace", "", "notes", {}), ("Deployment", "default", "blog", {}), ("Secret", "sparkloom", "hf-token", {}),
    ("PersistentVolume", "", "pvc-1", {}),
)  # fmt: skip


def test_a_cluster_with_nothing_but_ours_asks_nothing() -> None:
    kube = Kube(*BORN, *SERVED, *NETWORK)
    assert teardown.of_others(taker(kube)) == []
    assert teardown.kept_by_others([], {"spark1": []}, consent=False) == ""


def test_all_that_others_keep_is_named_before_anything_goes() -> None:
    kube = Kube(*BORN, *SERVED, *NETWORK, *THEIRS)
    for thing in kube.things:
        claim = SimpleNamespace(namespace="photos", name="album")
        thing.spec = SimpleNamespace(claimRef=claim if thing.kind == "PersistentVolume" else None)
    found = teardown.of_others(taker(kube))
    assert found == [
        "namespace photos (pods: web-0, web-1, web-2 and 2 more)",
        "namespace notes (pods: none)",
        "Deployment blog in namespace default",
        "Secret hf-token in namespace sparkloom",
        "volume pvc-1 of photos/album",
    ]
    assert kube.order == [] and MINE
    said = teardown.kept_by_others(found, {"spark1": [], "spark2": ["volume /var/lib/x"]}, consent=False)
    assert all(thing in said for thing in found) and "spark2: volume /var/lib/x" in said
    assert "nothing was taken away" in said and "-e teardown_others=true" in said
    assert teardown.kept_by_others(found, {}, consent=True) == ""
