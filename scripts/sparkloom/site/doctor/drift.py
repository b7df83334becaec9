"""What a module in check mode says it would change, as (what, found, expected)."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sparkloom.site.doctor.events import Event

Item = tuple[str, str, str]
CHANGED = "changed: "  # how our own programs on a host name what they would change, one line each
PRINTED = {"functions": "virtual functions", "private": "nftables"}  # what they keep, by the file that asks them
AS_PLANNED = "as planned"
SHOWN, BEFORE = 80, 24  # characters of a value, and how many of them before the place where it differs


def items(event: Event) -> list[Item]:
    result = event["result"]
    printed = [line for line in result.get("stdout_lines") or () if line.startswith(CHANGED)]
    named = [
        # modules that know it best name it themselves
        *((str(entry["what"]), str(entry["found"]), str(entry["expected"])) for entry in result.get("drift") or ()),
        *_files(result),
        *((str(link), "other MTU or address", AS_PLANNED) for link in result.get("links") or ()),
        *_units(result.get("done")),
        *((PRINTED[event["area"]], line.removeprefix(CHANGED), AS_PLANNED) for line in printed),
        *_objects(result.get("differing", ())),
    ]
    # a module that gives no detail: the task's own name says what it keeps
    return named or [(event["task"], "would change", "no change")]


def _files(result: dict[str, Any]) -> Iterator[Item]:
    entries = result.get("diff") or []
    seen = {str(entry["what"]) for entry in result.get("drift") or ()}
    for entry in entries if isinstance(entries, list) else [entries]:
        before, after = entry.get("before"), entry.get("after")
        path = str(entry.get("before_header", ""))
        if not (isinstance(before, str) and isinstance(after, str) and path) or path in seen:
            continue
        if "before_mode" in entry:
            yield path, f"permissions {entry['before_mode']}", entry["after_mode"]
        if before != after or "before_mode" not in entry:
            yield (path, *_lines(before, after))


def _lines(before: str, after: str) -> tuple[str, str]:
    """The first line that differs, and how many there are."""
    if not before:
        return "not there", "the file"
    if before == after:
        return "another owner or other permissions", "its own"
    changes = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[:1] in "+-"]
    gone = [line[2:].strip() for line in changes if line[0] == "-"]
    come = [line[2:].strip() for line in changes if line[0] == "+"]
    more = f" (and {len(changes) - 2} more lines)" if len(changes) > 2 else ""
    return (f"'{gone[0]}'{more}" if gone else "a line too few", f"'{come[0]}'" if come else "no such line")


def _units(steps: Any) -> Iterator[Item]:
    """What systemctl would be asked to do, one line each: `enable x.service`."""
    for step in steps or ():
        verb, _, unit = str(step).rpartition(" ")
        yield f"unit {unit}", f"waits for '{verb}'", AS_PLANNED


def _objects(objects: Sequence[dict[str, Any]]) -> Iterator[Item]:
    """A part that was never applied is one thing, not one for each of its objects."""
    missing = [f"{item['kind']} {item['name']}" for item in objects if not item["diff"].get("before")]
    if len(missing) > 3:
        yield f"{len(missing)} objects ({', '.join(missing[:2])}, …)", "not there", "the objects"
        objects = [item for item in objects if item["diff"].get("before")]
    for item in objects:
        yield from _object(item)


def _object(item: dict[str, Any]) -> Iterator[Item]:
    what = f"{item['kind']} {item['name']}"
    before, after = item["diff"].get("before"), item["diff"].get("after")
    if not before:
        yield what, "not there", "the object"
        return
    pairs = [pair for pair in _leaves(before, after or {}) if not pair[0].startswith("metadata.")]
    for path, had, wants in pairs[:3] or [("", "differs", AS_PLANNED)]:
        yield (f"{what} {path}".strip(), *apart(had, wants))


def _leaves(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _leaves(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif before != after:
        yield path, before, after


def apart(had: Any, wants: Any) -> tuple[str, str]:
    """Both in a line's length, long ones where they differ: two equal beginnings tell nobody what to mend."""
    found, expected = _words(had), _words(wants)
    if max(len(found), len(expected)) <= SHOWN:
        return (found, expected) if found != expected else (f"{found}, other white space", expected)
    if isinstance(had, str) and isinstance(wants, str) and _opaque(had) and _opaque(wants):
        return _weighed(had), _weighed(wants)
    pairs = enumerate(zip(found, expected, strict=False))
    begin = next((at for at, (one, other) in pairs if one != other), min(len(found), len(expected)))
    if begin == max(len(found), len(expected)):
        return f"other white space in {begin} characters", _around(expected, 0)
    return _around(found, begin), _around(expected, begin)


def _around(text: str, differs: int) -> str:
    begin = max(differs - BEFORE, 0) if len(text) > SHOWN else 0
    end = begin + SHOWN - 6
    return f"{'...' if begin else ''}{text[begin:end]}{'...' if end < len(text) else ''}"


def _words(value: Any) -> str:
    if value is None:
        return "nothing"
    return " ".join((value if isinstance(value, str) else json.dumps(value)).split())


def _opaque(text: str) -> bool:
    """A file in base64: nobody reads it."""
    return len(text) > SHOWN and re.fullmatch(r"[A-Za-z0-9+/\s]+=*\s*", text) is not None


def _weighed(text: str) -> str:
    return f"{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}"
