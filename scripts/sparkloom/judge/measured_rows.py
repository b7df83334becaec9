"""The measured rows: what was tried on four Sparks, how it ended, and how well the rules foresee it.

A row is one run: settings, outcome, speed. `view_of` makes of it what a rule may look at, and nothing else:
outcome, symptom, notes and speeds stay outside. `data/README.md` says where the rows come from; `comparable`
finds the runs nearest to a launch.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from sparkloom.base import document, json_text
from sparkloom.base.errors import InputError
from sparkloom.inputs import families, profile
from sparkloom.inputs.profile import FlagValue
from sparkloom.judge import rules
from sparkloom.launch.view import LaunchView

Row = Mapping[str, Any]
Prediction = Literal["ok", "fail", "unknown"]
DATA = Path(__file__).parent / "data"
SHIPPED = DATA / "measured_rows.jsonl"
PACKINGS = ("modelopt", "compressed-tensors", "fp8", "bf16", "gguf")
WORDS: dict[str, Any] = document.own((DATA / "row_words.yml").read_text())
COPIED: list[str] = WORDS["flags"]
ASIDE: list[str] = WORDS["aside"]
SPECULATIVE: dict[str, str] = WORDS["speculative"]
FIXES: dict[str, str] = WORDS["patches"]


@cache
def shipped() -> tuple[Row, ...]:
    """The rows inside the package."""
    return tuple(load(SHIPPED))


@cache
def _usual_engine() -> str:
    """Of a row that names none: the one that most rows are of."""
    return Counter(str(row["engine"]) for row in shipped()).most_common(1)[0][0]


def load(path: Path) -> list[Row]:
    """Rows of a JSON-lines file; InputError names the line that is none."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.single(str(path), f"cannot be read: {error}", rule="unreadable") from None
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = json_text.parse(line, str(path), "expected an object per line", number)
        if not isinstance(row, dict) or not isinstance(row.get("model"), str):
            raise InputError.single(
                str(path), "expected an object with at least a model per line", line=number, rule="wrong-type"
            )
        rows.append(row)
    return rows


@cache
def _profiled() -> dict[str, tuple[str, str, families.Facts]]:
    """Architecture, packing and facts by model id, from the shipped profiles; a broken profile is lint's to name."""
    known: dict[str, tuple[str, str, families.Facts]] = {}
    for name in profile.names():
        try:
            model = profile.load(name).profile.model
        except InputError:
            continue
        known[model.id] = (model.architecture, model.checkpoint.packing, families.facts_of(model))
    return known


@lru_cache(maxsize=512)
def _model(model_id: str, profiles: bool) -> tuple[str, str, families.Facts]:
    known = _profiled().get(model_id) if profiles else None
    if known:
        return known
    family = families.family(model_id)
    return family.architecture, "", family.facts


def view_of(row: Row, *, profiles: bool = True) -> LaunchView:
    """What rules may look at in a row: the settings, and what is known of the model. Never how the run ended.

    Without `profiles` the model is known by its name alone, as one that ships without a profile is.
    """
    model_id = str(row["model"])
    architecture, packing, facts = _model(model_id, profiles)
    packing = _packing(row) or packing
    if facts.size_gb is None and not facts.weights_gib:
        facts = replace(facts, size_gb=families.least_size_gb(model_id, packing))
    patches = str(row.get("patches") or "")
    without = {fix for word, fix in FIXES.items() if re.search(rf"(before|none)\b.*{re.escape(word)}", patches)}
    if re.search(r"^before commit", patches):  # the rows' repository brought its launch patches with its commits
        without.add("sglang#23467")
    return LaunchView(
        engine=str(row.get("engine") or _usual_engine()),
        release=str(row.get("engine_version") or ""),
        image=str(row.get("image") or ""),
        carries=frozenset(fix for word, fix in FIXES.items() if word in patches) - without,
        lacks=frozenset(without),
        model_id=model_id,
        architecture=architecture,
        packing=packing,
        facts=facts,
        nodes=_count(row.get("nnodes")),
        tp=_count(row.get("tp")),
        pp=_count(row.get("pp")),
        dp=_count(row.get("dp")),
        ep=_count(row.get("ep")),
        flags=_flags(row),
        partial=True,
    )


def _count(value: object) -> int:
    value = _plain(value)
    return value if isinstance(value, int) and value > 0 else 1


def _plain(value: Any) -> Any:
    """A value as a launch would hold it: a log's table writes numbers and switches as words now and then."""
    if not isinstance(value, str):
        return value
    word = value.strip()
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    if re.fullmatch(r"-?\d{1,12}", word):
        return int(word)
    return float(word) if re.fullmatch(r"-?\d{1,12}\.\d{1,12}", word) else word


def _packing(row: Row) -> str:
    """How the weights are packed: the flag says it, else the name does."""
    quantization = str(row.get("quantization") or "")
    for packing in PACKINGS:
        if quantization.startswith(packing):
            return packing
    name = str(row["model"]).lower()
    if name.startswith("redhatai/"):  # packs with llm-compressor, whatever the precision
        return "compressed-tensors" if re.search(r"nvfp4|fp8|w\d+a\d+", name) else ""
    if name.endswith("-fp8"):
        return "fp8"
    return "modelopt" if name.startswith("nvidia/") and re.search(r"-(nv)?fp4", name) else ""


def _flags(row: Row) -> dict[str, FlagValue]:
    aside = row.get("extra")
    extra: Row = aside if isinstance(aside, dict) else {}
    flags: dict[str, FlagValue] = {name: row.get(name) for name in COPIED}
    flags |= {name: extra.get(name) for name in ASIDE}
    if extra.get("json_model_override"):
        flags["json_model_override_args"] = str(extra["json_model_override"])
    speculative = row.get("speculative")
    if isinstance(speculative, dict):
        flags |= {flag: speculative.get(name) for name, flag in SPECULATIVE.items()}
    return {name: _plain(value) for name, value in flags.items() if value is not None}


def predict(view: LaunchView) -> tuple[Prediction, list[str]]:
    """Fails when an error rule that speaks about starting and serving fires.

    `unknown` when nothing fires and the settings that most failures hang on (attention backend, and MoE runner
    or graph mode) are not given: silence about an unstated launch is no forecast.
    """
    fired = [rule.id for rule in rules.fired(view) if rule.severity == "error" and rule.predicts_failure]
    if fired:
        return "fail", fired
    stated = view.attention and ("disable_cuda_graph" in view.flags or view.moe_runner)
    return ("ok" if stated else "unknown"), []


class Tally(Counter[tuple[Prediction, bool]]):
    """How often each was predicted of runs that failed, and of those that did not; a failure is the positive case."""

    @property
    def failures(self) -> int:
        return sum(number for (_, failed), number in self.items() if failed)

    def figures(self) -> dict[str, Any]:
        """`recall` is the share of all failures that were foreseen: one answered with `unknown` is not."""
        tp, fp, failures = self["fail", True], self["fail", False], self.failures
        return {
            "rows": self.total(),
            "tp": tp,
            "fp": fp,
            "fn": self["ok", True],
            "tn": self["ok", False],
            "unknown": self["unknown", True] + self["unknown", False],
            "precision": round(tp / (tp + fp), 4) if tp + fp else None,
            "recall": round(tp / failures, 4) if failures else None,
        }


def failed(row: Row) -> bool | None:
    """Whether a run failed; None for rows that were never run, or that do not say.

    Outcome `unknown` on a row that ran is a failure: each such row records a crash whose stage was not logged.
    """
    if row.get("ran") is False or row.get("outcome") is None:
        return None
    return bool(row["outcome"] != "ok")


def score(path: str | Path) -> dict[str, Any]:
    """How well the rules foresee a file of rows, as the command line prints it.

    Every row is predicted; only rows that ran and say how it ended are counted.
    """
    tally, per_row = Tally(), []
    for number, row in enumerate(load(Path(path)), 1):
        predicted, fired = predict(view_of(row))
        per_row.append({"id": row.get("id", number), "predicted": predicted, "rules": fired})
        outcome = failed(row)
        if outcome is not None:
            tally[predicted, outcome] += 1
    return {**tally.figures(), "per_row": per_row}
