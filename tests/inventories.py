"""Inventories of a test's own: the shipped example with another list of what is served."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from sparkloom.inputs import inventory

QWEN, OSS, GLM = "radixark--qwen3.8-27b-nvfp4", "openai--gpt-oss-120b", "nvidia--glm-5.3-flash-nvfp4"
# Two Sparks, one, and a share of one.
THREE = f"""\
serve:
  - {{profile: {GLM}, name: glm}}
  - {OSS}
  - {{profile: {QWEN}, name: chat, fraction: 0.42}}
"""


def own(folder: Path, name: str = "gb10") -> Path:
    """A person's copy of the shipped example, of the same name."""
    site = Path(shutil.copytree(inventory.DEFAULT_INVENTORY, folder / name))
    said = site / "group_vars" / "all" / "cluster.yml"
    said.write_text(said.read_text().replace("example: true", "example: false"))
    return site


def serving(folder: Path, text: str, *, name: str = "fleet", fabric: tuple[str, str] = ("", "")) -> Path:
    """The folder of gb10 in which `text` stands in place of `profile: ...`; `fabric`: an old and a new text there."""
    site = folder / name
    shutil.copytree(inventory.DEFAULT_INVENTORY, site)
    said = site / "group_vars" / "all" / "cluster.yml"
    changed = re.sub(r"^profile: .*\n", lambda _: text, said.read_text(), flags=re.M)
    said.write_text(changed.replace("name: gb10", f"name: {name}").replace("example: true", "example: false"))
    rails = site / "group_vars" / "all" / "fabric.yml"
    rails.write_text(rails.read_text().replace(*fabric) if fabric[0] else rails.read_text())
    return site
