"""The plan on a terminal: fits or not, memory, limits, speed, what is launched; with --explain, why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkloom.cli.show import COLOURS, console, findings_list, number, table

if TYPE_CHECKING:
    from rich.console import Console


def plan(data: dict[str, Any], explain: bool) -> None:
    terminal = console()
    _headline(terminal, data)
    _memory(terminal, data, explain)
    _speed(terminal, data, explain)
    _launch(terminal, data["launch"], explain)
    findings_list(terminal, data["findings"])


def _headline(terminal: Console, data: dict[str, Any]) -> None:
    from rich.text import Text

    launch = data["launch"]
    fits = {True: ("fits", COLOURS["ok"]), False: ("does not fit", COLOURS["error"])}.get(
        data["fits"], ("fit unknown", COLOURS["warning"])
    )
    where = f"{launch['engine']} {launch['release']} on {len(launch['ranks'])} node(s) of '{data['cluster']}'"
    terminal.print(Text.assemble((data["profile"], "bold"), "  ", where, "  ", fits))
    for line in filter(None, (data.get("reason"), *data.get("notes", ()))):
        _line(terminal, f"  {line}")
    if data.get("change"):
        _line(terminal, f"  smallest change that fits: {data['change']}", "")


def _memory(terminal: Console, data: dict[str, Any], explain: bool) -> None:
    rows = table("memory and limits", "value>", *(("how", "from") if explain else ()))
    explained = data.get("explain", {})
    for section in ("memory", "limits"):
        for name, value in data[section].items():
            details = explained.get(f"{section}.{name}", {}) if explain else {}
            extra = (str(details.get("formula", "")), str(details.get("origin", ""))) if explain else ()
            rows.add_row(name.replace("_", " "), number(value, 2), *extra)
    terminal.print(rows)


def _speed(terminal: Console, data: dict[str, Any], explain: bool) -> None:
    speed = data["speed"]
    rows = table("tok/s at n requests", "1>", "4>", "8>")
    bounds = speed.get("bound") or {"1": speed.get("bound_n1_tok_s")}
    measured = speed.get("measured") or {}
    shown = (
        ("memory bound", bounds),
        ("expected ceiling", speed.get("ceiling") or {}),
        ("predicted", speed.get("predicted") or {}),
        ("measured", measured),
    )
    for name, values in shown:
        rows.add_row(name, *(number(values.get(n, values.get(f"n{n}"))) for n in ("1", "4", "8")))
    terminal.print(rows)
    for n in speed.get("impossible", ()):
        _line(terminal, f"  measured at n = {n} is beyond the memory bound: impossible", COLOURS["error"])
    for n in speed.get("above_ceiling", ()):
        text = f"  measured at n = {n} is above the expected ceiling: alike prompts wake few experts"
        _line(terminal, text, COLOURS["warning"])
    for name in ("bound", "ceiling", "predicted") if explain else ():
        details = data.get("explain", {}).get(f"speed.{name}.1", {})
        _line(terminal, f"  {name} (n = 1): {details.get('formula', '')} [{details.get('origin', '')}]")


def _launch(terminal: Console, launch: dict[str, Any], explain: bool) -> None:
    _line(terminal, f"image {launch['image']}")
    if not explain:
        for rank in launch["ranks"]:
            addresses = ", ".join(f"{rail} {address}" for rail, address in rank["addresses"].items()) or "no rails"
            _line(terminal, f"rank {rank['rank']} on {rank['node']}: {addresses}")
        _line(terminal, "`--explain` shows the origin of every flag, variable and number")
        return
    rows = table("flag / variable", "value", "from", "why")
    for setting in launch["settings"]:
        rows.add_row("--" + setting["name"].replace("_", "-"), str(setting["value"]), _origin(setting), setting["why"])
    for variable in launch["ranks"][0]["env"]:
        rows.add_row(variable["name"], variable["value"], _origin(variable), variable["why"])
    terminal.print(rows)


def _origin(value: dict[str, Any]) -> str:
    return str(value["where"] or value["origin"])


def _line(terminal: Console, text: str, style: str = "dim") -> None:
    """As it stands: nothing in it is markup."""
    terminal.print(text, style=style, markup=False, emoji=False)
