"""The endpoint: its certificate and its route, and whether it answers. A relative file starts at the repository."""

from __future__ import annotations

from collections.abc import Sequence

from sparkloom.base.errors import InputError
from sparkloom.base.repository import place
from sparkloom.render import certificates, keys
from sparkloom.render.manifests import gateway, router
from sparkloom.render.router import Terms
from sparkloom.site import client, endpoint
from sparkloom.site.ansible import Context, Data
from sparkloom.site.checks import report


def prepare(
    context: Context,
    names: Sequence[str],  # names of the endpoint besides the machines' addresses
    folder: str,  # where the site's own authority is kept
    certificate: str,  # a certificate chain of one's own; empty for the site's
    certificate_key: str,  # its key
    service: str,  # the Service of the cluster's Traefik
    service_namespace: str,  # its namespace
    timeout: int,  # seconds that an answer may take
    paths: Sequence[str],  # what clients may ask for; * at the end is a model's name
) -> Data:
    """Makes the certificate and plans the route."""
    cluster = context.cluster
    reached = client.of(cluster)
    addresses = _addresses(reached, service, service_namespace)
    terms = Terms(timeout=timeout, paths=tuple(paths))
    if certificate:
        pair = certificates.given(place(certificate), place(certificate_key), list(names))
    else:
        pair = certificates.own(place(folder), cluster.name, [*names, *addresses], dry=context.dry)
    secret = {"tls.crt": pair.certificate, "tls.key": pair.key}
    there = reached.secret(gateway.TLS_SECRET) is not None
    stored = reached.put_secret(gateway.TLS_SECRET, secret, kind="kubernetes.io/tls", dry=context.dry)
    differs, wanted = pair.made or stored, f"the endpoint's certificate, until {pair.until:%Y-%m-%d}"
    return {
        "changed": differs,
        "drift": report.secret(gateway.TLS_SECRET, there=there, differs=differs, expected=wanted),
        "kubeconfig": client.kubeconfig(cluster),
        "objects": gateway.gateway(cluster.namespace, terms, page=reached.has_service(router.PAGE)),
        "address": addresses[0],
        "name": (names or addresses)[0],
        "trust": pair.trust,
        "until": f"{pair.until:%Y-%m-%d}",
    }


def _addresses(reached: client.Client, service: str, namespace: str) -> list[str]:
    if addresses := reached.load_balanced(service, namespace):
        return addresses
    without = "no such Service" if addresses is None else "a Service without an address"
    message = f"{without}; expected K3s' Traefik with K3s' load balancer (gateway_service, or gateway_enabled: false)"
    raise InputError.single(f"{namespace}/{service}", message, rule="no-traefik")


def prove(
    context: Context,
    address: str,  # where the endpoint is
    name: str,  # whom its certificate must name
    port: int,  # its port for TLS
    trust: str,  # the authority to trust; empty for this machine's own
    key_file: str,  # file with the API key
    max_tokens: int,  # limit of the answer
    silence: float,  # seconds that it may say nothing
    models: Sequence[str] = (),  # the groups to ask, each by its name
    asleep: Sequence[str] = (),  # those that nobody is to wake by asking
) -> Data:
    """Asks it, and shows what it answers."""
    file = place(key_file)
    served = endpoint.Endpoint(address, port, name, trust, silence)
    key = keys.read(file)
    answers = [
        endpoint.prove(served, key, max_tokens, lambda text: context.say(text, newline=False), model)
        for model in models or ([] if asleep else [""])
    ]
    if not answers:
        endpoint.prove_doors(served)
    endpoint.prove_router(served, key)
    context.say("\n")
    line = endpoint.curl(served.url.removesuffix("/v1"), trust, file, next(iter([*models, *asleep]), ""))
    told = f"{served.url} streams{' from ' + ', '.join(models) if models else ''}"
    told = told if answers else f"{served.url} is open, and all sleep that it leads to"
    told += f"; asleep, wakes with the next request: {', '.join(asleep)}" if asleep else ""
    return {"answer": next(iter(answers), None), "answers": answers, "url": served.url, "curl": line, "msg": told}
