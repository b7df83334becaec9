"""Plans what the doctor asks, and says what is not as planned."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs.serving import called
from sparkloom.render.k3s.options import options
from sparkloom.site import ansible, client, doctor, objects
from sparkloom.site.ansible import Context, Data
from sparkloom.site.checks import kubernetes
from sparkloom.site.doctor import asking, events, groups, parts
from sparkloom.site.doctor import roles as role_files
from sparkloom.site.groups import observed, records
from sparkloom.site.k3s import steps

# What is heard without a task of a role is told as one.
SERVES = role_files.own("doctor", "serving", "Read what was proved to serve")
MACHINE = role_files.own("preflight", "main", "Ask the machine")
LIST = role_files.own("doctor", "serving", "Plan where the list's groups stand")
STRANGERS = role_files.own("doctor", "serving", "Look for what is of no group")


def plan(
    context: Context,
    roles: Sequence[str],  # the roles that are asked
    profile: str,  # what is judged; empty for what was proved to serve
    planned: str,  # what the inventory says
    group: str = "",  # the one group that is judged; empty for all
) -> Data:
    """What `node.dry_run` wants to know."""
    return Doctor(context, roles).plan(profile, planned, group)


def judge(
    context: Context,
    roles: Sequence[str],
    plan: Mapping[str, Any],  # what `plan` gave
    said: str,  # variable that every machine registered from `node.dry_run`
) -> Data:
    """What that answered, and the cluster. A file named by SPARKLOOM_DOCTOR_JSON receives all that was said."""
    return Doctor(context, roles).judge(plan, said)


class Doctor:
    def __init__(self, context: Context, asked: Sequence[str]) -> None:
        self.context, self.roles = context, set(asked)
        self.seen: list[events.Event] = []

    def _hear(self, task: role_files.Task, result: Data, host: str = events.CLUSTER, group: str = "") -> None:
        self.seen += events.of_task(host, task, result, group)

    def plan(self, profile: str, planned: str, only: str) -> Data:
        """What belongs to the site once, and the weights of each group."""
        if (listed := ansible.listed(self.context.vars)) is None:
            serves, away = self._serves(profile, planned)
            self._hear(SERVES, serves)
            each, known = [groups.unlisted(serves["profile"])], asking.given(serves["profile"])
        else:
            each, away = self._listed(listed, profile, only)
            known = {**asking.given(""), "__preflight_fleet": {"groups": each}}
        asked = asking.Asking(self.context, known)
        for part, register in parts.PLANS:
            task = asked.task(part, register)
            foreign = part.role == "k3s" and not parts.k3s_is_ours(asked.known)
            asked.known[register] = {} if foreign else self._one(asked, task)
            if part.role in self.roles:
                self._hear(task, asked.known[register])
        weights = asked.task(parts.WEIGHTS, "__model_serving_weights")
        for group in each:
            group["weights"] = self._one(asked.with_variables(groups.variables(group)), weights)
            if "model_serving" in self.roles:
                self._hear(weights, group["weights"], group=group["name"])
        asked.known[groups.KNOWN] = each
        return {"known": asked.known, "seen": self.seen, "away": away}

    def _listed(self, listed: Data, profile: str, only: str) -> tuple[list[Data], bool]:
        """The groups of the list that are judged, and whether the cluster is away."""
        cluster = self.context.cluster
        try:
            runs, away = observed.running(cluster), False
        except InputError:
            runs, away = observed.recorded(cluster), True
        planned = case.fleet(listed, runs=runs)
        self._hear(LIST, groups.refused(planned))
        each = groups.planned(planned, only, profile)
        if not each and planned.grouped:
            known = ", ".join(one.group.name for one in planned.grouped)
            raise InputError.single("doctor_group", f"no such group; the list has {known}", rule="no-such-group")
        return each, away

    def _serves(self, profile: str, planned: str) -> tuple[Data, bool]:
        """By what was proved to serve all the rest is judged; and whether the cluster is away, which is told later."""
        chosen = profile or self.context.extra_vars.get("profile", "")
        record, away = {}, False
        try:
            record = records.read(client.of(self.context.cluster))
        except (InputError, ApiException, HTTPError):
            away = True
        return records.judged(record, str(chosen), planned), away

    def _one(self, asked: asking.Asking, task: role_files.Task) -> Data:
        try:
            return asked.run(task.module, asked.args(task))
        except AnsibleError as error:
            return {"failed": True, "msg": str(error)}

    def judge(self, plan: Mapping[str, Any], said: str) -> Data:
        self.seen += plan["seen"]
        told = self.context.vars
        hosts = [str(host) for host in told["ansible_play_hosts_all"]]
        asked = asking.Asking(self.context, plan["known"])
        for host in hosts:
            asked.machines[host] = self._heard(host, ansible.plain(told["hostvars"][host].get(said, {})))
        self._k3s(asked, hosts)
        self._walk(asked, parts.OF_THE_NODES)
        each = asked.known[groups.KNOWN]
        if api := self._api(again=not plan["away"]):
            gpus = asked.known["__node_base_site"].get("site", {}).get("expect_gb10")
            self._walk(asked, [part for part in parts.OF_THE_CLUSTER if gpus or part.role != "gpu_runtime"], api)
            if "model_serving" in self.roles:
                self._strangers(each)
        named = [group["name"] for group in each if group["name"]]
        if target := os.environ.get("SPARKLOOM_DOCTOR_JSON"):
            Path(target).write_text(json.dumps({"events": self.seen, "hosts": hosts, "groups": named}))
        judged = doctor.report(self.seen, hosts, named)
        return {"failed": not judged.good, "msg": judged.text(), "report": judged.as_dict()}

    def _heard(self, host: str, told: Data) -> Data:
        """What one machine registered, by name; and what its answers say of it."""
        if told.get("unreachable") or told.get("trouble") or "said" not in told:
            why = told.get("trouble") or told.get("msg") or "no answer"
            if "preflight" not in self.roles:  # which says it better
                self._hear(MACHINE, {**told, "failed": True, "msg": why}, host)
            return {"__preflight_probe": {"msg": why}}
        registered: Data = {groups.KNOWN: {}}
        for entry in told["said"]:
            if "marks" in entry:
                registered["__doctor_marks"] = entry["marks"]
                continue
            task = role_files.own(entry["role"], entry["area"], entry["task"], entry["register"])
            group = entry.get("group", "")
            if task.role in self.roles:
                self._hear(task, entry["answer"], host, group)
            kept = registered[groups.KNOWN].setdefault(group, {}) if group else registered
            kept[task.register] = entry["answer"]
        return registered

    def _k3s(self, asked: asking.Asking, hosts: Iterable[str]) -> None:
        plan = asked.known["__k3s_plan"]
        if "k3s" not in self.roles or "hosts" not in plan:
            return
        first = asked.task(parts.Part("k3s", "cluster"), "__k3s_plan")
        states = {host: seen["__k3s_state"] for host, seen in asked.machines.items() if "__k3s_state" in seen}
        marks = {host: seen.get("__doctor_marks", {}) for host, seen in asked.machines.items()}
        if plan["first"] not in states:
            return  # with --limit, or away: nobody tells what the others should have
        rows, drift = steps.dry(options(asked.args(first)["options"]), plan, states, marks)
        self._hear(first, ansible.verdict(rows, ""))
        for host, found in drift.items():
            self._hear(first, {"changed": bool(found), "drift": found}, host)

    def _api(self, *, again: bool) -> objects.Api | None:
        """The cluster, once it has answered: whoever waits for one that is away waits once."""
        cluster = self.context.cluster
        try:
            reached = client.of(cluster)
            if not again:
                reached.core.api_client.configuration.retries = False
            reached.answers()
            return objects.Api(reached)
        except InputError as error:
            told = {"failed": True, "msg": str(error)}
        except (ApiException, HTTPError) as error:
            told = ansible.verdict([kubernetes.silent(cluster, error)], "")
        for role in ("multus", "model_serving"):  # both areas could not be read
            self._hear(role_files.own(role, "main", "Ask the cluster"), told)
        return None

    def _strangers(self, each: Iterable[Data]) -> None:
        """What runs of no group of the list, and which groups did not start last time."""
        if (listed := ansible.listed(self.context.vars)) is None:
            return
        reached = client.of(self.context.cluster)
        try:
            every = [called(item) for item in listed.get("serve", ())]  # whichever are judged
            self._hear(STRANGERS, ansible.verdict(groups.strangers(reached, every), ""))
            for group in each:
                self._hear(SERVES, groups.failures(reached, group), group=str(group["name"]))
        except (ApiException, HTTPError) as error:
            self._hear(STRANGERS, {"failed": True, "msg": f"the API server: {getattr(error, 'reason', '') or error}"})

    def _walk(self, asked: asking.Asking, walked: Iterable[parts.Part], api: objects.Api | None = None) -> None:
        """Part after part, those of role model_serving for each group; one that fails keeps the next from nothing."""
        for part in walked:
            if part.role in self.roles:
                for group, known in self._of_groups(asked) if part.role == "model_serving" else [("", asked)]:
                    self._part(known, part, api, group)

    def _of_groups(self, asked: asking.Asking) -> Iterator[tuple[str, asking.Asking]]:
        """Each with what it registers for itself; one that is in no list has no name."""
        for group in asked.known[groups.KNOWN]:
            mine = asked.with_variables({**groups.variables(group), "__model_serving_weights": group["weights"]})
            mine.machines = groups.registered(asked.machines, str(group["name"]))
            yield group["name"], mine

    def _part(self, asked: asking.Asking, part: parts.Part, api: objects.Api | None, group: str = "") -> bool:
        for task in asked.tasks(part):
            ours = task.module in parts.ON_THE_CONTROLLER and task.register not in asked.known
            if not (ours or task.module in role_files.INCLUDES or (api and task.module == parts.APPLIED)):
                continue
            try:
                if not asked.holds(task):
                    continue
                if file := role_files.included(task):
                    if not self._part(asked, parts.Part(part.role, file), api, group):
                        return False
                    continue
                result = self._result(asked, task, api)
            except AnsibleError as error:
                if any(seen.get("failed") for seen in asked.known.values() if isinstance(seen, dict)):
                    return False  # it asks for what a task before it did not give, which was heard then
                result = {"failed": True, "msg": str(error)}
            except Exception as error:  # one judge that breaks is a line of the verdict, not its end
                result = {"failed": True, "msg": f"{type(error).__name__}: {error}"}
            self._hear(task, result, group=group)
            if task.register:
                asked.known[task.register] = result
            if result.get("failed"):
                return False
        return True

    def _result(self, asked: asking.Asking, task: role_files.Task, api: objects.Api | None) -> Data:
        if task.module != parts.APPLIED:
            return asked.run(task.module, asked.args(task))
        assert api
        try:
            wanted, each = asked.args(task)["definition"], asked.known.get(groups.KNOWN, ())
            differing = api.differing(wanted, {str(group["label"]) for group in each if group.get("on_demand")})
        except (ApiException, HTTPError) as error:
            return {"failed": True, "msg": f"the API server: {getattr(error, 'reason', '') or error}"}
        names = {(one["kind"], one["name"]) for one in differing}
        results = [{"changed": (one["kind"], one["metadata"]["name"]) in names} for one in wanted]
        return {"changed": bool(differing), "differing": differing, "result": {"results": results}}
