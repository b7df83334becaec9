"""The router of several models in the cluster: one pod of Envoy, what it may reach, and who may reach it.

One replica, and a new one before the old one goes (maxSurge): a second one grants each person his whole limit again,
but only until new connections are led to the new one, about a second, and to those that keep one to the old one; a
Recreate would leave nobody to ask for as long as the last stream takes. No PodDisruptionBudget: of one pod it would
either forbid every drain of its Spark or say nothing.

All its files are two Secrets, its own and that of the keys, mounted as one folder, so a group or a key more restarts
nothing: the kubelet swaps the folder and Envoy reads it. What only a start reads (bootstrap, script, words) is in the
pod's hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from sparkloom.inputs.cluster import Cluster
from sparkloom.launch import ports
from sparkloom.onnode import key_table
from sparkloom.render import template
from sparkloom.render.manifests import access, names, pod_defaults
from sparkloom.render.router import Terms, envoy

NAME = "router"
CERTIFICATE = "gateway-tls"  # the Secret of the endpoint's certificate
CERTIFICATES = "/etc/sparkloom-tls"  # where it is mounted
PAGE, PAGE_PORT = "page", 8090  # what people look at, where it is there
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": NAME, **names.PART_OF}
SELECTOR = {"app.kubernetes.io/name": NAME, **names.PART_OF}
USER = 65532
GRACE = 600  # seconds that streams have when another pod takes over
PROGRAM = "/usr/local/bin/envoy"
# Its Service names it no more when this begins. What is on its way goes on; the connections that idle are closed.
DRAIN = """\
ask() {
  exec 3<>/dev/tcp/127.0.0.1/%(admin)d || return 1
  printf '%%s %%s HTTP/1.1\\r\\nHost: router\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n' "$1" "$2" >&3
  while IFS= read -r line <&3 || [ -n "$line" ]; do echo "$line"; done
  exec 3>&-
}
sleep 3
ask POST /healthcheck/fail >/dev/null
while [ $SECONDS -lt %(longest)d ]; do
  case "$(ask GET '/stats?filter=^http.%(statistics)s.downstream_rq_active$')" in
    *'rq_active: 0'*) exit 0 ;;
  esac
  sleep 1
done
"""


def router(
    image: str, terms: Terms, engines: Iterable[int], cluster: Cluster, files: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Objects in the order to apply them, for the Secrets with these files and the certificate, which are made
    elsewhere; `engines`: the ports at which engines answer."""
    page = {"app.kubernetes.io/name": PAGE, **names.PART_OF}
    tls = {"https": terms.tls_port} if terms.tls else {}
    listening = {"http": terms.port, "metrics": terms.metrics_port, "probes": terms.probe_port, **tls}
    folders = {"files": terms.folder, **({"certificate": terms.tls} if terms.tls else {})}
    log = str(PurePosixPath(terms.log).parent)
    held = {"files": _secrets(NAME, key_table.NAME), "certificate": _secrets(CERTIFICATE)}
    read = [{"name": name, "mountPath": path, "readOnly": True} for name, path in folders.items()]
    kept = [{"name": name, "projected": {"sources": held[name], "defaultMode": 0o440}} for name in folders]
    asked = pod_defaults.tcp(*sorted({*engines, ports.PROBES}))
    shown = [{"to": [{"podSelector": {"matchLabels": page}}], "ports": pod_defaults.tcp(PAGE_PORT)}]
    made = template.objects(
        f"manifests/{NAME}",
        image=image,
        namespace=cluster.namespace,
        labels=LABELS,
        selector=SELECTOR,
        clients=pod_defaults.tcp(terms.port, *tls.values()),
        page=page,
        access={access.ACCESS: "true"},
        engines=names.ENGINES,
        probes=ports.PROBES,
        port=terms.port,
        metrics=terms.metrics_port,
        reached=[
            {"to": [{"podSelector": {"matchLabels": names.ENGINES}}], "ports": asked},
            access.name_service(),
            *(shown if terms.page else []),
        ],
        annotations={names.CONFIG_HASH: started_by(terms, files)},
        grace=GRACE,
        command=_words(terms),
        listening=[{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in listening.items()],
        memory=terms.memory,
        drain=DRAIN % {"admin": terms.admin_port, "longest": GRACE - 20, "statistics": envoy.STATISTICS},
        mounts=[*read, {"name": "log", "mountPath": log}],
        volumes=[*kept, {"name": "log", "hostPath": {"path": log, "type": "DirectoryOrCreate"}}],
        log=log,
        user=str(USER),
        owner={**pod_defaults.locked(), "runAsNonRoot": False, "runAsUser": 0, "runAsGroup": USER},
        **pod_defaults.any_spark(cluster),
        unprivileged=pod_defaults.unprivileged(USER, fsGroup=USER),
        locked={"privileged": False, **pod_defaults.locked()},
    )
    return [access.priority_class(), *made]


def started_by(terms: Terms, files: Mapping[str, str]) -> str:
    """What makes another pod: the files that are read once, in their own words and in those of the command."""
    once = "\n".join((files["envoy.yaml"], *(files[name] for name in envoy.SCRIPTS), *_words(terms)))
    return hashlib.sha256(once.encode()).hexdigest()[:16]


def _secrets(*called: str) -> list[dict[str, Any]]:
    """Sources of one folder."""
    return [{"secret": {"name": name}} for name in called]


def _words(terms: Terms) -> list[str]:
    return [PROGRAM, *envoy.argv(terms)[1:]]
