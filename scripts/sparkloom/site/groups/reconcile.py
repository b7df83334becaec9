"""From what runs to what was planned: ends groups, starts others, proves each, and goes back where one did not start.

Ansible calls it step by step, as two things between them are done on the nodes: reading their memory, and sealing what
engines compiled. A step gets the run as the one before it left it. The cluster keeps it too, for a run that is cut off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sparkloom.base import amount, json_text
from sparkloom.base.finding import Finding, errors
from sparkloom.inputs.cluster import Cluster
from sparkloom.judge.fleet.steps import STAYS
from sparkloom.onnode import stopping
from sparkloom.onnode.now.labels import ONLY_SERVED
from sparkloom.render.manifests import names, pod
from sparkloom.site import client, patience
from sparkloom.site.checks import kubernetes, memories
from sparkloom.site.groups import leftovers, observed, planning, proof, records, secrets, sets
from sparkloom.site.groups.group import RenderedGroup
from sparkloom.site.objects import Api

Data = dict[str, Any]
Say = Callable[[str], None]
JOURNAL, KEY = "rollout", "rollout.json"  # the ConfigMap of a run that is under way


@dataclass(slots=True)
class Run:
    """`groups` and `waves` as the plan has them; the rest is what became of them so far, by a group's name."""

    options: proof.Options
    listed: bool
    groups: list[Data]
    waves: list[Data]
    holds: bool  # a group that is on demand starts or is put to sleep: the waker may not act meanwhile
    replaces: bool  # something ends for it
    held: bool = False  # the waker stands aside
    last: dict[str, str] = field(default_factory=dict)  # which profile was proved before
    renewed: list[str] = field(default_factory=list)  # the engine's key is another one, which it reads once
    lost: dict[str, str] = field(default_factory=dict)  # why it did not start
    proved: dict[str, Data] = field(default_factory=dict)  # how many ranks, and over what they talk
    asleep: list[str] = field(default_factory=list)
    memory_before: dict[str, float] = field(default_factory=dict)  # GiB of each node, before any load
    memory: dict[str, float] = field(default_factory=dict)  # ... and now
    needs: dict[str, float] = field(default_factory=dict)  # what each node must have before the next start
    failed: dict[str, dict[str, str]] = field(default_factory=dict)  # those lost for whom a way back was looked for

    @classmethod
    def of(cls, planned: planning.Rollout, options: proof.Options, *, listed: bool) -> Run:
        made = planned.as_dict()
        replaces = any(wave["stop"] for wave in made["waves"])
        return cls(options, listed, made["groups"], made["waves"], made["holds"], replaces)

    @property
    def ends(self) -> list[str]:
        """What is to be said of each group that did not start."""
        return [f"{one['why']}\n{self._ended(name, one)}" for name, one in self.failed.items()]

    def _ended(self, name: str, told: Mapping[str, str]) -> str:
        good, again = told["good"], told["again"]
        if not good:
            alone = "nothing was served before; nothing is served now"
            return f"{name} had nothing to go back to; the other groups are as they were" if self.listed else alone
        if not self.options["rollback"]:
            return f"nothing is served; -e serve_rollback=true brings {good} back by itself"
        return f"{good} did not start either: {again}" if again else f"{good} is served again"


@dataclass(frozen=True, slots=True)
class Step:
    """One wave, with what became known since it was planned. All but `start` are labels and nodes."""

    start: Sequence[Data]
    stop: Sequence[str]
    sleep: Sequence[str]
    idle: Sequence[str]
    sleepers: frozenset[str]  # they stay, and sleep; or are stopped
    left_to_waker: frozenset[str]  # to apply their ranks would wake them
    back: str = ""  # for which group that did not start

    @classmethod
    def of(cls, run: Run, planned: Mapping[str, Any]) -> Step:
        stay = [one for one in planned["start"] if one["state"] == STAYS]
        asleep = {*run.asleep, *planned["sleep"]}
        sleepers = {one["label"] for one in stay if one["label"] in asleep}
        sleepers |= {one["label"] for one in planned["start"] if one["stopped"]}
        renewed = [one for one in stay if one["name"] in run.renewed and one["label"] not in sleepers]
        anew = [one["label"] for one in renewed]
        return cls(
            planned["start"],
            [*planned["stop"], *anew],
            planned["sleep"],
            [*planned["idle"], *(node for one in renewed if one["alone"] for node in one["nodes"])],
            frozenset(sleepers),
            frozenset(one["label"] for one in stay if one["on_demand"] and not one["stopped"]) - set(anew),
            planned.get("back", ""),
        )


def journal(reached: client.Client) -> Data:
    """The run that is under way, or was cut off, as its last step left it; empty where there is none."""
    return json_text.mapping((reached.config_map(JOURNAL) or {}).get(KEY))


class Stopped(Exception):
    """Nothing may go on; findings say why."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = list(findings)
        super().__init__(amount.of(len(findings), "finding"))


class Reconciler:
    def __init__(self, cluster: Cluster, run: Run, say: Say, streams: Say, *, dry: bool = False) -> None:
        self.cluster, self.run, self.say, self.streams, self.dry = cluster, run, say, streams, dry
        self.options = run.options
        self.reached = client.of(cluster, seconds=patience.RESTARTS, say=say)
        self.changed: list[Data] = []  # objects, with what differs
        self.broken: set[str] = set()  # groups of this step
        self.measured: dict[str, float] = {}  # seconds of its starts

    def prepare(self, members: Sequence[Data], *, force: bool = False) -> None:
        """Judges the cluster and makes what each group needs, before anything ends."""
        run = self.run
        run.memory_before |= records.memory(self.reached)
        before = journal(self.reached)  # of a run that was cut off
        run.renewed += [name for name in before.get("renewed", ()) if name not in run.renewed]
        run.held = run.held or bool(before.get("held"))
        facts = {} if self.dry else self.reached.facts()
        for member in members:
            group = self._group(member, force=force)
            found = [] if self.dry else kubernetes.judge(self.cluster, group.launch, facts)
            if errors(found):
                raise Stopped(found)
            self._secrets(member, group)
            run.last[member["name"]] = str(records.read(self.reached, member["served"]).get("profile") or "")
            kernels = pod.kernels(group.launch, group.rendered.case.cluster)
            member["kernels"] = kernels | {"mark": group.rendered.digest} if kernels else {}
        self._keep()

    def end(self, planned: Mapping[str, Any]) -> None:
        """What must end does, and who takes turns with those that start is put to sleep."""
        self._hold()
        step = Step.of(self.run, planned)
        there = self.reached.engine_sets()
        if not self.dry:
            sets.end(self.reached, there, step.stop, step.sleep, self.say)
        self.changed += sets.named(there, [*step.stop, *step.sleep])
        before, slack = self.run.memory_before, self.options["memory_slack"]
        self.run.needs = {node: before[node] - slack if node in before else 0.0 for node in step.idle}
        self._keep()

    def start(self, planned: Mapping[str, Any], memory: Mapping[str, Mapping[str, Any]]) -> None:
        """Side by side; then one after the other is proved. What goes wrong with one is its own."""
        step = Step.of(self.run, planned)
        self._memory(memory)
        # they were judged when they were prepared
        groups = {member["name"]: self._group(member, force=True) for member in step.start}
        for member in step.start:
            self._guarded(groups[member["name"]], member, self._apply, step)
        if self.dry:
            return
        for member in step.start:
            if member["name"] not in self.broken and member["label"] not in step.sleepers:
                self._guarded(groups[member["name"]], member, self._prove, step)
        self.run.renewed = [name for name in self.run.renewed if name not in groups]
        self._keep()

    def back(self, plan: Callable[[str, str], planning.Rollout]) -> None:
        """The waves in which what was good before starts again, of each group that did not start.

        `plan`: of a group's name and that profile.
        """
        run = self.run
        run.waves = []
        for name, why in run.lost.items():
            good = self._good(name)
            run.failed[name] = {"why": why, "good": good, "again": ""}
            if good and self.options["rollback"]:
                made = plan(name, good).as_dict()
                self.prepare(made["groups"], force=True)  # it served before
                run.groups += made["groups"]
                run.waves += [{**wave, "back": name} for wave in made["waves"]]
                run.holds = run.holds or made["holds"]
        self._keep()

    def _good(self, name: str) -> str:
        """The profile that served before, where something of it was ended for one that did not start."""
        member = next(one for one in self.run.groups if one["name"] == name)
        last = self.run.last.get(name, "")
        return last if self.run.replaces and last != self._group(member, force=True).profile else ""

    def finish(self) -> None:
        """The waker works again, and build/<site>/fleet.json says what the cluster says."""
        if self.dry:
            return
        if self.run.held:
            sets.scale_waker(self.reached, 1, self.say)
        if self.run.listed:  # a proof takes these away, too; where all sleep none was asked for
            self.changed += [{"name": gone} for gone in leftovers.take(self.reached, self._labels())]
        if all(one["served"] != ONLY_SERVED for one in self.run.groups):  # no group has that record any more
            self.reached.remove_config_map(ONLY_SERVED)
        self.run.asleep = planning.keep(self.cluster)
        if self.run.renewed:  # a run that was stopped did not come to them
            self._keep()
        else:
            self.reached.remove_config_map(JOURNAL)

    # What the steps are made of.

    def _group(self, member: Mapping[str, Any], *, force: bool = False) -> RenderedGroup:
        return RenderedGroup.of(member, self.cluster, self.options["transport"], force=force or self.options["force"])

    def _labels(self) -> list[str]:
        return [one["label"] for one in self.run.groups] if self.run.listed else []

    def _secrets(self, member: Mapping[str, Any], group: RenderedGroup) -> None:
        engine, *others = secrets.of_group(self.reached, group, dry=self.dry)
        if engine.made and member["name"] not in self.run.renewed:
            self.run.renewed.append(member["name"])
        self.changed += [{"name": f"Secret {one.name}"} for one in (engine, *others) if one.made]

    def _hold(self) -> None:
        """Once, before the first wave: nobody else starts groups or puts them to sleep while this does."""
        run = self.run
        again = {one["name"] for one in run.groups if one["on_demand"]} & set(run.renewed)
        if (run.holds or again) and not run.held and not self.dry:
            run.held = True
            self._keep()
            sets.scale_waker(self.reached, 0, self.say)
        if any(one["on_demand"] for one in run.groups):
            run.asleep = self._sleeping()

    def _sleeping(self) -> list[str]:
        runs = observed.running(self.cluster).values()
        return [names.marked(one.name) for one in runs if not one.awake]

    def _memory(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """Every node's memory beside what it had before the model that was stopped."""
        read = {host: answer["memory"] for host, answer in told.items() if "memory" in answer}
        before = {node: self.run.memory_before.get(node, 0.0) for node in self.run.needs}
        if found := list(memories.returned(read, before, self.options["memory_slack"])):
            raise Stopped(found)
        self.run.memory |= {host: round(memory["available_gib"], 1) for host, memory in read.items()}

    def _apply(self, group: RenderedGroup, member: Mapping[str, Any], step: Step) -> None:
        kinds = {"StatefulSet"} if member["label"] in step.left_to_waker else set()
        objects = sets.kept_stopped(group.rendered.objects, member["stopped"])
        objects = [one for one in objects if one["kind"] not in kinds]
        api = Api(self.reached)
        self.changed += api.differing(objects) if self.dry else api.apply(objects)
        if not self.dry:
            stopping.settle(self.reached, self.reached.namespace, member["label"], member["stopped"])

    def _prove(self, group: RenderedGroup, member: Mapping[str, Any], step: Step) -> None:
        """The proof of another took its time, and one that is on demand may have fallen asleep meanwhile."""
        if member["label"] in step.left_to_waker and member["label"] in self._sleeping():
            return
        proved = proof.Proof(self.reached, group, self.options, self.say, self.streams)
        told = proved.prove(member["served"], self.run.memory, self._labels())
        self.measured[f"start {group.profile}"] = told.pop("seconds")
        self.run.proved[member["name"]] = told

    def _guarded(
        self, group: RenderedGroup, member: Data, work: Callable[[RenderedGroup, Data, Step], None], step: Step
    ) -> None:
        try:
            work(group, member, step)
        except proof.FAILURES as error:
            if self.dry:  # it keeps no logs and writes no record
                raise
            self.broken.add(member["name"])
            why = proof.failed(self.reached, group, member["served"], proof.one_line(error))
            self.say(why)
            if step.back:
                self.run.failed[step.back]["again"] = why
            else:
                self.run.lost[member["name"]] = why

    def _keep(self) -> None:
        if not self.dry:
            self.reached.put_config_map(JOURNAL, {KEY: json.dumps(asdict(self.run))})
