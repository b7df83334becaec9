"""Reads a profile: `model_profiles/<name>.yml` (or a path), merged with the one parent that `extends:` names.

Whatever is not exactly understood is refused, with file, line and column.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.document import Document, Loc
from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.base.repository import REPO
from sparkloom.inputs.profile._facts import Named
from sparkloom.inputs.profile._model import Profile, Sketch
from sparkloom.inputs.profile._types import UNNAMED

PROFILES = REPO / "model_profiles"
OWN = "SPARKLOOM_PROFILES"  # names a folder with more of them, such as the cells of a matrix


@dataclass(frozen=True)
class LoadedSketch:
    """What was read, with its name and the positions of every value."""

    name: str
    profile: Sketch
    document: Document

    def where(self, *loc: str | int) -> str:
        return self.document.where(loc)


@dataclass(frozen=True)
class LoadedProfile(LoadedSketch):
    profile: Profile


def names(folder: Path = PROFILES) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yml"))


def load(name_or_path: str | Path, *, overrides: Iterable[str] = ()) -> LoadedProfile:
    """Profile by name or path; `overrides` are `launch.key=value` texts from `--set`."""
    path = find(name_or_path)
    merged = _merge_parent(document.load(path, shown=_shown(path)), path.parent)
    _refuse_idle_nulls(merged)
    for override in overrides:
        apply_override(merged, override)
    _refuse_no_facts(merged)
    return LoadedProfile(path.stem, document.validate(Profile, merged), merged)


def of_text(text: str, name: str, shown: str) -> LoadedProfile:
    """A profile that is no file (yet): what an import makes."""
    parsed = document.parse(text, shown)
    return LoadedProfile(name, document.validate(Profile, parsed), parsed)


def sketch_of_text(text: str, name: str, shown: str) -> LoadedSketch:
    """Likewise, of a model without facts."""
    parsed = document.parse(text, shown)
    return LoadedSketch(name, document.validate(Sketch, parsed), parsed)


def _refuse_idle_nulls(merged: Document) -> None:
    """What null removed is gone by now: one that is left removed nothing, and its writer believes that it did."""
    parent = merged.data.get("extends")
    problems = []
    for section in ("launch", "env"):
        values = merged.data.get(section)
        there = values if isinstance(values, dict) else {}
        having = [name for name, value in there.items() if value is not None]
        for name in (name for name in there if there[name] is None):
            owner = f"'{parent}' gives no {section}.{name}" if parent else "this profile has none (extends:)"
            close = get_close_matches(name, having, n=1)
            hint = f"; did you mean '{close[0]}'?" if parent and close else ""
            message = (
                f"{section}.{name}: null removes a key of the parent, but {owner}{hint}; write a value or remove it"
            )
            problems.append(merged.problem((section, name), message, "nothing-to-remove"))
    if problems:
        raise InputError(problems)


def _refuse_no_facts(merged: Document) -> None:
    """What an import of an unknown model writes: one line says so, not one for each fact."""
    model = merged.data.get("model")
    if isinstance(model, dict) and "id" in model and model.keys() <= Named.model_fields.keys():
        unnamed = str(model["id"]).startswith(UNNAMED)
        named = "ORG/NAME" if unnamed else model["id"]
        message = (
            f"model: no facts of {model['id']} here; {'its name is not known either: ' if unnamed else ''}give "
            f"`sparkloom import` --config config.json, or `sparkloom profile new {named}` drafts a profile with them "
            "from the hub"
        )
        raise merged.refusal(("model",), message, "no-facts")


def find(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if not text.strip():
        message = "the profile's name is empty; `sparkloom profiles` lists them"
        raise InputError.single("PROFILE", message, rule="missing-file")
    if "://" in text:
        message = "is an address; a recipe's text from there becomes a profile by `sparkloom import FILE`"
        raise InputError.single(text, message, rule="missing-file")
    if path := document.find(text, PROFILES, OWN):
        return path
    hint = did_you_mean(text, names()) or "; `sparkloom profiles` lists them, a file's name ends in .yml"
    raise InputError.single(text, f"no such profile in {_shown(PROFILES)}{hint}", rule="missing-file")


def _shown(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, RuntimeError, OSError):  # elsewhere, or links in a circle: reading it says so
        return str(path)


def _merge_parent(child: Document, folder: Path) -> Document:
    parent_name = child.data.get("extends")
    if parent_name is None:
        return child
    if not isinstance(parent_name, str) or not parent_name:
        message = f"extends: expected a profile's name, found {parent_name!r}"
        raise child.refusal(("extends",), message, "wrong-type")
    home = next((place for place in (folder, PROFILES) if parent_name in names(place)), None)
    if home is None:
        hint = did_you_mean(parent_name, [*names(folder), *names()])
        message = f"extends: no profile '{parent_name}' beside this one or in {_shown(PROFILES)}{hint}"
        raise child.refusal(("extends",), message, "missing-file")
    parent_path = home / f"{parent_name}.yml"
    parent = document.load(parent_path, shown=_shown(parent_path))
    if parent.data.get("extends") is not None:
        message = (
            f"extends: '{parent_name}' itself extends '{parent.data['extends']}'; one level only: name that one here"
        )
        raise child.refusal(("extends",), message, "inheritance")
    return _merged(parent, child)


def _merged(parent: Document, child: Document) -> Document:
    """Child over parent: mappings merge, everything else replaces, null removes.

    Evidence is about one configuration, so it is never inherited; another engine's flags, environment
    and request toggles mean nothing here, so a changed `engine.name` starts those three afresh. So does another
    `model.id` with the parent's commit.
    """
    base = copy.deepcopy(parent.data)
    base.pop("evidence", None)
    child_engine, parent_engine = child.data.get("engine"), base.get("engine")
    if isinstance(child_engine, dict) and isinstance(parent_engine, dict):
        spoken = parent_engine.get("name")
        for section in ("engine", "launch", "env", "requests") if child_engine.get("name", spoken) != spoken else ():
            base.pop(section, None)
    other, model = child.data.get("model"), base.get("model")
    if isinstance(other, dict) and isinstance(model, dict) and other.get("id", model.get("id")) != model.get("id"):
        for about_one in ("revision", "runs_unpinned_code_of"):  # a commit, or a consent, is of one repository
            model.pop(about_one, None)
    files = dict.fromkeys(parent.marks, parent.file) | dict.fromkeys(child.marks, child.file)
    return Document(child.file, _overlay(base, child.data), parent.marks | child.marks, files)


def _overlay(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    result = dict(base)
    for key, value in over.items():
        if value is None and key in result:
            del result[key]
        else:
            result[key] = _overlay(result.get(key), value)
    return result


def apply_override(target: Document, text: str) -> None:
    """One `--set launch.key=value`; the value is read as YAML, so `true`, `8` and `'8'` differ."""
    key, equals, raw = text.partition("=")
    shown = f"--set {text}"
    if not equals or not key.strip():
        raise InputError.single(shown, "expected key=value, as in launch.mem_fraction_static=0.88", rule="bad-override")
    loc: Loc = tuple(key.strip().split("."))
    if loc[0] not in {"launch", "env", "engine"} or len(loc) < 2:
        message = "only launch.*, env.* and engine.* can be set here; edit the profile for the rest"
        raise InputError.single(shown, message, rule="bad-override")
    parsed = document.parse(f"value: {raw}", shown).data["value"] if raw.strip() else None
    node = target.data
    for depth, part in enumerate(loc[:-1], 1):
        if part not in node:  # what is created here is blamed here
            target.marks[loc[:depth]], target.files[loc[:depth]] = (1, 1), shown
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise InputError.single(shown, f"'{part}' is no mapping in {target.file}", rule="bad-override")
    if parsed is None:
        node.pop(loc[-1], None)
    else:
        node[loc[-1]] = parsed
    target.marks[loc] = (1, 1)
    target.files[loc] = shown
