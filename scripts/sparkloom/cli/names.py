"""Which profile somebody means: a name or a path, and on the command line also a part of a name or the hub's id.

Playbooks take whole names only: what is deployed is written out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from sparkloom.base.errors import InputError, Problem

SHOWN = 6  # candidates in a refusal
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


class Ambiguous(InputError):
    """Several profiles have that in their names."""

    names: tuple[str, ...] = ()


def exact(text: str) -> str:
    """The one profile that `text` means, said on stderr where it was not written out; refused where it is not one."""
    from sparkloom.inputs import profile as profiles

    known = every()
    if not text.strip() or text in known or _is_path(text):
        return text
    meant = _by_hub_id(text, known) or _by_part(text, known)
    if len(meant) == 1:
        sys.stderr.write(f"{text}: {meant[0]}\n")
        return meant[0]
    if meant:
        message = f"names {len(meant)} profiles; write more of one: {_few(meant)}"
        several = Ambiguous([Problem(text, 0, 0, message, "ambiguous")])
        several.names = tuple(meant)
        raise several
    if near := _near(text, known):
        message = f"no profile has that in its name; nearest: {_few(near)}"
        raise InputError.single(text, message, rule="missing-file")
    if HUB_ID.fullmatch(text):
        message = "no file, and no profile of that model here; `sparkloom profiles` lists what there is"
        raise InputError.single(text, message, rule="missing-file")
    profiles.find(text)  # refuses it
    return text


def begun(incomplete: str) -> list[str]:
    """What the shell offers."""
    return [name for name in every() if name.startswith(incomplete)]


def every() -> list[str]:
    """Shipped profiles, and those in the folder that SPARKLOOM_PROFILES names."""
    from sparkloom.base import document
    from sparkloom.inputs import profile as profiles

    places = document.places(profiles.PROFILES, profiles.OWN)
    return sorted({name for folder in places for name in profiles.names(folder)})


def _is_path(text: str) -> bool:
    if text.endswith((".yml", ".yaml")) or text.startswith(("/", "./", "../", "~")):
        return True
    try:
        return "/" in text and Path(text).exists()
    except OSError:
        return True  # too long for a name: the reader refuses it


def _by_hub_id(text: str, known: Sequence[str]) -> list[str]:
    """`nvidia/GLM-4.7-NVFP4`: the profile of that model, the plain one where there are several."""
    if not HUB_ID.fullmatch(text):
        return []
    name = text.lower().replace("/", "--")
    if name in known:
        return [name]
    from sparkloom.inputs import profile as profiles

    written = re.compile(rf"^\s+id:\s*[\"']?{re.escape(text)}[\"']?\s*(#.*)?$", re.MULTILINE | re.IGNORECASE)
    return _plainest([name for name in known if written.search(profiles.find(name).read_text(encoding="utf-8"))])


def _by_part(text: str, known: Sequence[str]) -> list[str]:
    """Names with every word of `text` in them."""
    words = [word for word in re.split(r"[\s*/]+", text.lower()) if word.strip(".-")]
    return _plainest([name for name in known if words and all(word in name.lower() for word in words)])


def _plainest(names: list[str]) -> list[str]:
    """Of a profile and its variants (`name--mtp`), the profile."""
    plain = [name for name in names if all(other == name or other.startswith(f"{name}--") for other in names)]
    return plain or names


def _near(text: str, known: Sequence[str]) -> list[str]:
    """Names with words that are written nearly like those of `text`."""
    import difflib

    if len(text) > 200:
        return []
    parts = {part for name in known for part in re.split(r"[-.]+", name.lower()) if len(part) > 2}
    words = [word for word in re.split(r"[\s/.*-]+", text.lower()) if len(word) > 2]
    close = [match[0] for word in words if (match := difflib.get_close_matches(word, parts, n=1, cutoff=0.75))]
    whole = [name for name in known if close and all(part in name.lower() for part in close)]
    return whole or difflib.get_close_matches(text.lower(), known, n=3, cutoff=0.6)


def _few(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
