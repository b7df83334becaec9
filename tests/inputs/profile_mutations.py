"""Profiles spoilt on purpose. Each mutation takes a sound profile and returns text that must be refused.

A mutation is invalid by construction: it says nothing about how the loader finds out.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import strategies as st

Data = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
Mutation = Callable[[Draw, Data], str]

# Sections whose keys the schema knows; below launch and env any name may be an engine's.
KNOWN = ("model", "engine", "requests")
SLIPS = ("drop", "double", "swap", "upper", "homoglyph", "blank", "dash")
HOMOGLYPHS = str.maketrans("aceop", "\u0430\u0441\u0435\u043e\u0440")  # Cyrillic, alike to the eye


def dump(data: Data) -> str:
    return yaml.dump(data, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, allow_unicode=True)


def slip(draw: Draw, word: str) -> str:
    """The word as a hurried hand would spell it; never the word itself."""
    at = draw(st.integers(0, max(0, len(word) - 2)))
    kind = draw(st.sampled_from(SLIPS))
    spelled = {
        "drop": word[:at] + word[at + 1 :],
        "double": word[: at + 1] + word[at:],
        "swap": word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :],
        "upper": word.capitalize(),
        "homoglyph": word.translate(HOMOGLYPHS),
        "blank": word + " ",
        "dash": word.replace("_", "-"),
    }[kind]
    return spelled if spelled != word else word + "x"


def paths(node: Any, loc: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a tree, leaves and branches."""
    found = [loc] if loc else []
    if isinstance(node, dict):
        return found + [path for key, value in node.items() for path in paths(value, (*loc, key))]
    if isinstance(node, list):
        return found + [path for index, value in enumerate(node) for path in paths(value, (*loc, index))]
    return found


def parent(data: Data, loc: tuple[Any, ...]) -> Any:
    node: Any = data
    for part in loc[:-1]:
        node = node[part]
    return node


def schema_paths(data: Data) -> list[tuple[Any, ...]]:
    """Keys that the schema names: not flags, variables, toggles, sampling, parts, accept lengths, configs."""
    free = ({"requests"}, {"accept_length", "weights_gib_per_rank", "config"})
    return [
        loc
        for loc in paths({key: value for key, value in data.items() if key in (*KNOWN, "evidence")})
        if isinstance(loc[-1], str)
        and not (loc[0] in free[0] and len(loc) > 2)
        and not any(part in free[1] for part in loc[:-1])
        and loc[-2:-1] != ("parts",)  # whoever writes a part names it
    ] + [("launch", "parallel", key) for key in data["launch"]["parallel"]]


def misspelt_key(draw: Draw, data: Data) -> str:
    loc = draw(st.sampled_from(schema_paths(data)))
    node = parent(data, loc)
    wrong = slip(draw, loc[-1])
    renamed = {wrong if key == loc[-1] else key: value for key, value in node.items()}
    node.clear()
    node.update(renamed)
    return dump(data)


def misspelt_section(draw: Draw, data: Data) -> str:
    section = draw(st.sampled_from(sorted(data)))
    data[slip(draw, section)] = data.pop(section)
    return dump(data)


def misspelt_flag(draw: Draw, data: Data) -> str:
    flags = [key for key in data["launch"] if key != "parallel"]
    flag = draw(st.sampled_from(flags))
    data["launch"][draw(st.sampled_from((flag + "_", flag.replace("_", "-") + "-x", "x_" + flag, flag + "ß")))] = data[
        "launch"
    ].pop(flag)
    return dump(data)


def wrong_type(draw: Draw, data: Data) -> str:
    """A typed leaf with a value of another kind. The values fit no leaf of the schema's own sections."""
    leaves = [loc for loc in schema_paths(data) if not isinstance(parent(data, loc)[loc[-1]], dict | list)]
    loc = draw(st.sampled_from(leaves))
    parent(data, loc)[loc[-1]] = draw(st.sampled_from(([1, [2]], {"a": {"b": 1}}, [{"x": None}], {"": []})))
    return dump(data)


def scalar_for_section(draw: Draw, data: Data) -> str:
    branches = [loc for loc in schema_paths(data) if isinstance(parent(data, loc)[loc[-1]], dict | list)]
    loc = draw(st.sampled_from([*branches, ("model",), ("engine",), ("launch",), ("env",), ("evidence",)]))
    parent(data, loc)[loc[-1]] = draw(st.sampled_from((7, "text", True, 1.5, "[]")))
    return dump(data)


def out_of_range(draw: Draw, data: Data) -> str:
    loc = draw(
        st.sampled_from(
            [("launch", "parallel", key) for key in ("nodes", "tp", "pp", "ep")]
            + [("model", key) for key in ("hidden", "vocab", "context")]
            + [("model", "attention", key) for key in ("q_heads", "kv_heads", "head_dim")]
        )
    )
    parent(data, loc)[loc[-1]] = draw(st.one_of(st.integers(max_value=0), st.integers(min_value=10**9 + 1)))
    return dump(data)


def not_a_number(draw: Draw, data: Data) -> str:
    number = draw(st.sampled_from((float("nan"), float("inf"), float("-inf"), 1e300, 10**30, -(10**30))))
    loc = draw(
        st.sampled_from(
            [
                ("launch", "mem_fraction_static"),
                ("launch", "context_length"),
                ("model", "parameters_b"),
                ("model", "active_b"),
            ]
        )
    )
    parent(data, loc)[loc[-1]] = number
    return dump(data)


def ranges_swapped(draw: Draw, data: Data) -> str:
    parallel, model = data["launch"]["parallel"], data["model"]
    kind = draw(st.sampled_from(("ep", "nodes", "heads", "experts", "layers")))
    if kind == "ep":
        parallel["ep"] = 3
    elif kind == "nodes":
        parallel["nodes"] = draw(st.sampled_from([n for n in range(1, 9) if n != parallel["tp"] * parallel["pp"]]))
    elif kind == "heads":
        model["attention"]["q_heads"] = model["attention"]["q_heads"] * parallel["tp"] + 1
    elif kind == "experts":
        model["experts"]["routed"], model["experts"]["active"] = (
            model["experts"]["active"],
            model["experts"]["routed"],
        )
    else:
        model["layers"].pop("moe")
    return dump(data)


def key_missing(draw: Draw, data: Data) -> str:
    required = [("summary",), ("model",), ("engine",), ("launch",), ("launch", "parallel"), ("engine", "image")]
    required += [("model", key) for key in ("id", "hidden", "vocab", "layers", "attention", "precision", "source")]
    required += [("engine", "name"), ("engine", "release"), ("evidence", 0, "claim"), ("evidence", 0, "status")]
    loc = draw(st.sampled_from(required))
    del parent(data, loc)[loc[-1]]
    return dump(data)


def stray_text(draw: Draw, data: Data) -> str:
    """A line that no YAML may hold, anywhere between two lines."""
    lines = dump(data).splitlines()
    at = draw(st.integers(0, len(lines)))
    stray = draw(
        st.sampled_from(
            ("\t- x: [", "}: {", "]", "key: 'open", "%TAG", "a: b: c", "@x: 1", "summary: &a *a", "\x00", "\x1b[31m")
        )
    )
    return "\n".join([*lines[:at], stray, *lines[at:]]) + "\n]: ["


def key_twice(draw: Draw, data: Data) -> str:
    section = draw(st.sampled_from(sorted(data)))
    return dump(data) + f"{section}: {json.dumps(data[section])}\n"


def nested_deep(draw: Draw, data: Data) -> str:
    depth = draw(st.sampled_from((45, 200, 2_000, 50_000)))
    opener, closer = draw(st.sampled_from((("[", "]"), ("{a: ", "}"))))
    return dump(data) + f"deep: {opener * depth}1{closer * depth}\n"


def no_profile(draw: Draw, data: Data) -> str:
    return str(
        draw(st.sampled_from(("", "# nothing\n", "- a\n", "text\n", "7\n", "null\n", "[]\n", "--- {}\n--- {}\n", "{}")))
    )


def strange_tag(draw: Draw, data: Data) -> str:
    tag = draw(
        st.sampled_from(
            (
                "!!python/object/apply:os.system [id]",
                "!!python/name:os.system",
                "!!binary aGk=",
                "!vault x",
                "!!set {a}",
            )
        )
    )
    return dump(data).replace("summary:", f"summary: {tag}\nother:", 1)


def strange_text(draw: Draw, data: Data) -> str:
    """Characters that no command line, variable or terminal can carry."""
    character = draw(st.sampled_from(("\\0", "\\x07", "\\e[2J", "\\x7F", "\\N")))
    loc = draw(st.sampled_from(("reasoning_parser", "kv_cache_dtype")))
    data["launch"].pop(loc)
    return dump(data).replace("launch:\n", f'launch:\n  {loc}: "a{character}b"\n', 1)


def bad_parent(draw: Draw, data: Data) -> str:
    data["extends"] = draw(
        st.sampled_from(("nobody--nothing", "../secret", "", 7, [], "nvidia--glm-4.7-nvfp4--mtp", "own"))
    )
    return dump(data)


def wrong_word(draw: Draw, data: Data) -> str:
    loc, words = draw(
        st.sampled_from(
            (
                (("engine", "name"), ("SGLang", "sglnag", "")),
                (("model", "precision", "attention"), ("fp4", "BF16", "int5")),
                (("model", "checkpoint", "packing"), ("model_opt", "awk")),
                (("evidence", 0, "status"), ("proven", "Measured")),
                (("evidence", 0, "date"), ("June 2026", "2026", "06-2026")),
                (("model", "id"), ("no-org", "a/b/c", "spaced name/x")),
            )
        )
    )
    parent(data, loc)[loc[-1]] = draw(st.sampled_from(words))
    return dump(data)


def bad_variable(draw: Draw, data: Data) -> str:
    name, value = draw(
        st.sampled_from((("1ABC", "x"), ("A-B", "x"), ("A B", "x"), ("A", 1), ("A", True), ("A", [1]), ("Ä", "x")))
    )
    data.setdefault("env", {})[name] = value
    return dump(data)


MUTATIONS: tuple[Mutation, ...] = (
    misspelt_key,
    misspelt_section,
    misspelt_flag,
    wrong_type,
    scalar_for_section,
    out_of_range,
    not_a_number,
    ranges_swapped,
    key_missing,
    stray_text,
    key_twice,
    nested_deep,
    no_profile,
    strange_tag,
    strange_text,
    bad_parent,
    wrong_word,
    bad_variable,
)


def spoil(draw: Draw, mutation: Mutation, sound: Data) -> str:
    return mutation(draw, copy.deepcopy(sound))
