"""SGLang: what to stub, and how ``python3 -m sglang.launch_server`` builds its parser."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from . import envscan, flatyaml
from .stubs import ABSENT, words
from .verdict import RaisingParser, Rejected

ENTRY = ("python3", "-m", "sglang.launch_server")
STUBBED = words("""
    IPython PIL dill flash_attn huggingface_hub json_repair lxml numpy openai orjson partial_json_parser psutil
    pybase64 pydantic pydantic_core regex requests safetensors sentencepiece sgl_kernel starlette torch torchcodec
    torchvision tqdm transformers triton xgrammar zmq
""")


def _no_driver(*_args: Any, **_kwargs: Any) -> NoReturn:
    raise RuntimeError("no GPU driver here")


ANSWERS: dict[str, Any] = {
    "dill.dumps": lambda *_args, **_kwargs: b"",
    "orjson.loads": json.loads,  # a type callable of the parser uses it: a stub would accept bad JSON
    "torch.__version__": "2.9.1",
    "torch.cuda.is_available": lambda: False,
    "torch.hpu": ABSENT,
    "torch.musa": ABSENT,
    "torch.npu": ABSENT,
    "torch.version.cuda": None,
    "torch.version.hip": None,
    "transformers.__version__": "4.57.1",
    "triton.__version__": "3.5.1",
    "triton.runtime.driver.active.get_current_target": _no_driver,
}


def replaced(folder: Path) -> dict[str, str | None]:
    """``sglang/__init__.py`` drags in the frontend language and patches transformers; the server does not need it."""
    return {"sglang": str(folder / "sglang")}


class Engine:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arguments = importlib.import_module("sglang.srt.server_args").ServerArgs
        self.parser = RaisingParser(prog="sglang serve")
        self._arguments.add_cli_args(self.parser)
        self.parsers = [self.parser]

    def parse(self, argv: list[str]) -> argparse.Namespace:
        words = strip_entry(argv)
        return self.parser.parse_args(self._merged(words) if "--config" in words else words)

    def _merged(self, words: list[str]) -> list[str]:
        """A configuration file's flags among the words, by the release's own code."""
        sys.modules.setdefault("yaml", flatyaml.module)  # type: ignore[arg-type]
        places = ("sglang.srt.server_args_config_parser", "sglang.srt.utils.server_args_config_parser")
        try:
            known = next(name for name in places if importlib.util.find_spec(name))
            merged: list[str] = (
                importlib.import_module(known).ConfigArgumentMerger(self.parser).merge_config_with_args(words)
            )
        except (ValueError, OSError) as error:
            raise Rejected(f"--config: {error}") from None
        return merged

    def environment(self) -> dict[str, dict[str, Any]]:
        module = importlib.import_module("sglang.srt.environ")
        source = self._folder / "sglang" / "srt" / "environ.py"
        names = envscan.names_read(self._folder / "sglang", "SGLANG_")
        for name, field in vars(module.Envs).items():
            if isinstance(field, module.EnvField):
                names[name] = _describe_field(field) | names.get(name, {})
        for name, replacement in _deprecated_names(source, module).items():
            names.setdefault(name, {})["deprecated"] = replacement or True
        return names

    def registries(self) -> dict[str, Any]:
        return {}


def strip_entry(argv: list[str]) -> list[str]:
    if argv and not argv[0].startswith("-"):
        if re.fullmatch(r"(.*/)?python3?(\.\d+)?", argv[0]) and tuple(argv[1:3]) == ENTRY[1:]:
            return argv[3:]
        raise Rejected(f"{' '.join(argv[:3])}: expected the command to begin with {' '.join(ENTRY)}")
    return argv


def _describe_field(field: Any) -> dict[str, Any]:
    kinds = {"EnvBool": "bool", "EnvInt": "int", "EnvFloat": "float", "EnvTuple": "list", "EnvJSON": "json"}
    kind = next((kinds[cls.__name__] for cls in type(field).__mro__ if cls.__name__ in kinds), "str")
    facts: dict[str, Any] = {"type": kind}
    if not callable(field.default):
        facts["default"] = field.default
    return envscan.tidy(facts)


def _deprecated_names(source: Path, module: Any) -> dict[str, str]:
    """Retired names: newer releases keep a table, older ones call a helper per name."""
    replacements: dict[str, str] = {}
    for name, entry in getattr(module, "_DEPRECATED_ENVS", {}).items():
        replacements[name] = entry.replacement or envscan.flag_in(entry.note or "")
    for node in ast.walk(ast.parse(source.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        words = [item.value for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
        if node.func.id == "_print_deprecated_env" and words:
            # The order of its two names was swapped between releases: go by what the release calls them.
            order = list(inspect.signature(module._print_deprecated_env).parameters)
            by_name = dict(zip(order, words, strict=False))
            replacements[by_name["old_name"]] = by_name.get("new_name", "")
        elif node.func.id == "_warn_deprecated_env_to_cli_flag" and len(words) == 2:
            replacements[words[0]] = envscan.flag_in(words[1])
    return replacements
