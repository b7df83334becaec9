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
