"""The supervisor's files as they lie in a pod: its own package, and the files of ours that it shares.

`python3 /sparkloom/rank` finds `__main__.py` there and the package beside it. One copy of each fact: what judges a
log here judges it there.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from sparkloom import rules

HERE = Path(__file__).resolve().parents[1]
SHARED = (
    "__init__.py",
    "errors.py",
    "loglines.py",
    "nccl_lines.py",
    "nccl_log.py",
    "nccl_why.py",
    "smoke.py",
    "store/__init__.py",
    "store/node/__init__.py",
    "store/node/check.py",
    "store/node/layout.py",
)


@cache
def files() -> dict[str, str]:
    """Path below the program's folder -> text."""
    own = {f"rank/{path.name}": path for path in sorted((HERE / "rank").glob("*.py")) if path.name != "__main__.py"}
    shared = {name: HERE / name for name in SHARED}
    package = {f"sparkloom/{name}": path.read_text() for name, path in {**shared, **own}.items()}
    return {"__main__.py": (HERE / "rank/__main__.py").read_text(), **package}


@cache
def patterns(engine: str) -> str:
    """What the rules know of an engine's last words, as JSON."""
    known = [
        {"rule": rule.id, "severity": rule.severity, "pattern": str(rule.log_pattern), "fix": rule.fix}
        for rule in rules.every()
        if rule.log_pattern and rule.scope.engine in ("*", engine)
    ]
    return "[\n" + ",\n".join(json.dumps(one) for one in known) + "\n]\n"
