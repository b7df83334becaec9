from __future__ import annotations

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.base.repository import place
from sparkloom.launch.resolve import Launch
from sparkloom.render import certificates, keys
from sparkloom.render.manifests import gateway, names, router
from sparkloom.render.router import Terms
from sparkloom.site import ansible, client, endpoint
from sparkloom.site.checks import report

DOCUMENTATION = r"""
module: sparkloom_gateway
short_description: Make the endpoint's certificate and plan its route, or prove that it answers
description: [A relative file of this machine starts at the repository.]
options:
  what: {type: str, required: true, choices: [prepare, prove], description: [What to do.]}
  profile: {type: str, description: ["What is served; with prepare, as all up to requests_at_once."]}
  names: {type: list, elements: str, description: [Names of the endpoint besides the machines' addresses.]}
  folder: {type: path, description: [Where the site's own authority is kept.]}
  certificate: {type: path, description: [A certificate chain of one's own; empty for the site's.]}
  certificate_key: {type: path, description: [Its key.]}
  service: {type: str, description: [The Service of the cluster's Traefik.]}
  service_namespace: {type: str, description: [Its namespace.]}
  timeout: {type: int, description: [Seconds that an answer may take.]}
  paths: {type: list, elements: str, description: ["What clients may ask for; * at the end is a model's name."]}
  body_megabytes: {type: int, choices: [1, 10, 100, 1000], description: [How long a request may be.]}
  requests_per_second: {type: int, description: ["How many begin, for each key."]}
  requests_at_once: {type: int, description: ["How many are on their way, for each key."]}
  routed: {type: bool, default: false, description: ["Whether a router is between Traefik and the engines."]}
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
TERMS = ("paths", "body_megabytes", "requests_per_second", "requests_at_once")
PREPARE = ("names", "folder", "certificate", "certificate_key", "service", "service_namespace", "timeout")
PROVE = ("address", "name", "port", "trust", "key_file", "max_tokens", "silence")


def certificate(args: ansible.Data, site: str, names: list[str], dry: bool) -> certificates.Pair:
    if args["certificate"]:
        pair = (place(args["certificate"]), place(args["certificate_key"]))
        return certificates.given(*pair, args["names"])
    return certificates.own(place(args["folder"]), site, names, dry=dry)


def _objects(reached: client.Client, space: str, launch: Launch | None, terms: gateway.Terms) -> list[ansible.Data]:
    if launch:
        return gateway.gateway(launch, space, terms)
    page = reached.has_service(router.PAGE)
    return gateway.routed(space, router.NAME, Terms().port, terms, page=page)


class ActionModule(ansible.Action, ActionBase, documentation=DOCUMENTATION):
    required_if = (("what", "prepare", (*PREPARE, *TERMS)), ("what", "prove", PROVE))

    def work(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        return self._prepare(args, task_vars) if args["what"] == "prepare" else self._prove(args)

    def _prepare(self, args: ansible.Data, task_vars: ansible.Data) -> ansible.Data:
        dry = bool(self._task.check_mode)
        cluster = ansible.cluster(task_vars)
        launch = None if args["routed"] else case.judge(args.get("profile") or "", cluster).launch
        reached = client.of(cluster)
        addresses = reached.load_balanced(args["service"], args["service_namespace"])
        if not addresses:
            without = "no such Service" if addresses is None else "a Service without an address"
            where = f"{args['service_namespace']}/{args['service']}"
            message = (
                f"{without}; expected K3s' Traefik with K3s' load balancer (gateway_service, or gateway_enabled: false)"
            )
            raise InputError.single(where, message, rule="no-traefik")
        terms = gateway.Terms(args["timeout"], tuple(args["paths"]), *(args[name] for name in TERMS[1:]))
        pair = certificate(args, cluster.name, [*args["names"], *addresses], dry)
        secret = {"tls.crt": pair.certificate, "tls.key": pair.key}
        there = reached.secret(gateway.TLS_SECRET) is not None
        stored = reached.put_secret(gateway.TLS_SECRET, secret, kind="kubernetes.io/tls", dry=dry)
        differs, wanted = pair.made or stored, f"the endpoint's certificate, until {pair.until:%Y-%m-%d}"
        return {
            "changed": differs,
            "drift": report.secret(gateway.TLS_SECRET, there=there, differs=differs, expected=wanted),
            "kubeconfig": client.kubeconfig(cluster),
            "objects": _objects(reached, cluster.namespace, launch, terms),
            "head": f"{names.rank(launch, 0)}-0" if launch else "",
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
        if args["routed"]:
            endpoint.prove_router(served, key)
        show.display("\n")
        named = (args["models"] or args["asleep"] or [""])[0]
        line = endpoint.curl(served.url.removesuffix("/v1"), args["trust"], key_file, named)
        told = f"{served.url} streams{' from ' + ', '.join(args['models']) if args['models'] else ''}"
        told = told if answers else f"{served.url} is open, and all sleep that it leads to"
        told += f"; asleep, wakes with the next request: {', '.join(args['asleep'])}" if args["asleep"] else ""
        first = answers[0] if answers else None
        return {"answer": first, "answers": answers, "url": served.url, "curl": line, "msg": told}
