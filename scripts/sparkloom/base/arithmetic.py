"""Whole numbers of text, added and compared in Python's order; `/` leaves no rest."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import lru_cache

_SIGNS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


@lru_cache
def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def value(node: ast.expr, named: Callable[[str], int] | None = None) -> int:
    """Of a parsed sum; `named` says what a word is worth. ValueError or KeyError where it is none."""
    match node:
        case ast.Name(id=word) if named:
            return named(word)
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -value(inner, named)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return int(not value(inner, named))
        case ast.BinOp(left=left, op=sign, right=right) | ast.Compare(left=left, ops=[sign], comparators=[right]):
            return int(_SIGNS[type(sign)](value(left, named), value(right, named)))
        case ast.BoolOp(op=sign, values=values):
            truths = [bool(value(one, named)) for one in values]
            return int(all(truths) if isinstance(sign, ast.And) else any(truths))
    raise ValueError("no sum")
