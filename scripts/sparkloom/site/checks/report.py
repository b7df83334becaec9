"""One report for all nodes together: a table of nodes and checks, then what must be mended, then what to know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sparkloom.site.checks import Row, failures, table

WORDS = {"error": "FAIL", "warning": "warn"}


def grid(nodes: Sequence[str], checks: Sequence[str], rows: Iterable[Row]) -> str:
    """Checks down, nodes across. A node that could not be read has `-` where nothing could be looked at."""
    worst: dict[tuple[str, str], str] = {}
    for row in rows:
        if worst.get((row.node, row.check)) != "FAIL":
            worst[row.node, row.check] = WORDS[row.severity]
    reach = ("connection", "sudo", "python")
    unread = {node for node in nodes for check in reach if worst.get((node, check)) == "FAIL"}
    width = max(map(len, ["", *checks])) + 2
    lines = ["".join([" " * width, *(f"{node}  " for node in nodes)]).rstrip()]
    for check in checks:
        cells = [
            worst.get((node, check), "-" if node in unread and check not in reach else "ok").ljust(len(node)) + "  "
            for node in nodes
        ]
        lines.append("".join([check.ljust(width), *cells]).rstrip())
    return "\n".join(lines)


def report(nodes: Sequence[str], checks: Sequence[str], rows: list[Row]) -> str:
    errors = failures(rows)
    warnings = [row for row in rows if row.severity == "warning"]
    if not rows:
        return f"all {len(checks)} checks hold on {len(nodes)} node(s)"
    parts = [f"{len(checks)} checks on {len(nodes)} node(s):\n{grid(nodes, checks, rows)}"]
    if errors:
        parts.append(f"must be mended ({len(errors)} on {len({r.node for r in errors})} node(s)):\n{table(errors)}")
    if warnings:
        parts.append(f"worth knowing ({len(warnings)}):\n{table(warnings)}")
    return "\n\n".join(parts)
