"""The page of a site: one small pod that shows what is served, and acts for keys that may administer.

Its server's Python and its files come out of ConfigMaps, over an image that has Python and nothing of ours. What it may
read and change is listed here by kind or by name, one Secret among them: hashes of people's keys. Only the router
reaches it, which looks at keys first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.launch import ports
from sparkloom.onnode import key_table
from sparkloom.onnode.now.gather import HOSTS_PORT, ROUTER_PORT, SITE, SITE_MAP
from sparkloom.onnode.now.labels import HOSTS, ROUTER, STOPS, lease
from sparkloom.onnode.page import main as program
from sparkloom.onnode.page import server
from sparkloom.onnode.page.site import JOURNAL
from sparkloom.render import pack, template
from sparkloom.render.manifests import access, names, pod_defaults

NAME = "page"
SELECTOR = {"app.kubernetes.io/name": NAME}
NOBODY = 65532
STATIC = Path(server.__file__).with_name("static")


def page(image: str, namespace: str, facts: Mapping[str, Any], api: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Objects in the order to apply them; `api`: the addresses and ports of the cluster's API, the one way out."""
    packed, files = pack.program(NAME), static()
    return template.objects(
        f"manifests/{NAME}",
        image=image,
        namespace=namespace,
        labels={**SELECTOR, "app.kubernetes.io/component": NAME, **names.PART_OF},
        selector=SELECTOR,
        across=across(namespace),
        port=program.PORT,
        told=str(program.PORT),
        live=server.LIVE,
        site_map=SITE_MAP,
        facts={SITE: json.dumps(facts, indent=1) + "\n"},
        program=packed.base64,
        files=files,
        annotations=names.read_at_start(json.dumps([packed.stamp, files], sort_keys=True)),
        engines=names.ENGINES,
        router=ROUTER,
        probes=ports.PROBES,
        keys=key_table.NAME,
        journal=JOURNAL,
        stops=STOPS,
        operation=lease(str(facts["site"])),
        hosts=HOSTS,
        exporter=HOSTS_PORT,
        reached=[
            *access.api_server(api),
            {"to": [{"podSelector": {"matchLabels": names.ENGINES}}]},
            {"to": [{"podSelector": {"matchLabels": ROUTER}}], "ports": pod_defaults.tcp(ROUTER_PORT)},
            {"to": [{"podSelector": {"matchLabels": HOSTS}}], "ports": pod_defaults.tcp(HOSTS_PORT)},
        ],
        unprivileged=pod_defaults.unprivileged(NOBODY),
        locked=pod_defaults.locked(),
    )


def across(namespace: str) -> str:
    """The name of what belongs to no namespace: two sites may share a cluster."""
    return f"{namespace}-{NAME}"


@cache
def static() -> dict[str, str]:
    """The page's own files by name."""
    shown = (file for file in sorted(STATIC.iterdir()) if file.is_file() and file.suffix in server.KINDS)
    return {file.name: file.read_text(encoding="utf-8") for file in shown}
