"""Stand-ins for the heavy packages that an engine imports before it builds its argument parser.

The list of stubbed packages is closed: a package outside it stays an ImportError, so a release that starts to need
something new is noticed instead of being guessed at. Stubs go in front of anything installed, so that the verdict does
not depend on what else this machine happens to have. They change the whole process: use a process of its own.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
from abc import ABCMeta
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any


def words(text: str) -> list[str]:
    return text.split()


class StubMeta(ABCMeta):
    """A stub is a class, because code subclasses it, annotates with it and decorates with it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        child = make_stub(f"{cls.__module__}.{cls.__qualname__}", name)
        setattr(cls, name, child)
        return child

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls.__dict__.get("_is_stub"):
            return super().__call__(*args, **kwargs)  # a real class of the engine that derives from a stub
        decorates = len(args) == 1 and not kwargs and callable(args[0]) and not is_stub(args[0])
        return args[0] if decorates else cls

    def register(cls, *args: Any, **kwargs: Any) -> Any:
        """Not ABCMeta's: registries of stubbed packages carry this name too."""
        return cls

    def __bool__(cls) -> bool:
        return False

    def __len__(cls) -> int:
        return 0

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __contains__(cls, _item: object) -> bool:
        return False

    def __getitem__(cls, _key: object) -> Any:
        return cls

    def __setitem__(cls, _key: object, _value: object) -> None:
        return None

    def __enter__(cls) -> Any:
        return cls

    def __exit__(cls, *_error: object) -> None:
        return None


def _same(cls: Any, *_args: Any) -> Any:
    return cls


def _no(_cls: Any, *_args: Any) -> bool:
    return False


for _name in words("""
    add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul and rand xor rxor
    lshift rshift neg pos invert abs
"""):
    setattr(StubMeta, f"__{_name}__", _same)


def _zero(_cls: Any) -> int:
    return 0


def _zero_float(_cls: Any) -> float:
    return 0.0


for _name, _answer in (("int", _zero), ("float", _zero_float)):
    setattr(StubMeta, f"__{_name}__", _answer)
for _name in ["lt", "le", "gt", "ge"]:
    setattr(StubMeta, f"__{_name}__", _no)


class StubBase(metaclass=StubMeta):
    """What engine classes derive from when they derive from a stub: they construct with any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> dict[str, str]:
        return {"type": "any"}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return make_stub(type(self).__qualname__, name)


def make_stub(module: str, name: str) -> Any:
    return StubMeta(name, (StubBase,), {"__module__": module, "__qualname__": name, "_is_stub": True})


def is_stub(value: object) -> bool:
    """Whether a value is a stub, or of a class that is one: such a value must never reach a catalog or a verdict."""
    return (isinstance(value, type) and bool(value.__dict__.get("_is_stub"))) or bool(
        type(value).__dict__.get("_is_stub")
    )


class _Absent:
    """Fixed answer: this attribute does not exist."""


ABSENT = _Absent()


class StubModule(ModuleType):
    """A module whose every attribute exists: a fixed answer where one is known, else a stub class."""

    __version__ = "0.0.0"

    def __getattr__(self, name: str) -> Any:
        absent = self.__dict__.get("_absent", ())
        if name in absent or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        loaded = sys.modules.get(f"{self.__name__}.{name}")
        if loaded is not None:
            return loaded
        value = make_stub(self.__name__, name)
        setattr(self, name, value)
        return value


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers every import below a closed list of package names."""

    def __init__(
        self, packages: Iterable[str], answers: Mapping[str, Any], versions: Mapping[str, str] | None = None
    ) -> None:
        self._packages = frozenset(packages)
        self._answers = answers
        self._versions = versions or {}

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterator[importlib.metadata.Distribution]:
        asked = context.name if context else None
        return iter(StubDistribution(name, said) for name, said in self._versions.items() if asked in (None, name))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not any(fullname == name or fullname.startswith(name + ".") for name in self._packages):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = StubModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        prefix = module.__name__ + "."
        for key, value in self._answers.items():
            owner, _, attribute = key.rpartition(".")
            if value is ABSENT:
                if owner == module.__name__:
                    module.__dict__.setdefault("_absent", set()).add(attribute)
            elif owner == module.__name__:
                setattr(module, attribute, value)
            elif key.startswith(prefix):
                _nest(module, key[len(prefix) :].split("."), value)


class EmptyModuleFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces named modules of the engine by empty ones (a package keeps its folder: its submodules stay real)."""

    def __init__(self, modules: Mapping[str, str | None]) -> None:
        self._modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._modules:
            return None
        folder = self._modules[fullname]
        spec = importlib.machinery.ModuleSpec(fullname, self, is_package=folder is not None)
        if folder is not None:
            spec.submodule_search_locations = [folder]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        return None


def _nest(module: ModuleType, path: list[str], value: Any) -> None:
    """Sets a fixed answer that lies below an attribute (``torch.cuda`` reached without importing ``torch.cuda``)."""
    owner: Any = module
    for name in path[:-1]:
        owner = getattr(owner, name)
    setattr(owner, path[-1], value)


class StubDistribution(importlib.metadata.Distribution):
    """A stubbed package that says its version, as if it were installed."""

    def __init__(self, name: str, version: str) -> None:
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        raise FileNotFoundError(path)


def install(
    packages: Iterable[str],
    answers: Mapping[str, Any],
    replaced: Mapping[str, str | None],
    versions: Mapping[str, str] | None = None,
) -> None:
    """Puts the stubs in place for good. ``replaced``: engine modules to leave empty, with their folder if packages;
    ``versions``: of stubbed packages, for a release that asks what is installed before it goes on."""
    sys.meta_path.insert(0, StubFinder(packages, answers, versions or {}))
    sys.meta_path.insert(0, EmptyModuleFinder(replaced))
