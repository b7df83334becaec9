"""sparkrun's recipes, version 2, and those of spark-vllm-docker, which are its version 1.

What the format means is read from sparkrun's documents and code (spark-arena/sparkrun, RECIPES.md, 2026-07) and from
spark-vllm-docker's recipes (2026-08): a command is a template whose `{key}` come from `defaults`; without a command the
runtime makes one of the keys that it knows; nodes, ranks and addresses are added by whoever runs it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sparkloom.base.document import Document
from sparkloom.inputs.importers import containers, vocabulary
from sparkloom.inputs.importers.found import Found, Leftover, Leftovers, Programs, Started, as_text, short, variables
from sparkloom.inputs.importers.shell import Reader
from sparkloom.inputs.importers.starts import Scope

KEPT = "sparkloom"  # in metadata: what `sparkloom export` writes beside the command
SWITCHES = {"trust_remote_code", "enforce_eager", "enable_prefix_caching", "flash_attn", "cont_batching", "jinja"}
READ = {"recipe_version", "sparkrun_version", "name", "description", "model", "model_revision", "runtime", "container",
        "min_nodes", "max_nodes", "cluster_only", "solo_only", "defaults", "env", "command", "metadata"}  # fmt: skip
TOLD = {"description", "maintainer", "category", "name", "tags", KEPT}  # of metadata: words about it, no facts
PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]*)\}")


def fits(data: dict[str, Any]) -> bool:
    """Its model may stand in the command alone, where a version says that it is a recipe."""
    placed = "container" in data or "runtime" in data
    if "model" not in data:
        return placed and "recipe_version" in data and "command" in data
    return placed and ("command" in data or "defaults" in data or "recipe_version" in data)


def read(document: Document, programs: Programs) -> Found:
    data = document.data
    for key, kind in (("defaults", dict), ("metadata", dict), ("command", str)):
        if data.get(key) is not None and not isinstance(data[key], kind):
            said = f"{key}: expected {_KINDS[kind]}, found {type(data[key]).__name__}"
            raise document.refusal((key,), said, "wrong-type")
    version = str(data.get("recipe_version", data.get("sparkrun_version", "2")))
    form = vocabulary.FIRST if version == "1" else "sparkrun recipe"
    defaults = {str(key): value for key, value in (data.get("defaults") or {}).items()}
    reader = Reader(programs, document.file)
    leftover = list(_others(data))
    text = str(data.get("command") or "").strip()
    line = document.position(("command",))[1] + 1
    if text:
        used = _template(text, defaults, str(data.get("model") or ""), version, reader, line)
        leftover += _unused(defaults, used)
    else:
        leftover += _generated(data, defaults, reader, f"{document.file}:{document.position(())[1]}")
    if not reader.starts:
        said = f"no engine's program is started by `{short(text)}` (docs/add-a-profile.md lists them)"
        raise document.refusal(("command",), said, "no-engine")
    files = _files(data.get("pre_exec"), programs, document.file)
    for start in reader.starts:
        start.image, start.files = start.image or str(data.get("container") or ""), {**files, **start.files}
        for said in variables(data.get("env")):
            start.leftover += containers.environment(start.env, said)
    metadata = data.get("metadata") or {}
    least, most = _nodes(data)
    kept = metadata.get(KEPT)
    return Found(
        f"{form}, version {version}",
        document.file,
        reader.starts,
        model=str(data.get("model") or ""),
        revision=str(data.get("model_revision") or ""),
        least_nodes=least,
        most_nodes=most,
        summary=short(str(data.get("description") or metadata.get("description") or data.get("name") or "")),
        leftover=Leftovers([*leftover, *reader.leftover]),
        kept=dict(kept) if isinstance(kept, dict) else {},
    )


_KINDS = {dict: "a mapping", str: "text"}


def _files(hooks: object, programs: Programs, file: str) -> dict[str, str]:
    """What commands before the engine's write with a here-document; they are named as hooks all the same."""
    variables = Scope()
    for hook in hooks if isinstance(hooks, list) else []:
        if isinstance(hook, str) and "<<" in hook:
            Reader(programs, file).script(hook, variables)
    return variables.files


def _nodes(data: dict[str, Any]) -> tuple[int, int | None]:
    least, most = _whole(data.get("min_nodes")) or 1, _whole(data.get("max_nodes"))
    if data.get("cluster_only"):
        least = max(least, 2)
    return (1, 1) if data.get("solo_only") or data.get("mode") == "solo" else (least, most)


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | str) and re.fullmatch("[0-9]{1,9}", str(value)) else None


def _others(data: dict[str, Any]) -> list[Leftover]:
    """Everything beside the command, by name."""
    found: list[Leftover] = []
    for key, value in data.items():
        if key == "executor_config" and isinstance(value, dict):
            usual = vocabulary.OPTIONS["privileged"]
            why_not = {k: vocabulary.OPTIONS.get(k.replace("_", "-"), usual) for k in value}
            found += [Leftover(f"executor_config: {k} {short(str(v))}", why_not[k]) for k, v in value.items()]
        elif key == "metadata" and isinstance(value, dict):
            why = "what sparkrun estimates memory from; Sparkloom takes a model's facts from its own files"
            found += [Leftover(f"metadata: {k} {short(str(v))}", why) for k, v in value.items() if k not in TOLD]
        elif key not in READ and value not in (None, [], {}, "", False):
            why = vocabulary.RECIPE.get(key) or _of_unknown(key)
            items = value if isinstance(value, list) else [value]
            found += [Leftover(f"{key}: {short(as_text(item))}", why) for item in items]
    return found


def _of_unknown(key: str) -> str:
    return vocabulary.OPTIONS["volume"] if "volume" in key else "a key of the recipe that is not known here"


def _template(text: str, defaults: dict[str, Any], model: str, version: str, reader: Reader, line: int) -> set[str]:
    """The command with its places filled, read as a script; which keys of `defaults` it used."""
    used: set[str] = set()
    values = {"model": model, **defaults}

    def filled(match: re.Match[str]) -> str:
        name = match[1]
        used.add(name)
        return str(values[name]) if values.get(name) is not None else match[0]

    before = ""
    for _ in range(5):  # a default may have places itself
        before, text = text, PLACE.sub(filled, text)
        if before == text:
            break
    doubled = version == "1" or "{{" in text
    reader.script(text, Scope(), line)
    for start in reader.starts:
        served = vocabulary.FLAGS.get(start.engine, {}).get("served_model_name")
        if defaults.get("served_model_name") and served and f"--{served}" not in text:  # sparkrun appends it
            start.words += [f"--{served}", str(defaults["served_model_name"])]
            used.add("served_model_name")
        start.words = [_braces(word) if doubled else word for word in start.words]
        open_ends = sorted({match[0] for word in start.words for match in PLACE.finditer(word)})
        start.leftover += [Leftover(name, "a place of the command that `defaults` does not fill") for name in open_ends]
    return used


def _braces(word: str) -> str:
    """`{{` is how both formats write a brace of JSON; where the word is JSON as it stands, it is left."""
    if "{{" not in word and "}}" not in word:
        return word
    try:
        json.loads(word)
    except ValueError:
        return word.replace("{{", "{").replace("}}", "}")
    return word


def _unused(defaults: dict[str, Any], used: set[str]) -> list[Leftover]:
    """Keys that no place of the command names; those that sparkrun counts nodes by aside."""
    said = used | {"tensor_parallel", "pipeline_parallel", "data_parallel"}
    unused = {key: value for key, value in defaults.items() if key not in said}
    return _of_defaults(unused, "stands in `defaults`, and no place of the command takes it")


def _of_defaults(values: dict[str, Any], why: str) -> list[Leftover]:
    return [Leftover(f"defaults: {key} {short(as_text(value))}", why) for key, value in values.items()]


def _generated(data: dict[str, Any], defaults: dict[str, Any], reader: Reader, where: str) -> list[Leftover]:
    """A recipe without a command: the runtime's own, of the keys that it knows."""
    runtime = str(data.get("runtime") or vocabulary.USUAL)
    engine = vocabulary.RUNTIMES.get(runtime, runtime)
    known, leftover = vocabulary.FLAGS.get(engine), Leftovers()
    if known is None:  # somebody's engine: what it is told is kept, and nobody here can say what it means
        reader.starts.append(Started(engine, [], where))
        return _of_defaults(defaults, f"for {runtime}, an engine that is not known here")
    model = str(data.get("model") or "")
    words = [*filter(None, [vocabulary.MODEL.get(engine)]), model]
    for key, value in defaults.items():
        flag = known.get(key)
        if flag is None:
            leftover += _of_defaults({key: value}, f"no flag that sparkrun's {runtime} gives the engine")
        elif key in SWITCHES:
            words += [f"--{flag}"] if as_text(value).lower() in ("true", "1", "yes", "on") else []
        else:
            words += [f"--{flag}", as_text(value)]
    reader.starts.append(Started(engine, words, where))
    return leftover
