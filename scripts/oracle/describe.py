"""Turns an engine's parser into facts: the catalog that is committed and judged from without the engine.

Facts only. Help texts are prose and stay out; what is the usual case (a plain string flag that takes one value) is left
out too, so that a line says what is special about its flag.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
from typing import Any

from .envscan import flag_in
from .stubs import is_stub

_LONGEST_DEFAULT = 60
_TYPES = {
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size_or_auto",
    "json_list_type": "json",
    "loads": "json",
    "nullable_str": "str",
    "parse_cuda_graph_backend_arg": "str",
    "parse_reasoning_parser": "str",
    "union_dict_and_str": "str_or_json",
}
_ACTIONS = {
    "_StoreAction": "",
    "_StoreTrueAction": "true",
    "_StoreFalseAction": "false",
    "_StoreConstAction": "const",
    "_AppendAction": "append",
    "_HelpAction": "exit",
    "_VersionAction": "exit",
    "BooleanOptionalAction": "toggle",
    "EnableDisableAction": "toggle",
    "LoRAPathAction": "",
    "LoRAParserAction": "",
    "DeprecatedLogConfigFileAction": "",
    "DeprecatedAliasStoreAction": "",
    "DeprecatedStoreTrueAction": "true",
    "DeprecatedStoreConstAction": "const",
    "DeprecatedAction": "ignored",
}


class UnknownShape(Exception):
    """The release uses a kind of flag that the catalog cannot express yet."""


def flags_of(parser: argparse.ArgumentParser) -> dict[str, dict[str, Any]]:
    spellings: dict[int, list[str]] = {}
    for name, action in parser._option_string_actions.items():
        spellings.setdefault(id(action), []).append(name)
    legacy = getattr(type(parser), "_deprecated", None) or getattr(parser, "_deprecated", None) or ()
    flags: dict[str, dict[str, Any]] = {}
    for action in parser._actions:
        if not action.option_strings:
            continue
        names = spellings[id(action)]
        flags[_main_name(names)] = _facts(action, names, action in legacy)
    return flags


def positionals_of(parser: argparse.ArgumentParser) -> list[str]:
    return [
        action.dest + (str(action.nargs) if action.nargs else "")
        for action in parser._actions
        if not action.option_strings
    ]


def _main_name(names: list[str]) -> str:
    return next((name for name in names if name.startswith("--")), names[0])


def _facts(action: argparse.Action, names: list[str], deprecated: bool) -> dict[str, Any]:
    main = _main_name(names)
    off = sorted(getattr(action, "negative_option_strings", ())) or [name for name in names if name.startswith("--no-")]
    kind = _ACTIONS.get(type(action).__name__)
    if kind is None:
        raise UnknownShape(f"{main}: action {type(action).__name__}; teach scripts/oracle/describe.py about it")
    facts: dict[str, Any] = {}
    others = [name for name in names if name != main and not (kind == "toggle" and name in off)]
    if others:
        facts["also"] = others
    if action.dest != main.lstrip("-").replace("-", "_"):
        facts["dest"] = action.dest
    if kind:
        if kind == "const" and action.nargs is None:
            kind = ""  # a retired flag whose one value became a boolean still takes that value
        if kind == "ignored" and getattr(action, "error_message", None):
            kind = "refused"  # still declared, only to say what to write instead
        facts["action"] = kind
    if kind == "toggle":
        facts["off"] = off
    if kind in ("", "append"):
        facts |= _value_facts(action, main)
    if action.required:
        facts["required"] = True
    default = _literal_default(action.default)
    if default is not None and not (default is False and kind in ("true", "toggle")):
        facts["default"] = default
    replacement = _replacement(action, deprecated)
    if replacement is not None:
        facts["deprecated"] = replacement or True
    return {key: value for key, value in facts.items() if value != ""}


def _value_facts(action: argparse.Action, main: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    word, optional, fields = _type_facts(action.type, main)
    if type(action).__name__ in ("LoRAPathAction", "LoRAParserAction"):
        word = "lora"
    if word != "str":
        facts["type"] = word
    if fields:
        facts["fields"] = fields
    if optional:
        facts["optional"] = True
    if action.nargs is not None:
        facts["nargs"] = action.nargs
    if action.choices is not None:
        if optional and None not in action.choices:
            facts.pop("optional")  # "None" becomes no value at all, and that is no choice
        choices = [item for item in action.choices if item is not None and not (optional and item == "None")]
        if any(is_stub(item) for item in choices):
            raise UnknownShape(f"{main}: a stub reached its choices; give that attribute a fixed answer")
        facts["choices"] = sorted(
            (getattr(item, "value", item) for item in choices), key=lambda item: (str(type(item)), item)
        )
    return facts


def _type_facts(kind: Any, main: str) -> tuple[str, bool, list[str]]:
    """The catalog's word for a ``type=`` callable, whether it also takes ""/None, and a JSON object's field names."""
    if kind is None:
        return "str", False, []
    if kind in (str, int, float):
        return str(kind.__name__), False, []
    name = getattr(kind, "__name__", "")
    if name in ("_optional_type", "_parse_type"):
        word, _, fields = _type_facts(kind.__closure__[0].cell_contents, main)
        return word, name == "_optional_type", fields
    if name == "<lambda>":
        return _lambda_type(kind, main), False, []
    if name == "parse_dataclass":
        return "json_object", False, sorted(item.name for item in dataclasses.fields(kind.__defaults__[0]) if item.init)
    if name == "parse_cuda_graph_config_arg":
        allowed = sys.modules[kind.__module__].ALLOWED_KEYS_PER_PHASE
        return "json_object", False, sorted(f"{phase}.{key}" for phase, keys in allowed.items() for key in keys)
    if name in _TYPES:
        return _TYPES[name], False, []
    raise UnknownShape(f"{main}: type {name or kind!r}; teach scripts/oracle/describe.py about it")


def _lambda_type(kind: Any, main: str) -> str:
    """An unnamed callable is told apart by what it does."""
    answer = kind("Ab-C")
    if answer == "ab_c":
        return "folded"
    if answer == ["Ab-C"] and kind("1, x") == [1, "x"]:
        return "list"
    raise UnknownShape(f"{main}: unnamed type gives {answer!r} for 'Ab-C'; teach scripts/oracle/describe.py about it")


def _literal_default(value: Any) -> Any:
    """Only short plain literals: a default that is computed, or a path of this machine, is no fact of the release."""
    if isinstance(value, tuple | list):
        value = [getattr(item, "value", item) for item in value]
        if not all(isinstance(item, bool | int | float | str) for item in value):
            return None
    value = getattr(value, "value", value)
    if (
        value == argparse.SUPPRESS
        or value in ([], {}, "")
        or is_stub(value)
        or not isinstance(value, bool | int | float | str | list)
    ):
        return None
    text = json.dumps(value)
    return None if len(text) > _LONGEST_DEFAULT or '"/' in text else value


def _replacement(action: argparse.Action, deprecated: bool) -> str | None:
    """What to write instead of a retired flag; "" where the release names nothing; None for a flag in use."""
    text = getattr(action, "error_message", None) or action.help or ""
    named = getattr(action, "new_flag", None)
    if named:
        return str(named)
    retired = deprecated or type(action).__name__.startswith("Deprecated") or getattr(action, "deprecated", False)
    if not retired and not re.match(r"\W*(note:\s*\S+ is )?deprecated", text, re.IGNORECASE):
        return None
    sentence = re.search(r"\buse\b.*", text, re.IGNORECASE | re.DOTALL)
    return flag_in(sentence.group()) if sentence else ""
