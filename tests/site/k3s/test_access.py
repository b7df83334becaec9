"""The administrator's access: a key that never leaves, a certificate of days, and nobody else's file touched."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from sparkloom.base.errors import InputError
from sparkloom.render.k3s import paths
from sparkloom.site import client
from sparkloom.site.k3s import access
from tests.k3s_signer import signing
from tests.k3s_sites import site

API, NAME, WHO = "https://10.1.0.1:6443", "sparkloom-gb10", "sparkloom:ada@laptop"


def kept(target: Path, ago: float = 0) -> str:
    access.renew(str(target), WHO, API, NAME, signing(ago))
    return str(target)


def test_the_key_is_made_here_and_only_its_request_leaves(tmp_path: Path) -> None:
    target, seen = tmp_path / "kube/config", list[Any]()
    access.renew(str(target), WHO, API, NAME, signing(seen=seen))
    assert [path.name for path in target.parent.iterdir()] == ["config"] and target.stat().st_mode & 0o777 == 0o600
    line, _, binding, asked = seen
    assert binding["subjects"] == [{"kind": "User", "name": WHO, "apiGroup": "rbac.authorization.k8s.io"}]
    assert asked["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client"
    assert asked["spec"]["expirationSeconds"] == 30 * 24 * 3600 and asked["spec"]["usages"] == ["client auth"]
    request = x509.load_pem_x509_csr(base64.b64decode(asked["spec"]["request"]))
    assert request.subject.rfc4514_string() == f"CN={WHO}", "no group: nobody's but what the binding says"
    data = yaml.safe_load(target.read_text())
    assert data["clusters"][0]["cluster"]["server"] == API and data["current-context"] == NAME
    assert data["contexts"][0]["context"] == {"cluster": NAME, "user": NAME}
    key = base64.b64decode(data["users"][0]["user"]["client-key-data"]).decode()
    assert "PRIVATE KEY" in key and "PRIVATE" not in line + yaml.safe_dump(seen)


K3S = """#!/bin/sh
echo "$*" >>{folder}/log
case "$*" in
  *apply*) cat >{folder}/applied ;;
  *approve*) exit {approved} ;;
  *get*) printf c2lnbmVk ;;
esac
"""


@pytest.mark.parametrize(("approved", "told"), [(0, "signedauthority"), (1, "")])
def test_the_first_server_signs_by_its_own_access(tmp_path: Path, approved: int, told: str) -> None:
    """Nothing is told of what was not approved."""
    program = tmp_path / "k3s"
    program.write_text(K3S.format(folder=tmp_path, approved=approved))
    program.chmod(0o755)
    (tmp_path / "ca").write_text("authority")
    script = access.SIGN.replace("NAME", "sparkloom-1").replace(paths.BINARY, str(program))
    words = ["sh", "-c", script.replace(paths.AUTHORITY, str(tmp_path / "ca"))]
    done = subprocess.run(words, input="{}", capture_output=True, text=True)
    assert done.stdout == told and (tmp_path / "applied").read_text() == "{}"
    log = (tmp_path / "log").read_text()
    assert log.startswith(f"kubectl --kubeconfig={paths.KUBECONFIG} apply -f -\n")
    assert "certificate approve sparkloom-1\n" in log


def test_it_is_renewed_in_the_last_third_of_its_life(tmp_path: Path) -> None:
    assert access.lasts(kept(tmp_path / "a", ago=19.9), WHO, API)
    assert not access.lasts(kept(tmp_path / "a", ago=20.1), WHO, API)


def test_it_is_made_anew_where_it_is_another_s_or_open(tmp_path: Path) -> None:
    """K3s' own file, which sites from before have, is system:admin's."""
    target = kept(tmp_path / "a")
    assert access.lasts(target, WHO, API) and not access.lasts(str(tmp_path / "none"), WHO, API)
    assert not access.lasts(target, "sparkloom:eve@laptop", API)
    assert not access.lasts(target, WHO, "https://10.1.0.2:6443")
    Path(target).chmod(0o644)
    assert not access.lasts(target, WHO, API)


@pytest.mark.parametrize("person", ["ada@laptop", "CORP\\ada@her laptop", "a" * 70, "../x%2f@y"])
def test_a_person_s_name_is_one_that_objects_may_have(person: str) -> None:
    name = access.user(person)
    assert name.startswith("sparkloom:") and len(name) <= 64 and not set(name) & set("/\\% ")


def test_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    target = Path(kept(tmp_path / "config"))
    text, seen = target.read_text(), list[Any]()
    with pytest.raises(InputError, match="holds another cluster's access"):
        access.renew(str(target), WHO, API, "sparkloom-other", signing(seen=seen))
    assert target.read_text() == text and not seen, "and nobody was asked"


def test_the_usual_place_carries_the_clusters_name() -> None:
    assert client.kubeconfig(site()).endswith("/.kube/sparkloom-gb10")
    assert client.kubeconfig(site(provider="existing")).endswith("/.kube/config")
    assert client.kubeconfig(site(kubeconfig=".build/x")).endswith("/.build/x")
