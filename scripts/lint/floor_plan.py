"""The floor plan as text, drawn from the imports of the code: `scripts/lint/floor_plan.py [--document | --sizes]`.

Rooms stand in the order that import-linter enforces (pyproject.toml), top to bottom, each with what its `__init__` says
of it and the rooms below that it imports from. `--document` prints docs/architecture.md with the plan as it is now.
Below them stands who leans on what says what a served group is.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import grimp

REPO = Path(__file__).resolve().parents[2]
DOCUMENT = REPO / "docs" / "architecture.md"
SOURCES = {"sparkloom": REPO / "scripts" / "sparkloom", "testbed": REPO / "testbed"}
# What a served group is: asked for, placed, seen, and the steps from the one to the other.
GROUPS = {
    "Wanted": "inputs.serving", "Placed": "launch.groups", "Observed": "onnode.now.groups",
    "site/groups": "site.groups",
}  # fmt: skip
LEAN = {
    "serve": ("site.tasks.groups",), "status": ("site.status",), "doctor": ("site.tasks.doctor", "site.doctor"),
    "waker": ("site.tasks.waker", "site.waker"), "router": ("site.tasks.router", "site.router"),
    "teardown": ("site.tasks.teardown",), "page": ("onnode.page",), "logs": ("site.logs",), "bench": ("measure.bench",),
}  # fmt: skip
BLOCK = re.compile(r"(<!-- floor plan of (\w+) -->\n```\n).*?(```\n<!-- end -->)", re.DOTALL)


def rooms(package: str) -> list[str]:
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return next(list(c["layers"]) for c in contracts if c.get("containers") == [package])


def purpose(package: str, room: str) -> str:
    folder = SOURCES[package] / room
    module = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return (ast.get_docstring(ast.parse(module.read_text())) or "").split("\n")[0].rstrip(".")


def size(package: str, room: str) -> tuple[int, int]:
    """Modules and lines."""
    folder = SOURCES[package] / room
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    return len(files), sum(len(file.read_text().splitlines()) for file in files)


def arrows(package: str) -> dict[str, list[str]]:
    """Room -> the rooms that it imports from."""
    graph, order = grimp.build_graph(package, cache_dir=None), rooms(package)
    of = {module: module.split(".")[1] for module in graph.modules if "." in module}
    used: dict[str, set[str]] = {room: set() for room in order}
    for module, room in of.items():
        for imported in graph.find_modules_directly_imported_by(module):
            if room in used and of.get(imported, room) != room:
                used[room].add(of[imported])
    return {room: sorted(used[room], key=order.index) for room in order}


def plan(package: str, sizes: bool = False) -> str:
    used = arrows(package)
    wide = max(map(len, used)) + 4
    lines = []
    for room, below in used.items():
        name = room if (SOURCES[package] / room).is_dir() else f"{room}.py"
        lines.append(f"{name:<{wide}}{purpose(package, room)}")
        lines.append(f"{'':<{wide}}  ▼ {' '.join(below)}" if below else f"{'':<{wide}}  ■ stands on nothing of ours")
        if sizes:
            modules, length = size(package, room)
            lines.append(f"{'':<{wide}}  {modules} modules, {length:,} lines")
    return "\n".join(lines) + "\n"


def leaning() -> dict[str, list[str]]:
    """Who -> what of a served group it takes from there, by itself or by what it imports."""
    graph = grimp.build_graph("sparkloom", cache_dir=None)

    def inside(place: str) -> set[str]:
        whole = f"sparkloom.{place}"
        return {module for module in graph.modules if module == whole or module.startswith(f"{whole}.")}

    def reach(places: tuple[str, ...], place: str) -> bool:
        mine = set().union(*map(inside, places))
        return any(graph.chain_exists(importer=one, imported=other) for one in mine for other in inside(place))

    return {who: [name for name, place in GROUPS.items() if reach(places, place)] for who, places in LEAN.items()}


def groups() -> str:
    lines = [
        f"{who:<10}" + "".join(f"{name if name in on else '':<13}" for name in GROUPS) for who, on in leaning().items()
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def document() -> str:
    return BLOCK.sub(lambda found: f"{found[1]}{plan(found[2])}{found[3]}", DOCUMENT.read_text())


def main() -> None:
    if "--document" in sys.argv[1:]:
        sys.stdout.write(document())
        return
    sizes = "--sizes" in sys.argv[1:]
    drawn = [f"{package}\n\n{plan(package, sizes)}" for package in SOURCES]
    sys.stdout.write("\n".join([*drawn, f"a served group, and who leans on it\n\n{groups()}"]))


if __name__ == "__main__":
    sys.path.insert(0, str(REPO))
    main()
