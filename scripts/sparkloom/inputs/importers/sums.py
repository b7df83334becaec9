"""Whole-number arithmetic as a shell's `((...))` has it, of text in which nothing is left to replace."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

_SIGNS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


def computed(text: str) -> int | None:
    """What it comes to, a comparison as 0 or 1; None where the text is no sum."""
    try:
        return _computed(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _computed(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_computed(inner)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return int(not _computed(inner))
        case ast.BinOp(left=left, op=sign, right=right) | ast.Compare(left=left, ops=[sign], comparators=[right]):
            return int(_SIGNS[type(sign)](_computed(left), _computed(right)))
        case ast.BoolOp(op=sign, values=values):
            truths = [bool(_computed(value)) for value in values]
            return int(all(truths) if isinstance(sign, ast.And) else any(truths))
    raise ValueError("no sum")
