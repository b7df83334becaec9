"""The administrator's role has what Sparkloom asks of a cluster, and nothing that makes a cluster-admin of it.

tests/kube_api.py holds every test that it serves to it; tests/rack/test_k3s_itself.py has K3s itself judge it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from sparkloom.site.k3s import access
from sparkloom.site.objects import TABLE
from tests import rights
from tests.places import REPO

METHOD = re.compile(
    r"\b(read|list|create|replace|patch|delete|connect_get)_(?:namespaced_)?([a-z_]+?)(_for_all_\w+)?\("
)
VERBS = {"read": "get", "replace": "update", "connect_get": "get"}
OWN = ("Ingress", "PrometheusRule", "Secret")  # which no file of ours has whole
ODD = {"podmonitor": "podmonitors", "networkpolicy": "networkpolicies", "ingress": "ingresses", "tlsstore": "tlsstores"}


@cache
def objects() -> tuple[dict[str, Any], ...]:
    """All that is applied, as its templates have it."""
    files = sorted((REPO / "scripts/sparkloom/render").rglob("*.yml"))
    texts = [path.read_text() for path in files if path.parent.name != "k3s"]
    found = [one for text in texts if "\nkind: " in text for one in yaml.safe_load_all(text)]
    assert len(found) > 50
    return tuple(found)


def plural(kind: str) -> str:
    word = kind.lower()
    return "network-attachment-definitions" if word == "networkattachmentdefinition" else ODD.get(word) or (
        f"{word[:-1]}ies" if word.endswith("cy") else f"{word}es" if word.endswith("ss") else f"{word}s"
    )  # fmt: skip


def group(version: str) -> str:
    return version.rpartition("/")[0]


def test_what_is_applied_may_be_applied_looked_at_and_taken_away() -> None:
    kinds = {(group(one["apiVersion"]), plural(one["kind"])) for one in objects()}
    kinds |= {("networking.k8s.io", "ingresses"), ("monitoring.coreos.com", "prometheusrules"), ("", "secrets")}
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    lacking = [(kind, verb) for kind in sorted(kinds) for verb in verbs if not rights.allows(verb, *kind)]
    assert lacking == []


def test_what_is_taken_away_may_be() -> None:
    known = [kind.split()[:2] for kinds in TABLE.values() for kind in kinds]
    lacking = [
        (version, kind, verb)
        for version, kind in known
        for verb in ("get", "list", "delete")
        if not rights.allows(verb, group(version), plural(kind))
    ]
    assert lacking == []


def granted() -> Iterator[tuple[str, str, str]]:
    for one in objects():
        for rule in one["rules"] if one["kind"] in ("Role", "ClusterRole") else ():
            for where in rule["apiGroups"]:
                yield from ((verb, where, resource) for resource in rule["resources"] for verb in rule["verbs"])


def test_nobody_is_given_what_the_giver_lacks() -> None:
    """The API server refuses that: on a site none of these roles could be applied."""
    given = list(granted())
    assert len(given) > 25 and [one for one in given if not rights.allows(*one)] == []


def test_the_client_s_calls_are_all_in_it() -> None:
    """By their names, as Kubernetes' client has them."""
    parts = {"pod_log": "pods/log", "pod_exec": "pods/exec", "pod_portforward": "pods/portforward"}
    resources = {rule["resources"][at]: rule for rule in access.rules() for at in range(len(rule["resources"]))}
    calls = set()
    for path in sorted((REPO / "scripts/sparkloom").rglob("*.py")):
        calls |= {(found[1], found[2]) for found in METHOD.finditer(path.read_text()) if found[2].count("custom") == 0}
    lacking = []
    for verb, thing in sorted(calls):
        resource = parts.get(thing) or plural(thing.replace("_", ""))
        if resource in resources and VERBS.get(verb, verb) not in resources[resource]["verbs"]:
            lacking.append((verb, resource))
    assert len(calls) > 20 and lacking == []


@pytest.mark.parametrize(
    ("verb", "where", "resource"),
    [
        ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
        ("bind", "rbac.authorization.k8s.io", "clusterroles"),
        ("impersonate", "", "users"),
        ("approve", "certificates.k8s.io", "signers"),
        ("create", "certificates.k8s.io", "certificatesigningrequests"),
        ("create", "", "serviceaccounts/token"),
        ("get", "", "nodes/proxy"),
        ("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("create", "", "pods"),
    ],
)
def test_what_makes_more_of_it_is_not(verb: str, where: str, resource: str) -> None:
    assert not rights.allows(verb, where, resource)
    assert not any("*" in rule[part] for rule in access.rules() for part in ("verbs", "apiGroups", "resources"))
