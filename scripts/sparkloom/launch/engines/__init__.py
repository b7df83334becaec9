"""One adapter per engine; `get(name)` is the only door."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from sparkloom.launch.engines.base import Adapter

NAMES = ("sglang", "vllm", "trtllm", "llamacpp")


@cache
def get(name: str) -> Adapter:
    adapter: Adapter = import_module(f"sparkloom.launch.engines.{name}").ADAPTER
    return adapter
