"""The administrator's kubeconfig: usable from here, closed, and never over somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sparkloom.base.errors import InputError
from sparkloom.site import client
from sparkloom.site.k3s import access
from tests.k3s_sites import site

PART = "c2VjcmV0"
GIVEN = yaml.safe_dump(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "default", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": PART}}
        ],
        "users": [{"name": "default", "user": {"client-certificate-data": PART, "client-key-data": PART}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    }
)
API, NAME = "https://10.1.0.1:6443", "sparkloom-gb10"


def test_it_is_written_once_and_closed(tmp_path: Path) -> None:
    target = tmp_path / "kube/config"
    assert access.keep(str(target), GIVEN, API, NAME, dry=True) and not target.exists()
    assert access.keep(str(target), GIVEN, API, NAME)
    assert target.stat().st_mode & 0o777 == 0o600
    data = yaml.safe_load(target.read_text())
    assert data["clusters"][0]["cluster"]["server"] == API and data["current-context"] == NAME
    assert data["contexts"][0]["context"] == {"cluster": NAME, "user": NAME}
    assert not access.keep(str(target), GIVEN, API, NAME)
    target.chmod(0o644)
    assert access.keep(str(target), GIVEN, API, NAME) and target.stat().st_mode & 0o077 == 0


def test_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "config"
    target.write_text(GIVEN)
    with pytest.raises(InputError, match="holds another cluster's access"):
        access.keep(str(target), GIVEN, API, NAME)
    assert target.read_text() == GIVEN


def test_the_usual_place_carries_the_clusters_name() -> None:
    assert client.kubeconfig(site()).endswith("/.kube/sparkloom-gb10")
    assert client.kubeconfig(site(provider="existing")).endswith("/.kube/config")
    assert client.kubeconfig(site(kubeconfig=".build/x")).endswith("/.build/x")
