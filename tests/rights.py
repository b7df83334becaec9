"""What the administrator's role lets somebody do, as the API server judges it: no namespaces, no names."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sparkloom.site.k3s import access

METHODS = {"PATCH": "patch", "PUT": "update", "POST": "create", "DELETE": "delete"}
PLACE = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v\w+(?:/namespaces/[^/]+(?=/[^/?]))?/(?P<kind>[a-z-]+)"
    r"(?:/(?P<name>[^/]+)(?:/(?P<part>\w+))?)?$"
)


def allows(verb: str, group: str, resource: str, rules: list[dict[str, Any]] | None = None) -> bool:
    return any(
        verb in rule["verbs"] and group in rule["apiGroups"] and resource in rule["resources"]
        for rule in rules or access.rules()
    )


def refused(method: str, url: str) -> str:
    """What of a request the role does not have; nothing of one that it has, or that asks what kinds there are."""
    split = urlsplit(url)
    if not (found := PLACE.match(split.path)):
        return ""
    group, resource = found["group"] or "", "/".join(filter(None, (found["kind"], found["part"])))
    verb = METHODS.get(method) or ("get" if found["name"] else "list")
    verb = "watch" if "watch" in parse_qs(split.query) else verb
    return "" if allows(verb, group, resource) else f"{verb} {resource} of {group or 'core'}"
