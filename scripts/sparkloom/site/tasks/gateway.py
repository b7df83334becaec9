"""The endpoint: its certificate and the way in, and whether it answers. A relative file starts at the repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkloom.base.errors import InputError
from sparkloom.base.repository import place
from sparkloom.render import certificates, clients, keys
from sparkloom.render.manifests import gateway, router, waker
from sparkloom.site import ansible, client, endpoint, objects
from sparkloom.site import router as routers
from sparkloom.site import waker as wakers
from sparkloom.site.ansible import Context, Data
from sparkloom.site.checks import report


def prepare(
    context: Context,
    names: Sequence[str],  # names of the endpoint besides the machines' addresses
    folder: str,  # where the site's own authority is kept
    certificate: str,  # a certificate chain of one's own; empty for the site's
    certificate_key: str,  # its key
    port: int,  # where the nodes take TLS
    ingress: str,  # class of the Ingress that leads to the router; empty: the nodes' ports do; auto
    annotations: Mapping[str, str],  # of that Ingress
) -> Data:
    """Makes the certificate and plans the way in."""
    cluster = context.cluster
    reached, ingress = client.of(cluster), gateway.ingress_class(cluster, ingress)
    if ingress and not names:
        message = f"an Ingress of class '{ingress}' is asked for by name; expected the endpoint's names"
        raise InputError.single("gateway_names", message, rule="missing-key")
    addresses = [] if ingress else reached.node_addresses()
    if certificate:
        pair = certificates.given(place(certificate), place(certificate_key), list(names))
    else:
        pair = certificates.own(place(folder), cluster.name, [*names, *addresses], dry=context.dry)
    secret = {"tls.crt": pair.certificate, "tls.key": pair.key}
    there = reached.secret(gateway.TLS_SECRET) is not None
    stored = reached.put_secret(gateway.TLS_SECRET, secret, kind="kubernetes.io/tls", dry=context.dry)
    if stored and not context.dry:
        routers.look(reached, routers.running(reached))
    differs, wanted = pair.made or stored, f"the endpoint's certificate, until {pair.until:%Y-%m-%d}"
    page = reached.has_service(router.PAGE)
    led = (
        gateway.ingress(cluster.namespace, ingress, names, annotations, page=page)
        if ingress
        else gateway.service(cluster.namespace, port)
    )
    return {
        "changed": differs,
        "drift": report.secret(gateway.TLS_SECRET, there=there, differs=differs, expected=wanted),
        "kubeconfig": client.kubeconfig(cluster),
        "objects": [led],
        "name": names[0] if names else "",
        "trust": pair.trust,
        "until": f"{pair.until:%Y-%m-%d}",
    }


def clear(
    context: Context,
    ingress: str,  # class of the Ingress that leads to the router now; auto
) -> Data:
    """Takes away what led to the router before, and a waker of which nobody is on demand any more."""
    reached = client.of(context.cluster)
    other = gateway.SERVICE if gateway.ingress_class(context.cluster, ingress) else gateway.INGRESS
    gone = objects.left_over(reached, (other, *objects.GONE["traefik"]), gateway.LABELS, dry=context.dry)
    if reached.has_service(waker.NAME) and not wakers.demanded(context.cluster, ansible.listed(context.vars))[0]:
        gone += objects.left_over(reached, objects.GONE["waker"], waker.LABELS, dry=context.dry)
    left = [{"what": what, "found": "left over", "expected": "nothing"} for what in gone]
    return {"changed": bool(gone), "drift": left, "msg": ", ".join(gone) or "nothing is left over"}


def prove(
    context: Context,
    name: str,  # whom its certificate must name; empty for its address
    port: int,  # its port for TLS
    trust: str,  # the authority to trust; empty for this machine's own
    key_file: str,  # file with the API key
    max_tokens: int,  # limit of the answer
    silence: float,  # seconds that it may say nothing
    models: Sequence[str] = (),  # the groups to ask, each by its name
    asleep: Sequence[str] = (),  # those that nobody is to wake by asking
    stopped: Sequence[str] = (),  # those that answer nobody until they are started
) -> Data:
    """Asks it, and shows what it answers."""
    file = place(key_file)
    address = endpoint.opened(client.of(context.cluster))
    served = endpoint.Endpoint(address, port, name or address, trust, silence)
    key = keys.read(file)
    answers = [
        endpoint.prove(served, key, max_tokens, lambda text: context.say(text, newline=False), model)
        for model in models or ([] if asleep or stopped else [""])
    ]
    if not answers:
        endpoint.prove_doors(served)
    endpoint.prove_router(served, key)
    context.say("\n")
    asked = next(iter([*models, *asleep, *stopped]), "") or answers[0]["model"]
    line = clients.every()["curl"].filled({"URL": served.url, "CA": trust, "KEY": str(file), "MODEL": asked}).run
    told = f"{served.url} streams{' from ' + ', '.join(models) if models else ''}"
    told = told if answers else f"{served.url} is open, and all that it leads to sleep or are stopped"
    told += f"; asleep, wakes with the next request: {', '.join(asleep)}" if asleep else ""
    told += f"; stopped: {', '.join(stopped)}" if stopped else ""
    return {"answer": next(iter(answers), None), "answers": answers, "url": served.url, "curl": line, "msg": told}
