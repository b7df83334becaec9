"""Where this checkout lies: the package runs from it, beside its profiles, inventories and playbooks."""

from __future__ import annotations

from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
