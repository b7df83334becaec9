"""vLLM: what to stub, and how ``vllm serve`` builds its parser."""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from . import envscan, flatyaml
from .stubs import ABSENT, words
from .verdict import RaisingParser, Rejected

ENTRY = ("vllm", "serve")
STUBBED = words("""
    PIL aiohttp cachetools cbor2 cloudpickle cpuinfo cv2 fastapi gguf huggingface_hub librosa llguidance numpy
    openai openai_harmony opentelemetry partial_json_parser prometheus_client psutil pybase64 requests safetensors
    scipy soundfile starlette tokenizers torch torchaudio torchvision tqdm transformers triton urllib3 uvicorn uvloop
    xgrammar yaml zmq vllm._custom_ops vllm.env_override vllm.ir vllm.kernels
""")

ANSWERS: dict[str, Any] = {
    "torch.__version__": "2.9.1",
    "torch.cuda.is_available": lambda: False,
    "torch.npu": ABSENT,
    "torch.version.cuda": None,
    "torch.version.hip": None,
    "torch.xpu": ABSENT,
    "transformers.__version__": "4.57.1",
    "triton.__version__": "3.5.1",
}

# What releases from 0.24.0 on look up before they import it; any that is new enough will do.
VERSIONS = {"transformers": "5.12.1"}


def replaced(_folder: Path) -> dict[str, str | None]:
    return {}


class Engine:
    def __init__(self, folder: Path) -> None:
        os.environ["VLLM_CONFIGURE_LOGGING"] = "0"
        self._folder = folder
        platforms = importlib.import_module("vllm.platforms")
        # The platform is asked while the parser is built; the CPU's answer needs no driver and adds no flag of its own.
        vars(platforms)["_current_platform"] = importlib.import_module("vllm.platforms.cpu").CpuPlatform()
        folders = ("common", "launchers", "openai")  # it moved there and back
        self._cli = _first_module(*(f"vllm.entrypoints.{folder}.cli_args" for folder in folders))
        # Whether a chat template's file exists is the container's business, not the parser's.
        vars(self._cli)["validate_chat_template"] = lambda _template: None
        flexible = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser
        raising = type("RaisingFlexibleParser", (RaisingParser, flexible), {})
        self._top = raising(prog="vllm")
        commands = self._top.add_subparsers(required=True, dest="subparser")
        self.parser: RaisingParser = commands.add_parser("serve")
        self._cli.make_arg_parser(self.parser)
        self.parsers = [self.parser]

    def parse(self, argv: list[str]) -> argparse.Namespace:
        words = strip_entry(argv)
        vars(importlib.import_module("vllm.utils.argparse_utils"))["yaml"] = flatyaml.module
        try:
            parsed: argparse.Namespace = self._top.parse_args(["serve", *words])
        except (ValueError, OSError) as error:
            raise Rejected(str(error)) from None
        self._cli.validate_parsed_serve_args(parsed)
        return parsed

    def environment(self) -> dict[str, dict[str, Any]]:
        module = importlib.import_module("vllm.envs")
        declared = _declared_variables(self._folder / "vllm" / "envs.py")
        names = envscan.names_read(self._folder / "vllm", "VLLM_")
        for name, read in module.environment_variables.items():
            facts = dict(declared.get(name, {}))
            if facts.get("type") == "bool" and not _takes(name, read, "true"):
                facts["type"] = "bool01"
            names[name] = facts
        return names

    def registries(self) -> dict[str, Any]:
        quantization = importlib.import_module("vllm.model_executor.layers.quantization")
        speculative = importlib.import_module("vllm.config.speculative")
        loaders = self._folder / "vllm" / "model_executor" / "model_loader" / "__init__.py"
        fields = vars(speculative.SpeculativeConfig).get("__dataclass_fields__", {})
        return {
            "needs": _needs(Path(self._cli.__file__)),
            "quantization": sorted(quantization.QUANTIZATION_METHODS),
            "quantization-deprecated": sorted(getattr(quantization, "DEPRECATED_QUANTIZATION_METHODS", ())),
            "load-format": sorted(_literal(loaders, "LoadFormats")),
            "reasoning-parser": sorted(
                _table_keys(self._folder / "vllm/reasoning/__init__.py", "_REASONING_PARSERS_TO_REGISTER")
            ),
            "tool-call-parser": sorted(
                _table_keys(self._folder / "vllm/tool_parsers/__init__.py", "_TOOL_PARSERS_TO_REGISTER")
            ),
            "speculative-config": sorted(name for name, item in fields.items() if item.init),
            "speculative-method": sorted(_flatten(speculative.SpeculativeMethod)),
        }


def _needs(source: Path) -> list[list[str]]:
    """Flags that the release refuses without another one, after parsing."""
    return sorted(
        [left, right] for left, right in set(re.findall(r"(--[a-z-]+) requires (--[a-z-]+)", source.read_text()))
    )


def strip_entry(argv: list[str]) -> list[str]:
    if len(argv) >= 2 and re.fullmatch(r"(.*/)?vllm", argv[0]):
        if argv[1] != "serve":
            raise Rejected(f"vllm {argv[1]}: expected the command to begin with vllm serve")
        return argv[2:]
    return argv


def _first_module(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name is None or not name.startswith(missing.name):
                raise
    raise ModuleNotFoundError(f"none of {', '.join(names)} in this release")


def _declared_variables(source: Path) -> dict[str, dict[str, Any]]:
    """Types and literal defaults as declared for type checkers at the top of vllm/envs.py."""
    variables: dict[str, dict[str, Any]] = {}
    for block in ast.parse(source.read_text()).body:
        if not (isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"):
            continue
        for node in block.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                facts: dict[str, Any] = {"type": _type_word(ast.unparse(node.annotation))}
                if isinstance(node.value, ast.Constant):
                    facts["default"] = node.value.value
                variables[node.target.id] = envscan.tidy(facts)
    return variables


def _type_word(annotation: str) -> str:
    words = {part.strip() for part in annotation.split("|")} - {"None"}
    if len(words) == 1:
        word = words.pop()
        if word in {"bool", "int", "float"}:
            return word
        if word.startswith("list["):
            return "list"
    return "str"


def _takes(name: str, read: Any, word: str) -> bool:
    """Whether the release can read this word from the variable (many booleans are int() underneath)."""
    before = os.environ.get(name)
    os.environ[name] = word
    try:
        read()
    except (ValueError, TypeError):
        return False
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
    return True


def _literal(source: Path, name: str) -> list[str]:
    """The strings of a Literal assignment, read without importing the heavy module around it."""
    return _strings(ast.walk(_assigned(source, name)))


def _table_keys(source: Path, name: str) -> list[str]:
    table = _assigned(source, name)
    return _strings(table.keys) if isinstance(table, ast.Dict) else []


def _strings(nodes: Iterable[ast.AST | None]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _assigned(source: Path, name: str) -> ast.expr:
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.Assign) and name in (ast.unparse(target) for target in node.targets):
            return node.value
    raise LookupError(f"{source}: no assignment to {name}")


def _flatten(literal: Any) -> set[str]:
    words: set[str] = set()
    for item in get_args(literal):
        words |= {item} if isinstance(item, str) else _flatten(item)
    return words
