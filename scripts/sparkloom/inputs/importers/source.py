"""`read(text, name, programs)` says what somebody's recipe or command line starts, and what else it holds.

Which engines there are is told by the caller (launch/engines): a new one is found here, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.inputs.importers import compose, cookbook, manifests, pasted, shell, sparkrun
from sparkloom.inputs.importers.found import Found, Leftover, Programs, kept, short
from sparkloom.inputs.importers.starts import Scope

FORMS = (
    "a sparkrun recipe (version 1 or 2), a compose file, a Kubernetes manifest, a cell of SGLang's cookbook, or a "
    "script or command line that starts an engine known here"
)
NOTHING = "no engine is started in it"
SEVERAL = 20  # recipes of a page
_WHOLE = re.compile(r"^(services|recipe_version|apiVersion)\s*:", re.MULTILINE)  # a recipe that stands in a page
_RUN_BY_NAME = re.compile(
    r"""(?:\brun-recipe\.(?:sh|py)["']?|^\s*sparkrun\s+run)\s+["']?((?!-)(?:\$\{?\w+\}?/)?[\w@/.-]*\w)""", re.MULTILINE
)
# What is only told of, looked for or ended is no start.
_TOLD = re.compile(r"^\s*(?:#.*|(?:ps|pgrep|pkill)\b.*|echo\b[^>|\n]*$)", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)


def read(text: str, name: str, programs: Programs, pick: str = "") -> Found:
    """What `text` holds, by its content; InputError where nothing here can read it."""
    try:
        return _read(text.replace("\r\n", "\n"), name, programs, pick)
    except RecursionError:
        raise InputError.single(name, "nested too deep for a recipe or a script", rule="unreadable") from None


def _read(text: str, name: str, programs: Programs, pick: str, page: bool = True) -> Found:
    """`page`: whether the text may be one, or a script, in which a recipe stands as a whole."""
    if cookbook.fits(text):
        return cookbook.read(text, name, pick)
    mapping = manifests.document_of(text, name) if manifests.fits(text) else _mapping(text, name)
    if mapping is not None:
        return _of_yaml(mapping, name, programs)
    code = _code(text, name)
    fences = (
        (name, "\n" * text.count("\n", 0, m.start(2)) + m[2]) for m in _FENCE.finditer(text) if _WHOLE.search(m[2])
    )
    scope = Scope()
    found = _within(fences if page else (), programs) or shell.read(code, name, programs, scope=scope)
    written = ((f"{name}: {path.rpartition('/')[2]}", text) for path, text in scope.files.items() if page)
    found = found or _spans(text, name, programs) or _within(written, programs)
    if found is None:
        raise InputError.single(name, _nothing(text, programs), rule="no-engine")
    found.kept = found.kept or kept(text, name)
    return found


def _within(texts: Iterable[tuple[str, str]], programs: Programs) -> Found | None:
    """The first of those texts that is a recipe of its own; each with its name."""
    for name, text in islice(texts, SEVERAL):
        with suppress(InputError):
            found = _read(text, name, programs, "", False)
            beside = f"what stands beside {found.starts[0].where}"
            found.leftover.add(beside, "of a page or a script one recipe is read")
            return found
    return None


def _nothing(text: str, programs: Programs) -> str:
    """Why there is nothing to read: a start in a form that is not followed is no text without one."""
    ways = [way for ways in programs.values() for way in ways]
    text = _TOLD.sub("", text)
    there = next((" ".join(way) for way in ways if re.search(r"\W+".join(map(re.escape, way)), text)), "")
    told = f"`{there}` stands in it in a form that is not read: paste that command alone" if there else NOTHING
    if recipe := _RUN_BY_NAME.search(text):
        told = f"it runs the recipe {recipe[1]} of another file: import that one"
    return f"{told}; expected {FORMS} ({', '.join(programs)})"


def _spans(text: str, name: str, programs: Programs) -> Found | None:
    """Of a page the code inside its sentences, each line where it was. Without a model it is only talked about."""
    code = "\n".join("; ".join(re.findall("`+([^`]+)`+", line)) for line in text.split("\n"))
    found = None if text.startswith("#!") else shell.read(pasted.plain(code, name), name, programs)
    return found if found and any(re.search(r"\w/\w", " ".join(start.words)) for start in found.starts) else None


def _of_yaml(mapping: document.Document, name: str, programs: Programs) -> Found:
    data = mapping.data
    if compose.fits(data):
        found = compose.read(mapping, programs)
        if found is None:
            form = "Kubernetes manifest" if manifests.OBJECTS in data else "compose file"
            raise InputError.single(name, f"a {form} in which no service starts an engine", rule="no-engine")
        found.leftover[:0] = [Leftover(what, manifests.WHY) for what in data.get(manifests.OBJECTS, ())]
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
    for double in mapping.doubles or ():
        found.leftover.add(f"{double.file}:{double.line}: {double.message.split(' stands')[0]}", why)
    return found


def _mapping(text: str, name: str) -> document.Document | None:
    """The text as YAML, where that is what it is: a recipe's or a compose file's mapping; a page may hold one."""
    keys = re.search(r"^(services|recipe_version|model|launch)\s*:", text, re.MULTILINE)
    if not keys or re.search("^(```|~~~)", text, re.MULTILINE):
        return None
    try:
        found = document.parse(text, name, doubles=True)
        found.data = _merged(found.data)
        return found
    except InputError:
        if _WHOLE.search(text) and not re.search(r"<<-?[ \t]*['\"]?\w", text):  # (a script may write one)
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
    pieces, end = list[str](), 0
    for match in _FENCE.finditer(text):
        pieces += ["\n" * text.count("\n", end, match.start(2)), match[2]]
        end = match.end(2)
    return "".join(pieces)
