"""One file per family of architectures: its words in `config.json`, and the parts that they mean.

A file is found by being here, its readers by their kind; a name that no reader has is drafted from the tensors alone.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from sparkloom.inputs.checkpoint.architectures._common import Reader


@cache
def every() -> dict[str, Reader]:
    """Readers by the name of an architecture; two files with the same name are a mistake and fail here."""
    readers: dict[str, Reader] = {}
    for info in iter_modules(__path__):
        module = import_module(f"{__name__}.{info.name}")
        for reader in (one for one in vars(module).values() if isinstance(one, Reader)):
            for name in reader.names:
                if name in readers:
                    raise AssertionError(f"two readers call themselves {name}")
                readers[name] = reader
    return readers


def of(architecture: str) -> Reader | None:
    return every().get(architecture)
