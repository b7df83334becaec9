"""Which commit a site serves where its profile names none: locked at the first deploy, and refused when it drifts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.inputs import lock_file
from sparkloom.inputs.lock_file import Model
from sparkloom.inputs.profile import LoadedProfile
from sparkloom.launch import pins

ANEW = ("held", "new")  # the lock does not decide this run: what the nodes hold, or what the hub has, is locked anew


@dataclass(frozen=True, slots=True)
class Lock:
    """The site's lock as one run sees it, of those models that the profile leaves open."""

    file: Path
    open: tuple[str, ...]
    entries: Mapping[str, Model]
    accept: str = ""

    @classmethod
    def of(cls, loaded: LoadedProfile, file: Path, accept: str) -> Lock:
        known, left_open = lock_file.read(file, Model), tuple(pins.open_ends(loaded.profile.model))
        return cls(file, left_open, {name: known[name] for name in left_open if name in known}, accept)

    def pinned(self, loaded: LoadedProfile) -> LoadedProfile:
        if self.accept in ANEW:
            return loaded
        return pins.pinned(loaded, {name: entry.commit for name, entry in self.entries.items()})

    def drift(self, held: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
        """A node serves another commit by name than the locked one: nobody but a person says which is right."""
        if self.accept:
            return ""
        told = [
            f"{node} holds {answer['id']} at {answer['current']}, and {self.file} locks it as {entry.commit} "
            f"({entry.when}, found on {entry.node})"
            for node, answers in held.items()
            for answer in answers
            if (entry := self.entries.get(answer["id"])) and answer.get("current") not in (None, entry.commit)
        ]
        back = "-e model_store_accept=locked brings the locked one back"
        anew = "-e model_store_accept=held locks what the nodes hold; or delete its entry there"
        return "\n".join([*told, f"say which one holds: {back}, {anew}"]) if told else ""

    def found(self, commits: Mapping[str, Mapping[str, str]], when: str) -> tuple[list[Model], str]:
        """By node what it holds now: the entries to keep, or why there are none."""
        entries = []
        for model in self.open:
            seen = {node: told[model] for node, told in commits.items() if told.get(model)}
            if len(set(seen.values())) > 1:
                said = ", ".join(f"{commit} on {node}" for node, commit in seen.items())
                return [], f"{model} is not the same on every node: {said}; run playbooks/models.yml for all of them"
            node, commit = next(iter(seen.items()), ("", ""))
            locked = self.entries.get(model)
            if locked and commit and commit != locked.commit and self.accept not in ANEW:
                return [], f"{model} was brought at {commit}, and {self.file} locks it as {locked.commit}"
            entries += [Model(model, commit, when, node)] if commit else []
        return entries, ""


def held(order: Sequence[str], checks: Mapping[str, Mapping[str, Any]], asked: Collection[str]) -> dict[str, Any]:
    """Node -> answer, in their order; refused where a node that was asked gave none, or none was asked at all."""
    mine = [node for node in order if node in asked]
    if not mine:
        message = f"names none of the nodes that serve this profile ({', '.join(order)})"
        raise InputError.single("--limit", message, rule="limit")
    silent = [node for node in mine if "answer" not in checks.get(node, {})]
    if silent:
        said = "; ".join(f"{node}: {checks.get(node, {}).get('msg') or 'nothing'}" for node in silent)
        message = f"did not say what it holds ({said}); mend it, or go on without it: --limit '!{silent[0]}'"
        raise InputError.single(", ".join(silent), message, rule="no-answer")
    return {node: checks[node]["answer"] for node in mine}
