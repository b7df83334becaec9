"""A rank without a pod: the host's own interfaces, folders of the person who starts it, a key in a file.

In a pod a rail is `net1`; on the host it is the port itself, so the launch is resolved with whole ports and NCCL is
told their names. Addresses are the inventory's: the person has to have them on those ports.
"""

from __future__ import annotations

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import engines, fabric
from sparkloom.launch.engines import base
from sparkloom.launch.resolve import Launch, Rank
from sparkloom.render.manifests import files

STORE = "${HF_HUB_CACHE:-$HOME/.cache/huggingface/hub}"
CACHE = "${SPARKLOOM_CACHE:-$HOME/.cache/sparkloom}"
FOLDER = "${MODEL_FOLDER:?names the folder with the files of the model}"
KEY = "engine-key.yaml"
NCCL_CONF = "/etc/nccl.conf"


def at_hosts(cluster: Cluster) -> Cluster:
    """The same rack with whole ports: nobody makes virtual functions where there is no Kubernetes."""
    rails = [rail.model_copy(update={"attach": "pf"}) for rail in cluster.fabric.rails]
    return cluster.model_copy(update={"fabric": cluster.fabric.model_copy(update={"attach": "pf", "rails": rails})})


def environment(rank: Rank) -> dict[str, str]:
    """A rank's variables with the host's names of its rails."""
    return {
        variable.name: _named(variable.value, rank) if variable.origin.kind == "fabric" else variable.value
        for variable in rank.env
    }


def _named(value: str, rank: Rank) -> str:
    for number, endpoint in enumerate(rank.place.endpoints):
        value = value.replace(fabric.pod_interface(number), endpoint.interface)
    return value


def words(launch: Launch, rank: Rank) -> list[str]:
    return [*rank.argv, *(() if rank.index else engines.get(launch.engine).key_words)]


def texts(launch: Launch) -> dict[str, str]:
    """Files that the engine reads, by their path in the container."""
    return {path: text for path, text in files.contents(launch).items() if path != NCCL_CONF}


def folders(launch: Launch) -> list[str]:
    """As Docker mounts them; that of the model's files only where some word of the command leads there."""
    folder = base.model_folder(launch.profile.profile.model.id)
    named = any(folder in word for rank in launch.ranks for word in rank.argv)
    known = [f"{STORE}:{base.MODELS}:ro", f"{CACHE}:{base.CACHE}"]
    return [*known, f"{FOLDER}:{folder}:ro"] if named else known


def key_place(launch: Launch) -> str:
    """Where the engine looks for its key; empty for one that takes none."""
    asked = engines.get(launch.engine).key_words
    return asked[1] if asked else ""
