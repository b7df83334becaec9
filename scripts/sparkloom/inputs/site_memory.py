"""What preflight measured of a site: the memory that CUDA calls free on each idle node, before anything is loaded.

It differs from kit to kit by more than 10 GiB, and no figure of the host tells it: CUDA itself has to be asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sparkloom.base import files, repository
from sparkloom.base.errors import InputError
from sparkloom.inputs.platform import GB10, Platform

FILE = "memory.json"
Span = tuple[float, float]  # GiB free as it stands, and once the page cache gives back what it can


def path(site: str) -> Path:
    return repository.kept(site) / FILE


def read(file: Path) -> dict[str, Span]:
    """By node; empty before the first preflight. A file that is no such list is refused by name."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {str(node): (float(least), float(most)) for node, (least, most) in content["cuda_free_gib"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"not what preflight writes ({error}); remove it and run playbooks/preflight.yml"
        raise InputError.single(str(file), message, rule="bad-measure") from None


def keep(file: Path, measured: Mapping[str, Span], when: str) -> None:
    """Adds what was measured now to what is known of the other nodes."""
    if measured:
        known = {**read(file), **measured}
        files.write(file, json.dumps({"cuda_free_gib": known, "when": when}, indent=1, sort_keys=True) + "\n")


def platform(site: str, nodes: Sequence[str]) -> Platform:
    """A Spark with the least that was measured on these nodes, where every one of them was measured."""
    known = read(path(site))
    if not nodes or any(node not in known for node in nodes):
        return GB10
    least, most = (min(known[node][end] for node in nodes) for end in (0, 1))
    return replace(GB10, measured_free_gib=(least, most))
