"""`read(text, name, programs)` says what somebody's recipe or command line starts, and what else it holds.

Which engines there are is told by the caller (launch/engines): a new one is found here, too.
"""

from __future__ import annotations

import re
from typing import Any

from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.inputs.importers import compose, cookbook, pasted, shell, sparkrun
from sparkloom.inputs.importers.found import Found, Leftover, Programs, kept, short

FORMS = (
    "a sparkrun recipe (version 1 or 2), a compose file, a cell of SGLang's cookbook, or a script or command line "
    "that starts an engine known here"
)
_FENCE = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)


def read(text: str, name: str, programs: Programs, pick: str = "") -> Found:
    """What `text` holds, by its content; InputError where nothing here can read it."""
    try:
        return _read(text, name, programs, pick)
    except RecursionError:
        raise InputError.single(name, "nested too deep for a recipe or a script", rule="unreadable") from None


def _read(text: str, name: str, programs: Programs, pick: str) -> Found:
    if cookbook.fits(text):
        return cookbook.read(text, name, pick)
    mapping = _mapping(text, name)
    if mapping is not None:
        return _of_yaml(mapping, name, programs)
    found = shell.read(_code(text, name), name, programs)
    if found is None:
        raise InputError.single(name, f"no engine is started in it; expected {FORMS}", rule="no-engine")
    found.kept = kept(text, name)
    return found


def _of_yaml(mapping: document.Document, name: str, programs: Programs) -> Found:
    data = mapping.data
    if compose.fits(data):
        found = compose.read(mapping, programs)
        if found is None:
            raise InputError.single(name, "a compose file in which no service starts an engine", rule="no-engine")
        return _with_doubles(found, mapping)
    if sparkrun.fits(data):
        return _with_doubles(sparkrun.read(mapping, programs), mapping)
    if "launch" in data and "engine" in data:
        message = "is a profile of sparkloom already: `sparkloom plan` judges it"
        raise InputError.single(name, message, rule="already-a-profile")
    if (page := _page(mapping, programs)) is not None:
        return _with_doubles(page, mapping)
    keys = ", ".join(list(data)[:8])
    raise InputError.single(name, f"YAML with the keys {keys}; expected {FORMS}", rule="unknown-form")


def _page(mapping: document.Document, programs: Programs) -> Found | None:
    """A site's data about a model with a page of text in it (vLLM's recipes): the page's first command."""
    for key, text in mapping.data.items():
        code = _code(text, mapping.file) if isinstance(text, str) and "```" in text else ""
        found = shell.read(code, mapping.file, programs, line=mapping.position((key,))[1] + 1) if code else None
        if found is None:
            continue
        found.form = f"the page under {key}: of a site's data"
        why = "what the site's own builder makes other commands of; the first one of its page is read"
        rest = {name: value for name, value in mapping.data.items() if name != key and value not in (None, [], {}, "")}
        found.leftover += [Leftover(f"{name}: {short(str(value))}", why) for name, value in rest.items()]
        return found
    return None


def _with_doubles(found: Found, mapping: document.Document) -> Found:
    why = "stands twice in the file; the last one is read, as others' readers do"
    found.leftover += [
        Leftover(f"{d.file}:{d.line}: {d.message.split(' stands')[0]}", why) for d in mapping.doubles or ()
    ]
    return found


def _mapping(text: str, name: str) -> document.Document | None:
    """The text as YAML, where that is what it is: a recipe's or a compose file's mapping; a page may hold one."""
    keys = re.search(r"^(services|recipe_version|model|launch)\s*:", text, re.MULTILINE)
    if not keys or re.search("^```", text, re.MULTILINE):
        return None
    try:
        found = document.parse(text, name, doubles=True)
        found.data = _merged(found.data)
        return found
    except InputError:
        if re.search(r"^(recipe_version|services)\s*:", text, re.MULTILINE):
            raise
        return None


def _merged(value: Any) -> Any:
    """With YAML's merge keys (`<<: *common`), by which services of a compose file share what they are; the own wins."""
    if isinstance(value, list):
        return [_merged(item) for item in value]
    if not isinstance(value, dict):
        return value
    own = {key: _merged(item) for key, item in value.items()}
    given = own.pop("<<", [])
    for base in given if isinstance(given, list) else [given]:
        own = {**base, **own} if isinstance(base, dict) else own
    return own


def _code(text: str, name: str) -> str:
    return pasted.plain(_fenced(text), name)


def _fenced(text: str) -> str:
    """Of a page with code in it only the code, each line where it was."""
    if not _FENCE.search(text):
        return text
    kept_lines = [""] * (text.count("\n") + 1)
    for match in _FENCE.finditer(text):
        first = text.count("\n", 0, match.start(1))
        for offset, line in enumerate(match[1].split("\n")):
            kept_lines[first + offset] = line
    return "\n".join(kept_lines)
