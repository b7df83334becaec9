"""Rows in columns: the one table of every command. A window gets the columns that it has room for, a pipe all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from sparkloom.base.visible import visible

GAP = "  "


def window(stream: Any) -> int:
    """Columns of the window that it is shown in; none for a pipe, or where the terminal does not say."""
    return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0


def lines(names: Sequence[str], rows: Iterable[Sequence[str]], wide: int = 0, dropped: Sequence[str] = ()) -> list[str]:
    """A line for each row, no wider than `wide`: it loses `dropped` one by one, in that order.

    A name that ends with `>` is flush right. Rows that have no room even then are told in words, a few lines each.
    """
    told = [[" ".join(visible(cell).split()) for cell in row] for row in rows]
    for count in range(len(dropped) + 1):
        kept = [n for n, name in enumerate(names) if name not in dropped[:count]]
        aligned = _aligned([names[n] for n in kept], [[row[n] for n in kept] for row in told])
        if not wide or max(map(columns, aligned)) <= wide:
            return aligned
    return [line for row in told for line in _in_words(names, row, wide)]


def _aligned(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    whole = [[name.removesuffix(">") for name in names], *rows]
    widths = [max(map(columns, column)) for column in zip(*whole, strict=True)]
    result = []
    for row in whole:
        cells = []
        for name, cell, width in zip(names, row, widths, strict=True):
            space = " " * (width - columns(cell))
            cells.append(space + cell if name.endswith(">") else cell + space)
        result.append(GAP.join(cells).rstrip())
    return result


def _in_words(names: Sequence[str], row: Sequence[str], wide: int) -> list[str]:
    first, *others = zip(names, row, strict=True)
    told = ", ".join(f"{name.removesuffix('>')} {cell}" for name, cell in others if cell not in ("", "-"))
    return [*broken(first[1], wide), *broken(GAP + told, wide, GAP)] if told else broken(first[1], wide)


def broken(text: str, wide: int, indent: str = "") -> list[str]:
    """Between words, with a hanging indent."""
    if text.isascii():
        return wrap(text, wide, subsequent_indent=indent, break_on_hyphens=False)
    from rich.console import Console  # textwrap counts letters, and one of Chinese takes two columns
    from rich.text import Text

    first, *rest = (line.plain.rstrip() for line in Text(text).wrap(Console(), wide - len(indent)))
    return [first, *(indent + line for line in rest)]


def columns(text: str) -> int:
    """Columns on a terminal: a wide letter takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
