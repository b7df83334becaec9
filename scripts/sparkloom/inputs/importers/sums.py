"""Whole-number arithmetic as a shell's `((...))` has it, of text in which nothing is left to replace."""

from __future__ import annotations

import ast


def computed(text: str) -> int | None:
    """What it comes to, a comparison as 0 or 1; None where the text is no sum."""
    try:
        return _computed(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _computed(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_computed(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = _computed(node.left), _computed(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div | ast.FloorDiv):
            return left // right
        if isinstance(node.op, ast.Mod):
            return left % right
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return int(not _computed(node.operand))
    if isinstance(node, ast.BoolOp):
        truths = [bool(_computed(value)) for value in node.values]
        return int(all(truths) if isinstance(node.op, ast.And) else any(truths))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return int(_compared(node.ops[0], _computed(node.left), _computed(node.comparators[0])))
    raise ValueError("no sum")


def _compared(sign: ast.cmpop, left: int, right: int) -> bool:
    signs = ((ast.Lt, left < right), (ast.LtE, left <= right), (ast.Gt, left > right), (ast.GtE, left >= right),
             (ast.Eq, left == right), (ast.NotEq, left != right))  # fmt: skip
    return next(said for kind, said in signs if isinstance(sign, kind))
