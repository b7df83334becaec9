"""What was rendered, beside what runs: `sparkloom status` compares the two."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch.resolve import Launch
from sparkloom.render.manifests import files, names


def config_hash(
    launch: Launch,
    templates: Sequence[dict[str, Any]],
    networks: Sequence[dict[str, Any]],
    supervisor: Mapping[str, str],
) -> str:
    """Over everything that a running rank would see change: all ranks' pods, their files, their networks."""
    joined = {end.attachment for rank in launch.ranks for end in rank.place.endpoints}
    seen = {
        "pods": list(templates),
        "files": files.contents(launch),
        "supervisor": dict(supervisor),
        "networks": [network["spec"] for network in networks if network["metadata"]["name"] in joined],
    }
    text = json.dumps(seen, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def config_map(launch: Launch, cluster: Cluster, digest: str) -> dict[str, Any]:
    data = {
        **({"group": launch.group} if launch.group != launch.profile.name else {}),
        **({"fraction": launch.seat.fraction} if launch.seat and launch.seat.fraction else {}),
        "profile": launch.profile.name,
        "model": launch.profile.profile.model.id,
        "revision": launch.profile.profile.model.revision,
        "engine": launch.engine,
        "release": launch.release,
        "image": launch.image,
        "config_hash": digest,
        "cluster": cluster.name,
        "ranks": [
            {
                "rank": rank.index,
                "node": rank.place.node.name,
                "addresses": {endpoint.rail: endpoint.cidr for endpoint in rank.place.endpoints},
                "argv": list(rank.argv),
            }
            for rank in launch.ranks
        ],
    }
    name = f"{names.group(launch.group)}-record"
    metadata = names.metadata(launch, cluster.namespace, name)
    return names.manifest("v1", "ConfigMap", metadata, data={"record.json": files.as_json(data)})
