"""Multus' objects: K3s' paths where they belong, and no more rights than the daemon uses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from sparkloom.render.manifests import multus
from sparkloom.render.manifests.names import CONFIG_HASH
from tests.render.manifests import case

IMAGE = "multus:v1"
BIN = "/var/lib/rancher/k3s/data/cni"
CONF = "/var/lib/rancher/k3s/agent/etc/cni/net.d"


def objects(bin_folder: str = BIN) -> list[case.Object]:
    return multus.multus(IMAGE, bin_folder, CONF)


def test_definition_comes_before_what_uses_it() -> None:
    kinds = [item["kind"] for item in objects()]
    assert kinds[0] == "CustomResourceDefinition" and kinds[-1] == "DaemonSet"
    assert kinds.index("ServiceAccount") < kinds.index("ClusterRoleBinding")


def test_programs_have_the_same_path_in_the_pod_with_the_folder_that_their_links_lead_to() -> None:
    spec = objects()[-1]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    for container in (*spec["initContainers"], *spec["containers"]):
        (mount,) = [m for m in container["volumeMounts"] if m["name"] == "programs"]
        assert mount["mountPath"] == volumes["programs"]["hostPath"]["path"] == "/var/lib/rancher/k3s/data"
    assert spec["initContainers"][0]["command"][-1] == BIN
    config = json.loads(objects()[4]["data"]["daemon-config.json"])
    assert config["binDir"] == BIN


def test_configuration_folder_is_the_nodes() -> None:
    spec = objects()[-1]["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    config = json.loads(objects()[4]["data"]["daemon-config.json"])
    assert volumes["configuration"]["hostPath"]["path"] == CONF
    assert mounts["configuration"] == config["cniConfigDir"] == config["multusAutoconfigDir"]
    assert mounts["root"] == config["chrootDir"]


def test_mounts_never_go_back_to_the_node() -> None:
    text = json.dumps(objects())
    assert "Bidirectional" not in text and "HostToContainer" in text


def test_no_half_copy_looks_like_the_clusters_network(tmp_path: Path) -> None:
    """After a power cut of four nodes one daemon read `.00-multus.kept.conf` as that, and wrote an empty file."""
    (tmp_path / "00-multus.conf").write_text("{}")
    (tmp_path / "mv").write_text('#!/bin/sh\nls -A > seen\nexec /bin/mv "$@"\n')
    (tmp_path / "mv").chmod(0o755)
    script = multus.KEEP.replace(multus.CONF_IN_POD, str(tmp_path))
    subprocess.run(["sh", "-c", script], check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    seen = {Path(name) for name in (tmp_path / "seen").read_text().split()}
    assert {path.name for path in seen if path.suffix in (".conf", ".conflist", ".json")} == {"00-multus.conf"}
    assert (tmp_path / multus.KEPT).read_text() == "{}"


def test_memory_outlives_a_boot() -> None:
    (container,) = objects()[-1]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"]["memory"] == "100Mi"
    assert container["resources"]["limits"] == {"memory": "512Mi"}


def test_changed_configuration_restarts_the_daemon() -> None:
    def digest(bin_folder: str) -> str:
        return str(objects(bin_folder)[-1]["spec"]["template"]["metadata"]["annotations"][CONFIG_HASH])

    assert digest(BIN) == digest(BIN) != digest("/opt/cni/bin")


def test_role_names_no_wildcard() -> None:
    (role,) = case.of_kind(objects(), "ClusterRole")
    assert "*" not in json.dumps(role["rules"])


def test_a_copy_of_the_configuration_outlives_the_daemon_and_is_neither_first_nor_the_clusters() -> None:
    """Multus' search for the cluster's network skips what begins with 00-multus; runtimes take the first by name."""
    (container,) = objects()[-1]["spec"]["template"]["spec"]["containers"]
    (_, _, command) = container["lifecycle"]["postStart"]["exec"]["command"]
    assert multus.KEPT.startswith("00-multus") and multus.KEPT.endswith(".conf")
    assert sorted(["10-flannel.conflist", multus.KEPT, "00-multus.conf"])[:2] == ["00-multus.conf", multus.KEPT]
    assert command.endswith(f"mv {multus.KEPT}.new {multus.KEPT}"), "never half a file under the name"
