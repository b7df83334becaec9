"""Facts of a model by its name: those of a shipped profile, of the same checkpoint or of another packing of its base.

The one door for whoever needs facts that a file does not hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sparkloom.inputs import precision
from sparkloom.inputs import profile as profiles
from sparkloom.inputs.checkpoint import as_model, reading
from sparkloom.inputs.checkpoint.sources import Folder

_NVIDIA = re.compile(r"^nvidia-")
OF_ONE_PACKING = ("revision", "measured", "runs_unpinned_code_of")  # and of no other


@dataclass(frozen=True, slots=True)
class Facts:
    """The `model:` section of a profile, whose it is, and whether it is this checkpoint's own."""

    model: dict[str, Any]
    source: str
    doubt: str = ""  # why it is an estimate

    @property
    def sure(self) -> bool:
        return not self.doubt


def facts_of(model: str, config: Path | None = None) -> Facts | None:
    """Facts of a hub id: of `config` (a config.json or its folder), else by its name. None where nobody has them."""
    if config is not None:
        folder = Folder(config)
        made = as_model.of(reading.of(folder, model))
        return Facts(made.data, f"{folder.config.name} in {folder.shown}", "; ".join(made.unknown))
    known = _shipped()
    if (same := known.get(model.lower())) is not None:
        return Facts(same[1], f"shipped profile {same[0]}")
    base, packing = split(model)
    for name, section in known.values():
        if split(section["id"])[0] == base:
            return Facts(*_packed(section, name, model, packing), precision.BY_NAME)
    return None


def split(model: str) -> tuple[str, str]:
    """A name without what says its packing, and that; both in small letters."""
    name = _NVIDIA.sub("", model.rpartition("/")[2].lower())
    for named in precision.NAMES:
        if match := re.search(f"{named['ending']}$", name):
            return name[: match.start()], str(named["packing"])
    return name, ""


def _packed(section: dict[str, Any], profile: str, model: str, packing: str) -> tuple[dict[str, Any], str]:
    """The shape of another packing with this one's precision, as far as a name tells."""
    other = section["id"]
    made = {key: value for key, value in section.items() if key not in OF_ONE_PACKING}
    made |= {"id": model, "source": f"shape as {other} (profile {profile}); {precision.GUESSED}"}
    if packing != split(other)[1]:
        stored: dict[str, str] = next(
            (named["precision"] for named in precision.NAMES if named["packing"] == packing), {}
        )
        old = section["precision"]
        made["precision"] = {
            group: word if group == "embedding" else stored.get(group, "bf16") for group, word in old.items()
        }
        made["checkpoint"] = {"packing": packing or "bf16"}
    else:
        made["checkpoint"] = {k: v for k, v in section["checkpoint"].items() if k not in ("gated",)}
    return made, f"another packing of the same model: {other}, shipped profile {profile}"


@lru_cache
def _shipped() -> dict[str, tuple[str, dict[str, Any]]]:
    """By hub id: the first profile of each model, and its facts as plain data."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name in profiles.names():
        model = profiles.load(name).profile.model
        found.setdefault(model.id.lower(), (name, model.model_dump(exclude_defaults=True)))
    return found
