"""What a test asks of a module of ours is there: a name that was moved is found before the slow tests run."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from types import ModuleType

from sparkloom.base import repository


def _module(within: str, name: str) -> ModuleType | None:
    if within.split(".")[0] != "sparkloom" or not importlib.util.find_spec(within):
        return None
    found = getattr(importlib.import_module(within), name, None)
    if found is None and importlib.util.find_spec(f"{within}.{name}"):
        found = importlib.import_module(f"{within}.{name}")
    return found if isinstance(found, ModuleType) else None


def _bound(scope: ast.AST) -> dict[str, ModuleType | None]:
    """What its names are in this function, or in the file outside of all functions."""
    names: dict[str, ModuleType | None] = {}
    if isinstance(scope, ast.FunctionDef):
        names |= {arg.arg: None for arg in ast.walk(scope.args) if isinstance(arg, ast.arg)}
    for node in _own(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        elif isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name: _module(node.module or "", one.name) for one in node.names}
    return names


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _own(node)


def _missing(scope: ast.AST, names: dict[str, ModuleType | None]) -> Iterator[str]:
    names = names | _bound(scope)
    for node in _own(scope):
        if isinstance(node, ast.FunctionDef):
            yield from _missing(node, names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id)
            if module and not hasattr(module, node.attr):
                yield f"{node.lineno}: {module.__name__} has no {node.attr}"


def test_what_a_test_asks_of_a_module_is_there() -> None:
    tests = repository.CHECKOUT / "tests"
    said = [
        f"{file.relative_to(tests)}:{line}"
        for file in sorted(tests.rglob("*.py"))
        for line in _missing(ast.parse(file.read_text(encoding="utf-8")), {})
    ]
    assert not said
