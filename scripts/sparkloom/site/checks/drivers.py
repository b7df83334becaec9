"""Does the driver answer, is it one of which nothing bad is known, and is it the same on all nodes?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sparkloom.base import document
from sparkloom.base.finding import Finding

CHECK = "driver"
DATA = Path(__file__).with_name("drivers.yml")


@cache
def known() -> tuple[Mapping[str, Any], ...]:
    return tuple(document.own(DATA.read_text()))


def judge(node: str, probe: Mapping[str, Any], expected: str) -> Iterator[Finding]:
    driver = probe["driver"]
    version = driver["version"]
    trouble = next((entry for entry in known() if re.search(entry["match"], version)), None)
    if not version:
        loaded = f"; the kernel has {driver['loaded']} loaded" if driver["loaded"] else ""
        found = f"no answer from nvidia-smi ({driver['why'] or 'empty'}){loaded}"
        fix = "reboot when the driver was just updated; else install the driver of DGX OS"
        yield Finding(node, CHECK, found, f"NVIDIA's driver {expected}".rstrip(), fix)
    elif f"{version}.".startswith(f"{expected}."):
        return
    elif trouble:
        wanted, fix = f"{expected or 'another'}: preflight_driver names what this site trusts", trouble["cure"]
        found = f"{version}: {trouble['why']}"
        yield Finding(node, CHECK, found, wanted, fix, "error" if trouble["refuse"] else "warning")
    elif expected:
        wanted = f"{expected}, which the measured figures were made with"
        fix = "nothing, when it serves well; preflight_driver names the version that you expect"
        yield Finding(node, CHECK, version, wanted, fix, "warning")


def differing(probes: Mapping[str, Mapping[str, Any]], expected: str) -> Iterator[Finding]:
    """One engine on several nodes wants one driver; the odd ones out are named, unless they are named already."""
    versions = {node: str(probe["driver"]["version"]) for node, probe in probes.items()}
    counts = Counter(filter(None, versions.values()))
    common = counts.most_common(1)[0][0] if counts else ""
    for node, version in versions.items():
        if version and version != common and f"{version}.".startswith(f"{expected}."):
            fix = f"sudo apt-get update and full-upgrade there, reboot; or {version} on the others"
            yield Finding(node, CHECK, version, f"{common} as on the others", fix, "warning")
