"""How results look on a terminal. Data comes in, words go out; nothing is decided here."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkloom.base.errors import InputError, Problem

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sparkloom.base.finding import Finding
    from sparkloom.cli.linting import Result

COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan", "ok": "green"}


def out(data: Any, as_json: bool, human: Callable[[Any], object]) -> None:
    """JSON on request, else the human form (which prints, or returns text to print)."""
    if as_json:
        plain = not (sys.stdout.encoding or "").lower().startswith("utf")
        say(json.dumps(data, indent=2, ensure_ascii=plain) + "\n")
        return
    text = human(data)
    if isinstance(text, str):
        say(text if text.endswith("\n") else text + "\n")


def say(text: str) -> None:
    """To standard output. A reader who has seen enough (`| head`) is no failure: an error without a number passes
    through the command line library, which would exit with 1."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise BrokenPipeError from None


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    class Pipe(Console):
        """As `say`: rich would exit with 1."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    # a file or a pipe has no width: tables keep their rows whole there
    wide = None if (sys.stderr if stderr else sys.stdout).isatty() else 200
    return Pipe(stderr=stderr, highlight=False, width=wide)


def table(*columns: str, title: str | None = None) -> Table:
    from rich.table import Table

    result = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        result.add_column(
            column.removesuffix(">"), justify="right" if column.endswith(">") else "left", overflow="fold"
        )
    return result


def number(value: Any, digits: int = 1) -> str:
    if value is None:
        return "-"
    return f"{value:,.{digits}f}" if isinstance(value, float) else str(value)


def profiles(listing: list[dict[str, Any]]) -> None:
    rows = table("profile", "engine", "nodes>", "tp>", "ep>", "status", "n1>", "n4>", "n8>")
    rows.columns[0].no_wrap = True
    for item in listing:
        engine = f"{item['engine']} {item['release']}"
        speeds = [number(item[key]) for key in ("n1", "n4", "n8")]
        rows.add_row(
            item["name"], engine, str(item["nodes"]), str(item["tp"]), str(item["ep"]), item["status"], *speeds
        )
    console().print(rows)
    console().print(
        "\ntok/s at 1, 4 and 8 requests at once, from each profile's best evidence; `sparkloom plan NAME` explains one"
    )


def findings(result: Result) -> None:
    terminal = console()
    count = findings_list(terminal, result.findings)
    terminal.print(f"{len(result.profiles)} profile(s): {count}", style="bold")


def findings_list(terminal: Console, listed: list[dict[str, Any]]) -> str:
    """Prints findings, worst first, and returns how many of each severity there are."""
    for finding in listed:
        _finding(terminal, finding)
    counts = {severity: sum(f["severity"] == severity for f in listed) for severity in ("error", "warning", "info")}
    return ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "no findings"


def _finding(terminal: Console, finding: dict[str, Any]) -> None:
    from rich.text import Text

    head = Text.assemble(
        (finding["where"], "dim"),
        " ",
        (finding["severity"], COLOURS[finding["severity"]]),
        f" {finding['message']} ",
        (f"[{finding['rule']}]", "dim"),
    )
    # soft_wrap: a finding is one line for grep, and as wide as the window for a person
    terminal.print(head, soft_wrap=True)
    if finding["fix"]:
        terminal.print(Text(f"    fix: {finding['fix']}"), soft_wrap=True)
    for source in finding["evidence"][:2]:
        terminal.print(Text(f"    known from: {source}", style="dim"), soft_wrap=True)


def problems(listed: Iterable[Problem]) -> None:
    """What is unusable, on stderr: `file:line:column: message [rule]`, as compilers say it."""
    sys.stderr.write("".join(f"{problem}\n" for problem in listed))


def refusal(errors: list[Finding]) -> None:
    terminal = console(stderr=True)
    for finding in errors:
        _finding(terminal, finding.as_dict())
    terminal.print(
        f"refused: {len(errors)} error finding(s); change the profile, or --force to render all the same", style="bold"
    )


def overridden(errors: list[Finding]) -> None:
    """Names on stderr what --force overrode, so that it cannot pass unseen."""
    for finding in errors:
        sys.stderr.write(f"forced past {finding.rule}: {finding.message}\n")


def command(words: list[str]) -> str:
    """One flag per line, ready to paste."""
    lines, current = [], ""
    for word in words:
        if word.startswith("--"):
            lines.append(current)
            current = "  " + shlex.quote(word)
        else:
            current = (
                f"{current} {shlex.quote(word)}".lstrip()
                if not current.startswith("  ")
                else f"{current} {shlex.quote(word)}"
            )
    return " \\\n".join([*lines, current])


def environment(variables: dict[str, str]) -> str:
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())


def fabric(plan: dict[str, Any]) -> None:
    rows = table("node", "rail", "PF", "PCI", "VF>", "interface", "MAC", "address", "MTU>", "HCA")
    for node in plan["nodes"]:
        for end in node["endpoints"]:
            address = end["address"] if "/" in end["address"] else f"{end['address']}/{end['prefix']}"
            rows.add_row(
                node["name"],
                end["rail"],
                end["pf"],
                end["pci"],
                str(end["vf"]),
                end["interface"],
                end["mac"],
                address,
                str(end["mtu"]),
                end["hca"],
            )
    console().print(rows)
    console().print("\nnetwork attachments: " + ", ".join(nad["name"] for nad in plan["nads"]))


def write(text: str, folder: Path | None, name: str) -> None:
    """To standard output, or to <folder>/<name>.yaml in one step: a reader never sees half a file."""
    if folder is None:
        say(text)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=folder, prefix=f".{name}-", delete=False, encoding="utf-8"
        ) as temporary:
            temporary.write(text)
        path = Path(temporary.name).rename(folder / f"{name}.yaml")
        path.chmod(0o644)
    except OSError as error:
        raise InputError.single(str(folder), f"cannot write here: {error.strerror}", rule="unwritable") from None
    sys.stderr.write(f"wrote {path}\n")


def verdict(data: dict[str, Any]) -> None:
    colour = COLOURS["ok" if data["verdict"] == "ok" else "error"]
    details = ", ".join(f"{key} {value}" for key, value in data.items() if key != "verdict" and value is not None)
    console().print(f"[{colour}]{data['verdict']}[/] {details}")


def nccl(data: dict[str, Any]) -> None:
    rows = table("rank", "transport", "HCAs", "NCCL", "why")
    for rank in data["ranks"]:
        hcas = ", ".join(str(hca) for hca in rank.get("hcas") or []) or "-"
        rows.add_row(
            str(rank.get("rank", "?")),
            str(rank.get("transport", "?")),
            hcas,
            str(rank.get("nccl_version") or "-"),
            str(rank.get("why") or ""),
        )
    console().print(rows)
    good = data["verdict"] == "roce"
    console().print(f"\nverdict: [{COLOURS['ok' if good else 'error']}]{data['verdict']}[/] {data.get('why') or ''}")


def diagnosis(data: dict[str, Any]) -> None:
    terminal = console()
    for match in data["matches"]:
        terminal.print(f"[bold red]{match['rule']}[/]: {match['why']}")
        terminal.print(f"    seen: {match.get('line', '')}", markup=False, style="dim")
        terminal.print(f"    fix: {match['fix']}", markup=False)
    if not data["matches"]:
        terminal.print("no known cause; the most telling lines:")
        for line in data.get("lines", []):
            terminal.print(f"    {line}", markup=False)


def rows(data: list[dict[str, Any]]) -> None:
    result = table("outcome", "tp>", "ep>", "release", "moe / attention / fp4 gemm", "n1>", "n4>", "n8>", "id")
    for row in data:
        kernels = " / ".join(
            str(row.get(key) or "-") for key in ("moe_runner_backend", "attention_backend", "fp4_gemm_backend")
        )
        speeds = [number(row.get(key)) for key in ("n1", "n4", "n8")]
        result.add_row(
            row["outcome"],
            str(row["tp"]),
            str(row["ep"]),
            str(row.get("engine_version") or "-"),
            kernels,
            *speeds,
            row["id"],
        )
    console().print(result)


def score(data: dict[str, Any]) -> str:
    counts = ", ".join(f"{key} {data[key]}" for key in ("rows", "tp", "fp", "fn", "tn", "unknown"))
    quality = f"precision {number(data['precision'], 3)}, recall {number(data['recall'], 3)}"
    return f"{counts}\n{quality} (positive = the configuration fails)"


def report(data: dict[str, Any]) -> str:
    return "\n".join(f"wrote {path}" for path in data["files"])


def matrix(data: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in sorted(data["counts"].items()))
    winner = f"the fastest of those with everything fine: {data['winner']}" if data["winner"] else "no cell was fine"
    stopped = f"stopped by {data['stopped']}: the same command goes on from here" if data["stopped"] else ""
    return "\n".join(line for line in (f"{data['cells']} cells: {counts}", winner, report(data), stopped) if line)


def added(data: dict[str, Any]) -> str:
    return f"{data['profile']}: {data['evidence']['claim']}\n{data['rows']}: {data['row']['id']}"


def allreduce(data: dict[str, Any]) -> str:
    rows = [f"{row['bytes']:>13,} bytes {row['us']:>12,.1f} us {row['busbw_gb_s']:>9.2f} GB/s" for row in data["sizes"]]
    return "\n".join([*rows, f"{data['verdict']}: {data['why']}"])


def complain(text: str) -> None:
    """To standard error, at once."""
    sys.stderr.write(text)
    sys.stderr.flush()


def plan(data: dict[str, Any], explain: bool) -> None:
    """Filled by show_plan: the longest view has a file of its own."""
    from sparkloom.cli import show_plan

    show_plan.plan(data, explain)
