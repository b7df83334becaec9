"""keys.yml, changed: an entry more or less. Comments and the order of what a person wrote stay as they are."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from sparkloom.base import document, files
from sparkloom.base.errors import InputError, did_you_mean
from sparkloom.inputs import client_keys
from sparkloom.inputs.client_keys import LIST, OURS_ONLY, Key

HEAD = """\
---
# Who may ask this site's models, and how much: docs/endpoint.md. A key itself stands nowhere, only its hash.
# `sparkloom keys add NAME` makes one and shows it once; `sparkloom keys revoke NAME` takes it away.
client_keys:
"""


def add(file: Path, key: Key) -> None:
    """Writes an entry at the end; a name that is there already is refused."""
    source, known = client_keys.read(file)
    for number, other in enumerate(known):
        if source and other.name == key.name:
            expected = f"a new name, such as {key.name}-laptop, or `sparkloom keys revoke {key.name}` first"
            message = f"'{key.name}' has a key already; expected {expected}"
            raise source.refusal((LIST, number, "name"), message, "duplicate-key")
    put(file, key)


def put(file: Path, key: Key) -> None:
    """Writes an entry, in place of the one of that name if there is one."""
    _, known = client_keys.read(file)
    entry = {name: value for name, value in key.model_dump(exclude_none=True).items() if value is not False}
    yaml = document.edited(begins=True)
    content = _content(yaml, file)
    content[LIST] = content.get(LIST) or []
    at = next((number for number, one in enumerate(known) if one.name == key.name), len(known))
    if at == len(known):
        content[LIST].append(CommentedMap(entry))
    else:
        content[LIST][at].update(entry)
    _write(yaml, file, content, [*known[:at], key, *known[at + 1 :]])


def revoke(file: Path, name: str) -> Key:
    """Takes an entry away, with the comments that stand in it, and tells which one it was."""
    _, known = client_keys.read(file)
    for number, key in enumerate(known):
        if key.name == name:
            yaml = document.edited(begins=True)
            content = _content(yaml, file)
            rest = known[:number] + known[number + 1 :]
            if rest:
                del content[LIST][number]
            else:  # an empty list with a comment before its first entry is written as no YAML
                content[LIST] = CommentedSeq()
            _write(yaml, file, content, rest)
            return key
    hint = did_you_mean(name, [key.name for key in known]) or "; there are none"
    raise InputError.single(str(file), f"no key is called '{name}'{hint}", rule="no-such-key")


def _content(yaml: YAML, file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8") if file.is_file() else HEAD)


def _write(yaml: YAML, file: Path, content: Any, wanted: list[Key]) -> None:
    """What would be read back as anything else is not written: a lost key locks somebody out, or lets him in."""
    stream = io.StringIO()
    yaml.dump(content, stream)
    text = stream.getvalue()
    try:
        read = client_keys.parsed(text, str(file))
    except InputError:
        read = []
    if read != wanted:
        message = "its comments stand where they cannot be kept; expected them in lines of their own, above an entry"
        raise InputError.single(str(file), message, rule="bad-comment")
    files.write(file, text, OURS_ONLY)
