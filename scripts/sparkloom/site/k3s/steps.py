"""The steps of the role that run on the controller, as plain functions over Ansible's variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sparkloom import case
from sparkloom.base.finding import Finding, errors
from sparkloom.inputs.cluster import Cluster
from sparkloom.inputs.inventory import GROUP, SERVERS
from sparkloom.render.k3s import machines, options, paths
from sparkloom.render.k3s.options import Options
from sparkloom.site import ansible
from sparkloom.site.k3s import access, judge

PLACES = {
    "binary": paths.BINARY,
    "config": paths.CONFIG,
    "record": paths.RECORD,
    "stamp": paths.STAMP,
    "containerd": paths.CONTAINERD,
    "kubelet": paths.KUBELET,
    "services": list(paths.SERVICES.values()),
}


@dataclass(frozen=True, slots=True)
class Step:
    inventory: Callable[[Mapping[str, Any]], dict[str, Any]]
    variables: Mapping[str, Any]
    args: Mapping[str, Any]
    dry: bool = False

    def _cluster(self) -> Cluster:
        return case.cluster(self.inventory(self.variables))

    def _options(self) -> Options:
        return options.options(self.args["options"])

    def _secrets(self) -> dict[str, Any]:
        """Named, not handed over: a task's arguments may be shown, a registered variable is not."""
        return dict(ansible.plain(self.variables[self.args["secrets"]]))

    def plan(self) -> dict[str, Any]:
        """What every machine should have; refuses an inventory that cannot become a cluster."""
        return machines.plan(self._cluster(), self._options()) | {
            "places": PLACES,
            "secrets": SECRETS,
            "staging": paths.STAGING,
        }

    def decide(self) -> dict[str, Any]:
        """What to do on every machine that was looked at; refuses them all together."""
        chosen, planned = self._options(), self.args["plan"]["hosts"]
        states = ansible.registered(self.variables, self.args["state"], GROUP, SERVERS)
        states = {host: state for host, state in states.items() if "machine" in state}
        rows = [row for host, state in states.items() for row in judge.refusals(host, planned[host], state, chosen)]
        first = self.args["plan"]["first"]
        if first not in states and not self._secrets().get("tokens", {}).get("agent_passphrase"):
            message, fix = "no token of a cluster: it never ran there", f"run without --limit, or with {first}"
            rows.append(Finding(first, "K3s", message, "a cluster to join", fix))
        if errors(rows):
            return ansible.verdict(rows, "")
        missing = {host: judge.missing(state, chosen) for host, state in states.items()}
        folder = chosen.artifacts
        if folder:
            rows += judge.held(folder, [item for items in missing.values() for item in items])
        rows += [row for host, state in states.items() for row in judge.warnings(host, state)]
        hosts = {
            host: {
                "missing": missing[host],
                "reasons": judge.reasons(planned[host], state, chosen, self._hashes(planned[host])),
                "running": state["units"][planned[host]["service"]]["active"],
            }
            for host, state in states.items()
        }
        return ansible.verdict(rows, "") | {
            "hosts": hosts,
            "sequence": judge.sequence(planned, hosts),
            "together": judge.together(planned, hosts),
            "first_starts": bool(hosts.get(first, {}).get("reasons")),
        }

    def _hashes(self, host: Mapping[str, Any]) -> dict[str, str]:
        tokens = self._secrets().get("tokens", {})
        joining = machines.secrets(host, tokens) if tokens.get("agent_passphrase") else {}
        return {path: machines.digest(text) for path, text in joining.items() if path == paths.TOKEN}

    def secrets(self) -> dict[str, Any]:
        """The token files of every machine that joins. Run it with no_log."""
        tokens, hosts = self._secrets().get("tokens", {}), self.args["plan"]["hosts"]
        known = bool(tokens.get("agent_passphrase"))  # not in a dry run on bare machines
        return {"hosts": {name: machines.secrets(host, tokens) if known else {} for name, host in hosts.items()}}

    def kubeconfig(self) -> dict[str, Any]:
        """The administrator's access, on the controller. Run it with no_log."""
        cluster = self._cluster()
        given = self._secrets().get("kubeconfig", "")
        if not given and self.dry:
            return {}
        target = ansible.kubeconfig(cluster)
        changed = access.keep(target, given, self.args["plan"]["api"], f"sparkloom-{cluster.name}", dry=self.dry)
        return {"changed": changed, "path": target}

    def leftovers(self) -> dict[str, Any]:
        """What the role made and K3s left, for taking it away. Only a cluster of ours is taken away."""
        cluster = self._cluster()
        target = ansible.kubeconfig(cluster)
        mine = cluster.kubernetes.provider == "k3s"
        return {
            "machines": [member.name for member in reversed(machines.members(cluster))] if mine else [],
            "services": list(paths.SERVICES.values()),
            "data": paths.DATA,
            "mounts": list(paths.LEFT),
            "empty": list(paths.EMPTY),
            "links": list(paths.LINKS),
            "remove": [*paths.OURS, *paths.LEFT],
            "kubeconfig": target if mine and access.is_kept(target, f"sparkloom-{cluster.name}") else "",
        }


SECRETS = {
    "token": paths.TOKEN,
    "agent_token": paths.AGENT_TOKEN,
    "joining": paths.JOIN_TOKENS,
    "kubeconfig": paths.KUBECONFIG,
}
