"""The schemas of Kubernetes releases, out of kubernetes-validate's files, read once per release.

The package's own validate() reads megabytes for every object; this keeps one validator per kind.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import jsonschema
from kubernetes_validate import utils
from referencing import Registry, Resource

RELEASES = ("1.32", "1.33", "1.34", "1.35", "1.36", "1.37")

# The custom resource that Multus defines, stricter than its own definition: only what we write.
NETWORK = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "k8s.cni.cncf.io/v1"},
        "kind": {"const": "NetworkAttachmentDefinition"},
        "metadata": {"type": "object", "required": ["name", "namespace"]},
        "spec": {
            "type": "object",
            "required": ["config"],
            "additionalProperties": False,
            "properties": {"config": {"type": "string", "contentMediaType": "application/json"}},
        },
    },
}

# Traefik's kinds, stricter than its own definitions: only what we write. The real ones judge on the rack.
TRAEFIK = {
    "ServersTransport": {
        "forwardingTimeouts": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: {"type": "string", "pattern": r"^[0-9]+s$"}
                for name in ("dialTimeout", "responseHeaderTimeout")
            },
        },
        "maxIdleConnsPerHost": {"type": "integer", "minimum": -1},
    },
    "Middleware": {
        "buffering": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"maxRequestBodyBytes": {"type": "integer"}},
        },
        "retry": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "attempts": {"type": "integer", "minimum": 0},
                "status": {"type": "array", "items": {"type": "string", "pattern": "^([1-5][0-9]{2}[,-]?)+$"}},
                "maxRequestBodyBytes": {"type": "integer", "minimum": -1},
                "disableRetryOnNetworkError": {"type": "boolean"},
                "retryNonIdempotentMethod": {"type": "boolean"},
            },
        },
        "redirectScheme": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"scheme": {"const": "https"}, "permanent": {"type": "boolean"}},
        },
    },
    "TLSStore": {
        "defaultCertificate": {
            "type": "object",
            "additionalProperties": False,
            "required": ["secretName"],
            "properties": {"secretName": {"type": "string"}},
        }
    },
    "IngressRoute": {
        "entryPoints": {"type": "array", "items": {"type": "string"}},
        "tls": {"type": "object", "required": ["secretName"], "additionalProperties": False,
                "properties": {"secretName": {"type": "string"}}},
        "routes": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["kind", "match", "services"],
                "additionalProperties": False,
                "properties": {
                    "kind": {"const": "Rule"},
                    "match": {"type": "string"},
                    "priority": {"type": "integer"},
                    "middlewares": {"type": "array", "items": {"type": "object", "required": ["name"]}},
                    "services": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "additionalProperties": False,
                            "properties": {
                                "name": {"type": "string"},
                                "kind": {"const": "TraefikService"},
                                "port": {"type": "integer"},
                                "scheme": {"enum": ["http", "https", "h2c"]},
                                "serversTransport": {"type": "string"},
                                "passHostHeader": {"type": "boolean"},
                            },
                        },
                    },
                },
            },
        },
    },
}  # fmt: skip


def _traefik(kind: str) -> dict[str, Any]:
    spec = TRAEFIK[kind]
    needed = {"Middleware": [], "IngressRoute": ["entryPoints", "routes"]}.get(kind, list(spec))
    return {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": "traefik.io/v1alpha1"},
            "kind": {"const": kind},
            "metadata": {"type": "object", "required": ["name", "namespace"]},
            "spec": {
                "type": "object",
                "required": needed,
                "minProperties": 1,
                "additionalProperties": False,
                "properties": spec,
            },
        },
    }


@cache
def _registry(folder: str) -> Registry:
    definitions = Resource.from_contents(
        utils.schema_contents(f"kubernetes-json-schema/{folder}/_definitions.json", folder)
    )
    return definitions @ Registry()


@cache
def _validator(api_version: str, kind: str, release: str) -> Any:
    if kind == "NetworkAttachmentDefinition":
        return jsonschema.Draft202012Validator(NETWORK)
    if kind in TRAEFIK:
        return jsonschema.Draft202012Validator(_traefik(kind))
    folder = f"v{release}.0-local-strict"
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    schema = utils.schema_contents(f"kubernetes-json-schema/{folder}/{kind.lower()}-{group}.json", release)
    registry = Resource.from_contents(schema) @ _registry(folder)
    return jsonschema.Draft202012Validator(schema, registry=registry)


def problems(item: dict[str, Any], release: str) -> list[str]:
    """What the release's schema says against an object; unknown fields count."""
    found = _validator(item["apiVersion"], item["kind"], release).iter_errors(item)
    name = f"{item['kind']}/{item['metadata']['name']}"
    return [f"{release} {name} {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}" for error in found]
