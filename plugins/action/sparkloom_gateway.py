from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom.base.errors import InputError
from sparkloom.base.repository import place
from sparkloom.render import certificates, keys
from sparkloom.render.manifests import gateway, router
from sparkloom.render.router import Terms
from sparkloom.site import ansible, client, endpoint
from sparkloom.site.checks import report

DOCUMENTATION = r"""
module: sparkloom_gateway
short_description: Make the endpoint's certificate and plan its route, or prove that it answers
description: [A relative file of this machine starts at the repository.]
options:
  what: {type: str, required: true, choices: [prepare, prove], description: [What to do.]}
  names:
    type: list
    elements: str
    description: ["Names of the endpoint besides the machines' addresses; with prepare, as all up to paths."]
  folder: {type: path, description: [Where the site's own authority is kept.]}
  certificate: {type: path, description: [A certificate chain of one's own; empty for the site's.]}
  certificate_key: {type: path, description: [Its key.]}
  service: {type: str, description: [The Service of the cluster's Traefik.]}
  service_namespace: {type: str, description: [Its namespace.]}
  timeout: {type: int, description: [Seconds that an answer may take.]}
  paths: {type: list, elements: str, description: ["What clients may ask for; * at the end is a model's name."]}
  models: {type: list, elements: str, default: [], description: ["With prove: the groups to ask, each by its name."]}
  asleep: {type: list, elements: str, default: [], description: ["With prove: those that nobody is to wake by asking."]}
  address: {type: str, description: ["Where the endpoint is; with prove, as all below."]}
  name: {type: str, description: [Whom its certificate must name.]}
  port: {type: int, description: [Its port for TLS.]}
  trust: {type: path, description: [The authority to trust; empty for this machine's own.]}
  key_file: {type: path, description: [File with the API key.]}
  max_tokens: {type: int, description: [Limit of the answer.]}
  silence: {type: float, description: [Seconds that it may say nothing.]}
"""
PREPARE = ("names", "folder", "certificate", "certificate_key", "service", "service_namespace", "timeout", "paths")
PROVE = ("address", "name", "port", "trust", "key_file", "max_tokens", "silence")


def certificate(args: ansible.Data, site: str, names: list[str], dry: bool) -> certificates.Pair:
    if args["certificate"]:
        pair = (place(args["certificate"]), place(args["certificate_key"]))
        return certificates.given(*pair, args["names"])
    return certificates.own(place(args["folder"]), site, names, dry=dry)


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (("what", "prepare", PREPARE), ("what", "prove", PROVE))

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        return self._prepare(args, task_vars) if args["what"] == "prepare" else self._prove(args)

    def _prepare(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        dry = bool(self._task.check_mode)
        cluster = ansible.cluster(task_vars)
        reached = client.of(cluster)
        addresses = reached.load_balanced(args["service"], args["service_namespace"])
        if not addresses:
            without = "no such Service" if addresses is None else "a Service without an address"
            where = f"{args['service_namespace']}/{args['service']}"
            message = (
                f"{without}; expected K3s' Traefik with K3s' load balancer (gateway_service, or gateway_enabled: false)"
            )
            raise InputError.single(where, message, rule="no-traefik")
        terms = Terms(timeout=args["timeout"], paths=tuple(args["paths"]))
        pair = certificate(args, cluster.name, [*args["names"], *addresses], dry)
        secret = {"tls.crt": pair.certificate, "tls.key": pair.key}
        there = reached.secret(gateway.TLS_SECRET) is not None
        stored = reached.put_secret(gateway.TLS_SECRET, secret, kind="kubernetes.io/tls", dry=dry)
        differs, wanted = pair.made or stored, f"the endpoint's certificate, until {pair.until:%Y-%m-%d}"
        return {
            "changed": differs,
            "drift": report.secret(gateway.TLS_SECRET, there=there, differs=differs, expected=wanted),
            "kubeconfig": client.kubeconfig(cluster),
            "objects": gateway.gateway(cluster.namespace, terms, page=reached.has_service(router.PAGE)),
            "address": addresses[0],
            "name": (args["names"] or addresses)[0],
            "trust": pair.trust,
            "until": f"{pair.until:%Y-%m-%d}",
        }

    def _prove(self, args: ansible.Data) -> ansible.Data:
        show = Display()
        key_file = place(args["key_file"])
        served = endpoint.Endpoint(args["address"], args["port"], args["name"], args["trust"], args["silence"])
        key = keys.read(key_file)
        answers = [
            endpoint.prove(served, key, args["max_tokens"], lambda text: show.display(text, newline=False), model)
            for model in args["models"] or ([] if args["asleep"] else [""])
        ]
        if not answers:
            endpoint.prove_doors(served)
        endpoint.prove_router(served, key)
        show.display("\n")
        named = (args["models"] or args["asleep"] or [""])[0]
        line = endpoint.curl(served.url.removesuffix("/v1"), args["trust"], key_file, named)
        told = f"{served.url} streams{' from ' + ', '.join(args['models']) if args['models'] else ''}"
        told = told if answers else f"{served.url} is open, and all sleep that it leads to"
        told += f"; asleep, wakes with the next request: {', '.join(args['asleep'])}" if args["asleep"] else ""
        first = answers[0] if answers else None
        return {"answer": first, "answers": answers, "url": served.url, "curl": line, "msg": told}
