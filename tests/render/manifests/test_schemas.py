"""Everything that is rendered is accepted by the schemas of Kubernetes 1.32 to 1.37."""

from __future__ import annotations

import copy
import json

import pytest
import yaml
from kubernetes_validate import utils

from sparkloom.inputs import profile
from sparkloom.render import manifests
from sparkloom.render.manifests import multus
from tests.render.manifests import case, schemas


@pytest.mark.parametrize("release", schemas.RELEASES)
def test_release_has_schemas_of_its_own(release: str) -> None:
    assert f"{release}.0-local-strict" in {path.removeprefix("v") for path in _folders()}


def _folders() -> list[str]:
    import importlib_resources

    root = importlib_resources.files("kubernetes_validate").joinpath("kubernetes-json-schema")
    return [item.name for item in root.iterdir()]


@pytest.mark.parametrize("name", profile.names())
def test_shipped_profile_is_valid_in_every_release(name: str) -> None:
    # what is judged is the text that is written, as an API server reads it
    objects = list(yaml.safe_load_all(manifests.to_yaml(case.build(name))))
    assert [text for release in schemas.RELEASES for item in objects for text in schemas.problems(item, release)] == []


@pytest.mark.parametrize(
    "where", [case.cluster(security_mode="device-plugin"), case.one_rail()], ids=["plugin", "one-rail"]
)
def test_other_modes_are_valid_too(where: object) -> None:
    objects = case.build(case.ULTRA, where)  # type: ignore[arg-type]
    assert [text for release in schemas.RELEASES for item in objects for text in schemas.problems(item, release)] == []


def test_multus_is_valid_in_every_release() -> None:
    objects = multus.multus("image", "/opt/cni/bin", "/etc/cni/net.d")
    assert [text for release in schemas.RELEASES for item in objects for text in schemas.problems(item, release)] == []


def test_fast_check_says_what_the_package_says() -> None:
    """Our cached validators and kubernetes-validate itself agree, on a good object and on a bad one."""
    good = case.of_kind(case.build(), "StatefulSet")[0]
    utils.validate(good, "1.35", strict=True)
    bad = copy.deepcopy(good)
    bad["spec"]["template"]["spec"]["containers"][0]["tolerationz"] = 1
    assert schemas.problems(bad, "1.35")
    with pytest.raises(utils.ValidationError):
        utils.validate(bad, "1.35", strict=True)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("StatefulSet", ("spec", "replicas"), "one"),
        ("Service", ("spec", "ports", 0, "port"), "30000"),
        ("ConfigMap", ("data", "record.json"), 1e5),
        ("NetworkPolicy", ("spec", "ingress"), {}),
        ("PodDisruptionBudget", ("spec", "selectors"), {}),
        ("NetworkAttachmentDefinition", ("spec", "config"), {"type": "host-device"}),
        ("NetworkAttachmentDefinition", ("spec", "mtu"), 9000),
    ],
)
def test_wrong_objects_are_refused(kind: str, path: tuple[str | int, ...], value: object) -> None:
    item = json.loads(json.dumps(case.of_kind(case.build(), kind)[-1]))
    place = item
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    assert all(schemas.problems(item, release) for release in schemas.RELEASES)
