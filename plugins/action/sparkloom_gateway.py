"""The endpoint: its certificate and objects (`prepare`), and the proof that it answers (`prove`)."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.base.repository import place
from sparkloom.launch import engines
from sparkloom.render import certificates, keys
from sparkloom.render.manifests import gateway
from sparkloom.site import ansible, client
from sparkloom.site.gateway import endpoint


def certificate(args: dict[str, Any], site: str, names: list[str], dry: bool) -> certificates.Pair:
    if args["certificate"]:
        pair = (place(args["certificate"]), place(args["certificate_key"]))
        return certificates.given(*pair, args["names"])
    return certificates.own(place(args["folder"]), site, names, dry=dry)


class ActionModule(ansible.Action, ActionBase):
    def work(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        return self._prepare(args, task_vars) if args["what"] == "prepare" else self._prove(args)

    def _prepare(self, args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        dry = bool(self._task.check_mode)
        cluster = case.cluster(ansible.inventory(task_vars))
        launch = case.judge(args["profile"], cluster).launch
        engine = engines.get(launch.engine)
        if not engine.key_words and not engine.key_variable:
            message = (
                f"{launch.engine} checks no API key: no way in from outside; gateway_enabled: false serves it inside"
            )
            raise InputError.single(args["profile"], message, rule="engine-without-key")
        reached = client.of(cluster)
        addresses = reached.load_balanced(args["service"], args["service_namespace"])
        if not addresses:
            found = "no such Service" if addresses is None else "a Service without an address"
            where = f"{args['service_namespace']}/{args['service']}"
            message = (
                f"{found}; expected K3s' Traefik with K3s' load balancer (gateway_service, or gateway_enabled: false)"
            )
            raise InputError.single(where, message, rule="no-traefik")
        names = [*args["names"], *addresses]
        pair = certificate(args, cluster.name, names, dry)
        secret = {"tls.crt": pair.certificate, "tls.key": pair.key}
        stored = reached.put_secret(gateway.TLS_SECRET, secret, kind="kubernetes.io/tls", dry=dry)
        return {
            "changed": pair.made or stored,
            "kubeconfig": client.kubeconfig(cluster),
            "objects": gateway.gateway(launch, cluster.namespace, int(args["timeout"])),
            "address": addresses[0],
            "name": (args["names"] or addresses)[0],
            "trust": pair.trust,
            "until": f"{pair.until:%Y-%m-%d}",
        }

    def _prove(self, args: dict[str, Any]) -> dict[str, Any]:
        show = Display()
        key = keys.read(place(args["key_file"]))
        served = endpoint.Endpoint(
            args["address"], int(args["port"]), args["name"], args["trust"], float(args["silence"])
        )
        answer = endpoint.prove(served, key, int(args["max_tokens"]), lambda text: show.display(text, newline=False))
        show.display("\n")
        trust = f"--cacert {args['trust']} " if args["trust"] else ""
        body = '{"messages": [{"role": "user", "content": "Hello"}], "stream": true, "max_tokens": 64}'
        bearer = f"Authorization: Bearer $(cat {place(args['key_file'])})"
        line = (
            f'curl -N {trust}{served.url}/chat/completions -H "{bearer}" '
            f"-H 'Content-Type: application/json' -d '{body}'"
        )
        return {"answer": answer, "url": served.url, "curl": line, "msg": f"{served.url} streams"}
