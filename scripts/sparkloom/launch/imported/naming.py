"""Which model a command means: the hub's name, commit and file for what the author's machine calls by a path."""

from __future__ import annotations

import re
from typing import Any

from sparkloom.inputs.importers import Found, Leftovers
from sparkloom.launch.imported.command import Said

HUB_ID = re.compile(r"[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*")
_FOLDER = re.compile(r"models--([\w.-]+?)--([\w.-]+)|/([\w.-]+/[\w.-]+?)/*$")
# Folders that no publisher is called after.
_PLACES = re.compile(r"models?\d*|root|workspace|data|mnt|cache|path|to|home|opt|srv|tmp|var|weights|llms?|gguf", re.I)


def model(said: Said, found: Found, leftover: Leftovers) -> dict[str, Any]:
    named: dict[str, Any] = {"id": _hub_id(said.model, found, leftover)}
    snapshot = re.search(r"/snapshots/([0-9a-f]{40})(/|$)", said.model)
    if revision := said.revision or found.revision or (snapshot[1] if snapshot else ""):
        named["revision"] = revision
    file = said.file or _gguf(said.model)
    if file:
        named["file"] = file
    if said.draft and said.draft != named["id"] and not found.kept:
        named["draft"] = {"id": said.draft}
    return named


def _hub_id(text: str, found: Found, leftover: Leftovers) -> str:
    """The hub's name for what the command calls the model: itself, or what its folder is called after."""
    if HUB_ID.fullmatch(text):
        return text
    beside = found.model.partition(":")[0]
    kept = str((found.kept.get("model") or {}).get("id") or "")
    if HUB_ID.fullmatch(kept or beside):
        if text and not kept and text != found.model:
            leftover.add(f"model {text}", f"a path of the author's; the file names {beside} beside it")
        return kept or beside
    match = _FOLDER.search(text)
    guess = (f"{match[1]}/{match[2]}" if match[1] else match[3]) if match else ""
    if HUB_ID.fullmatch(guess) and not _PLACES.fullmatch(guess.partition("/")[0]):
        leftover.add(f"model {text}", f"a path of the author's; read as the hub's {guess}, after its folder")
        return guess
    name = re.sub(r"[^\w.-]+", "-", text.rstrip("/").rpartition("/")[2] or "unnamed").strip("-.") or "unnamed"
    leftover.add(f"model {text or '(none)'}", "no hub id: write the model's name on the hub as model.id")
    return f"unknown/{name}"


def _gguf(text: str) -> str:
    """The file inside the repository: behind the store's folder, a hub cache's snapshot, or its last name."""
    if not text.endswith(".gguf"):
        return ""
    inside = re.search(r"(?:/by-name/[^/]+|/snapshots/[^/]+)/(.+)$", text)
    return inside[1] if inside else text.rpartition("/")[2]
