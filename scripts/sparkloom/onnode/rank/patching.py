"""Runtime patches, all or none: changed copies of the engine's files in a folder that Python looks into first.

The image is not touched. A package that has a patched file is rebuilt in the overlay as links to the original, with
the changed file in its place; PYTHONPATH puts the overlay in front, for the engine and for all that it starts.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from sparkloom.onnode.rank.plan import GroupPlan


class PatchError(Exception):
    """One sentence: which patch does not apply, where, and what to change."""


def apply(plan: GroupPlan, environment: Mapping[str, str], say: Callable[[str, str], object]) -> dict[str, str]:
    """What the engine's environment gets; nothing when there is nothing to patch."""
    if not plan.patches:
        return {}
    changed = prepare(plan.patches, find_package)
    if not changed:
        say("patched", f"{_ids(plan.patches)}: the image has them already")
        return {}
    overlay = Path(plan.run) / "overlay"
    build(overlay, changed)
    own = [f"{folder.name}/{inner}" for folder, inner in changed if not released(plan.patches, folder, inner)]
    note = f"; not as released, but with the same places: {', '.join(own)}" if own else ""
    say("patched", f"{_ids(plan.patches)}: {len(changed)} files in {overlay}{note}")
    before = environment.get("PYTHONPATH", "")
    return {"PYTHONPATH": f"{overlay}:{before}" if before else str(overlay)}


def _ids(patches: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(str(patch["id"]) for patch in patches)


def spec(name: str) -> ModuleSpec | None:
    """What Python finds here under that name, without importing it."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def find_package(name: str) -> Path | None:
    """The folder of an installed package."""
    found = spec(name)
    return Path(next(iter(found.submodule_search_locations))) if found and found.submodule_search_locations else None


def prepare(patches: Sequence[Mapping[str, Any]], find: Any) -> dict[tuple[Path, str], str]:
    """`(package folder, file in it)` -> new text of every file that changes. Refused before anything is written."""
    texts: dict[tuple[Path, str], str] = {}
    for patch in patches:
        for edit in patch["edits"]:
            package, _, inner = str(edit["file"]).partition("/")
            folder = find(package)
            if folder is None or not (folder / inner).is_file():
                if patch.get("only_where_present"):
                    continue
                raise PatchError(f"patch {patch['id']}: {edit['file']} is not in this image; {_cure(patch)}")
            key = (folder, inner)
            before = texts[key] if key in texts else (folder / inner).read_text()
            texts[key] = edited(patch, edit, before)
    for (folder, inner), text in texts.items():
        _parses(patches, folder / inner, text)
    return {key: text for key, text in texts.items() if text != (key[0] / key[1]).read_text()}


def _parses(patches: Sequence[Mapping[str, Any]], file: Path, text: str) -> None:
    try:
        compile(text, str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise PatchError(f"{file} is no Python any more after {_ids(patches)}: {error}; {_cure(patches[0])}") from None


def edited(patch: Mapping[str, Any], edit: Mapping[str, Any], before: str) -> str:
    """The file's text with this one place changed; unchanged when the image has the change already."""
    anchor, replacement = str(edit["anchor"]), str(edit["replacement"])
    if digest(anchor) != edit["anchor_sha256"]:
        raise PatchError(f"patch {patch['id']}: its anchor in {edit['file']} is damaged; render the profile again")
    if f"\n{replacement}" in f"\n{before}":
        return before
    places = f"\n{before}".count(f"\n{anchor}")
    if places != 1:
        raise PatchError(
            f"patch {patch['id']}: its place in {edit['file']} was found {places} times, expected once; {_cure(patch)}"
        )
    return f"\n{before}".replace(f"\n{anchor}", f"\n{replacement}")[1:]


def released(patches: Sequence[Mapping[str, Any]], folder: Path, inner: str) -> bool:
    """Is the original exactly a file of a release that a patch was judged against?"""
    original = digest((folder / inner).read_text())
    return any(original in patch["released"].get(f"{folder.name}/{inner}", ()) for patch in patches)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _cure(patch: Mapping[str, Any]) -> str:
    return (
        f"it is written for {patch['package']} {', '.join(patch['releases'])}: use an image of such a release, "
        "or take the patch out of engine.patches in the profile"
    )


def build(overlay: Path, changed: Mapping[tuple[Path, str], str]) -> None:
    shutil.rmtree(overlay, ignore_errors=True)
    for (folder, inner), text in changed.items():
        place = overlay / folder.name
        _mirror(folder, place)
        for part in Path(inner).parts[:-1]:
            folder, place = folder / part, place / part
            _mirror(folder, place)
        target = place / Path(inner).name
        target.unlink()
        target.write_text(text)


def _mirror(original: Path, place: Path) -> None:
    """A real folder whose entries are links to the original's; compiled files would bring the old text back."""
    if place.is_symlink():
        place.unlink()
    if place.is_dir():
        return
    place.mkdir(parents=True)
    for entry in original.iterdir():
        if entry.name != "__pycache__":
            (place / entry.name).symlink_to(entry)
