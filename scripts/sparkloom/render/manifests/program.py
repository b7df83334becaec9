"""The supervisor's files as they lie in a pod: its own package, and the files of ours that it shares.

`python3 /sparkloom/rank` finds `__main__.py` there and the package beside it. One copy of each fact: what judges a
log here judges it there.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from sparkloom.judge import rules

HERE = Path(__file__).resolve().parents[2]
SHARED = (
    "__init__.py",
    "base/__init__.py",
    "base/errors.py",
    "base/finding.py",
    "onnode/__init__.py",
    "onnode/loglines.py",
    "onnode/nccl/__init__.py",
    "onnode/nccl/lines.py",
    "onnode/nccl/log.py",
    "onnode/nccl/why.py",
    "onnode/smoke.py",
    "onnode/weights/__init__.py",
    "onnode/weights/check.py",
    "onnode/weights/layout.py",
)


@cache
def files() -> dict[str, str]:
    """Path below the program's folder -> text."""
    own = {
        f"onnode/rank/{path.name}": path
        for path in sorted((HERE / "onnode/rank").glob("*.py"))
        if path.name != "__main__.py"
    }
    shared = {name: HERE / name for name in SHARED}
    package = {f"sparkloom/{name}": path.read_text() for name, path in {**shared, **own}.items()}
    return {"__main__.py": (HERE / "onnode/rank/__main__.py").read_text(), **package}


@cache
def patterns(engine: str) -> str:
    """What the rules know of an engine's last words, as JSON."""
    known = [
        {"rule": rule.id, "severity": rule.severity, "pattern": str(rule.log_pattern), "fix": rule.fix}
        for rule in rules.every()
        if rule.log_pattern and rule.scope.engine in ("*", engine)
    ]
    return "[\n" + ",\n".join(json.dumps(one) for one in known) + "\n]\n"
