"""A cell of a matrix becomes evidence: an entry in its profile, and a row in the format of the measured rows.

Failures too: what does not start is worth as much to the next person as what is fast.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from textwrap import indent
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from sparkloom import case
from sparkloom.base import files
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile
from sparkloom.inputs.profile import Numbers
from sparkloom.judge import measured_rows
from sparkloom.launch.resolve import Launch
from sparkloom.measure.matrix import spec as specs
from sparkloom.measure.matrix.spec import CellResult, Spec

OUTCOMES = {"bench_crash": "runtime_crash"}  # the other statuses are outcomes by the same name
ENDS = {"startup_crash": "does not start", "bench_crash": "ends while it serves", "hang": "hangs",
         "garbage": "serves garbage", "partial": "loses requests"}  # fmt: skip


def add(
    spec_path: Path, cell: str, *, results: Path | None = None, to: str | None = None, rows: Path | None = None
) -> dict[str, Any]:
    """Writes both; what is there already is refused, so that no run counts twice."""
    spec, _ = specs.load(spec_path)
    folder = results or spec_path.parent / spec.name
    result = _result(folder, cell)
    ran = folder / "profiles" / f"{spec.name}-{result.id}.yml"
    judged = case.judge(str(ran) if ran.exists() else spec.profile, spec.inventory,
                    overrides=() if ran.exists() else specs.overrides(result.settings))  # fmt: skip
    row, entry = as_row(spec, result, judged.launch), as_entry(spec, result, judged.launch)
    target = profile.find(to or spec.profile)
    file = rows or folder / "rows.jsonl"
    text = _with_entry(target, entry)
    _append(file, row)
    files.write(target.resolve(), text)
    return {"profile": str(target), "rows": str(file), "row": row, "evidence": entry}


def _result(folder: Path, cell: str) -> CellResult:
    known = specs.read_results(folder) if folder.is_dir() else {}
    meant = [name for name in known if name.startswith(cell)]
    if len(meant) == 1:
        return known[meant[0]]
    message = f"{'no' if not meant else 'more than one'} finished cell '{cell}' in {folder}"
    raise InputError.single("CELL", f"{message}; known: {', '.join(sorted(known)) or 'none'}", rule="no-such-cell")


def as_row(spec: Spec, result: CellResult, launch: Launch) -> dict[str, Any]:
    """The run under the names of the measured rows; what is not known is left out."""
    view, known = launch.view(), result.provenance
    speculative = {
        name: view.flags.get(flag) for name, flag in measured_rows.SPECULATIVE.items() if view.flags.get(flag)
    }
    row = {
        "id": f"{spec.name}#{result.id}",
        "model": view.model_id,
        "engine": view.engine,
        "image": _text(known.get("image_digest")) or view.image,
        "engine_version": view.release,
        "version_exact": bool(re.fullmatch(r"[\d.]+", view.release)),
        "nnodes": view.nodes, "tp": view.tp, "pp": view.pp, "ep": view.ep, "dp": view.dp if view.dp > 1 else None,
        **{name: view.flags.get(name) for name in measured_rows.COPIED},
        "speculative": speculative or None,
        "transport": _verdict(known.get("transport")),
        "patches": ", ".join(launch.profile.profile.engine.patches) or None,
        "outcome": OUTCOMES.get(result.status, result.status),
        "symptom": _symptom(result),
        "note": result.note or None,
        **_numbers(result),
        "ran": True,
        "extra": _known({
            **{name: view.flags.get(name) for name in measured_rows.ASIDE},
            "driver": _driver(known.get("driver")),
            "matched_rules": result.matched_rules or None,
            "source": f"sparkloom matrix, {result.started or 'no date'}",
        }),
    }  # fmt: skip
    row.pop("accept_length", None)
    return _known(row)


def as_entry(spec: Spec, result: CellResult, launch: Launch) -> dict[str, Any]:
    """The run as a profile's evidence."""
    loaded = launch.profile.profile
    varied = {name.removeprefix("launch."): value for name, value in result.settings.items() if value is not None}
    engine = {name for name in varied if name.startswith("engine.")}
    shown = ", ".join(f"{name} {value}" for name, value in varied.items())
    symptom = _symptom(result) or result.note
    fine = [f"{level.ok} of {level.requests} requests at n={level.concurrency}" for level in result.levels[-1:]]
    what = f"serves {fine[0]}, coherent" if result.status == "ok" and fine else f"{ENDS[result.status]}: {symptom}"
    return _known({
        "claim": f"{what}; {shown}",
        "status": "measured",
        "source": f"sparkloom matrix {spec.name}, cell {result.id}",
        "date": (result.started or "")[:10] or None,
        "release": launch.release if launch.release != loaded.engine.release else None,
        "image": _text(result.provenance.get("image_digest")),
        "config": {
            "parallel": loaded.launch.parallel.as_dict(),
            **{name: value for name, value in loaded.launch.flags.items() if value is not None},
            **{name: value for name, value in varied.items() if name.startswith("env.") and name not in engine},
        },
        "numbers": _numbers(result) if result.status == "ok" else None,
    })  # fmt: skip


def _numbers(result: CellResult) -> dict[str, float]:
    rates = {f"n{level.concurrency}": level.speed for level in result.levels}
    last = next((level for level in result.levels if level.concurrency == 8), None)
    if last and last.ttft_ms.get("p50"):
        rates["ttft_n8"] = (last.ttft_ms["p50"] or 0.0) / 1000
    if result.levels and result.levels[-1].accept_length:
        rates["accept_length"] = result.levels[-1].accept_length
    return {name: round(value, 2) for name, value in rates.items() if value and name in Numbers.model_fields}


def _symptom(result: CellResult) -> str | None:
    if result.status == "ok":
        return None
    last = result.trace_tail.splitlines()[-1:] if result.status in ("startup_crash", "bench_crash") else []
    lines = [line.strip() for line in result.telling or last if line.strip()]
    return lines[-1][:200] if lines else result.note or None


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and not value.startswith("unknown") else None


def _driver(value: Any) -> str | None:
    return ", ".join(sorted(set(map(str, value.values())))) if isinstance(value, dict) else _text(value)


def _verdict(value: Any) -> str | None:
    return str(value["verdict"]) if isinstance(value, dict) and "verdict" in value else None


def _append(file: Path, row: Mapping[str, Any]) -> None:
    if file.exists() and any(known.get("id") == row["id"] for known in measured_rows.load(file)):
        raise InputError.single(str(file), f"holds the row {row['id']} already", rule="twice")
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row, ensure_ascii=False) + "\n")


def _with_entry(file: Path, entry: Mapping[str, Any]) -> str:
    """The profile's text with one more piece of evidence, everything else in it untouched."""
    text = file.read_text(encoding="utf-8")
    if entry["source"] in text:
        raise InputError.single(str(file), f"holds evidence from '{entry['source']}' already", rule="twice")
    made = _inserted(text.rstrip("\n") + "\n", entry)
    part = file.with_name(f".{file.name}.part")
    part.write_text(made, encoding="utf-8")
    try:
        profile.load(f"./{part}" if "/" not in str(part) else part)  # refuses a text that is no profile any more
    finally:
        part.unlink()
    return made


def _inserted(text: str, entry: Mapping[str, Any]) -> str:
    """Only the entry is dumped. To dump the whole file would join flow mappings of several lines, and empty `null`."""
    known = {key.value: (key, value) for key, value in YAML().compose(text).value}
    if "evidence" not in known:
        return f"{text}\nevidence:\n{_dumped(entry, 2)}"
    key, evidence = known["evidence"]
    end = evidence.end_mark.index
    if evidence.value and evidence.flow_style:
        end = evidence.value[-1].end_mark.index
        return f"{text[:end]}, {_dumped(entry, 0, flow=True)}{text[end:]}"
    column, line = evidence.start_mark.column, evidence.end_mark.line
    if not evidence.value:  # []
        column, line = 2, key.end_mark.line + 1
        text = text[: text.index(":", key.end_mark.index) + 1] + text[end:]
    lines = text.splitlines(keepends=True)
    while line > key.end_mark.line + 1 and _follows(lines[line - 1], column):
        line -= 1
    return "".join([*lines[:line], _dumped(entry, column), *lines[line:]])


def _follows(line: str, column: int) -> bool:
    """Blank, or a comment that is not set in below the list's dashes: it belongs to what comes next."""
    words = line.lstrip(" ")
    return not words.strip() or (words.startswith("#") and len(line) - len(words) <= column)


def _dumped(entry: Mapping[str, Any], column: int, *, flow: bool = False) -> str:
    """As an item of a list at this column; tables in braces, as the shipped profiles have them."""
    item = CommentedMap({k: CommentedMap(v) if isinstance(v, Mapping) else v for k, v in entry.items()})
    for table in [item] if flow else [value for value in item.values() if isinstance(value, CommentedMap)]:
        table.fa.set_flow_style()
    yaml = YAML()
    yaml.width, yaml.version = 10_000 if flow else 110, (1, 1)  # the dialect that profiles are read in
    out = StringIO()
    yaml.dump(item if flow else [item], out)
    text = out.getvalue().split("---", 1)[1].lstrip()
    return text.strip() if flow else indent(text, " " * column)
