"""An engine is one folder: no other room names one. Rules may (a trap is one engine's), and data, and prose."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sparkloom.launch import engines
from tests.places import REPO

HOUSE = REPO / "scripts" / "sparkloom"
# A fix is named after the repository that took it: "sglang#27998" is a source, no engine that is asked for.
NAMED = re.compile(rf"(?<![a-zA-Z])({'|'.join(engines.names())})(?![a-zA-Z#])")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name and text in a program, less what only people read."""
    prose = {id(node.body[0].value) for node in ast.walk(tree)
             if isinstance(node, DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def own(path: Path) -> bool:
    """In an engine's folder, or a rule."""
    parts = path.relative_to(HOUSE).parts
    return parts[:2] == ("judge", "rules") or (parts[:2] == ("launch", "engines") and parts[2] in engines.names())


def test_no_other_room_names_an_engine() -> None:
    files = [path for path in HOUSE.rglob("*.py") if not own(path)]
    assert len(files) > 200
    places = [f"{path.relative_to(REPO)}:{line}: {text[:80]}" for path in files
              for line, text in words(ast.parse(path.read_text())) if NAMED.search(text)]  # fmt: skip
    assert places == []


def test_the_door_knows_every_folder() -> None:
    folders = sorted(path.parent.name for path in (HOUSE / "launch" / "engines").glob("*/__init__.py"))
    assert list(engines.names()) == folders
    assert all(engines.get(name).name == name for name in folders)
