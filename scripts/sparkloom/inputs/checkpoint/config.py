"""A checkpoint's `config.json`: numbers by name, with the place of a wrong one, and which were used for what."""

from __future__ import annotations

from typing import Any

from sparkloom.base import json_text
from sparkloom.base.errors import InputError
from sparkloom.base.visible import cut

LARGEST = 10**12


class Config:
    """One mapping of the file. `sources` fills while it is read: topic -> the words used, with their values."""

    def __init__(
        self, data: dict[str, Any], file: str, path: str = "", topic: str = "", sources: dict[str, Any] | None = None
    ) -> None:
        self.data, self.file, self.path, self.topic = data, file, path, topic
        self.sources: dict[str, dict[str, Any]] = {} if sources is None else sources

    def about(self, topic: str) -> Config:
        """The same mapping; what is read through it is noted as the source of `topic`."""
        return Config(self.data, self.file, self.path, topic, self.sources)

    def section(self, *names: str) -> Config | None:
        """A mapping below this one, by the first name that is there."""
        name = next((name for name in names if isinstance(self.data.get(name), dict)), None)
        if name is None:
            return None
        return Config(self.data[name], self.file, f"{self.path}{name}.", self.topic, self.sources)

    def mapping(self, name: str) -> Config:
        """A mapping that the file must have."""
        found = self.section(name)
        if found is None:
            raise self.missing(name)
        return found

    @property
    def text(self) -> Config:
        """The language model's own mapping: some files keep it apart from a vision tower's."""
        return self.section("text_config", "llm_config", "language_config") or self

    def value(self, *names: str) -> Any:
        """The first of these names that is there and not null."""
        for name in names:
            found = self.data.get(name)
            if found is not None:
                self._note(name, found)
                return found
        return None

    def number(self, *names: str) -> int:
        """A whole number that the file must have."""
        found = self.maybe(*names)
        if found is None:
            raise self.missing(*names)
        return found

    def maybe(self, *names: str) -> int | None:
        found = self.value(*names)
        if found is None:
            return None
        most = 1000 if "layers" in names[0] or names[0] == "depth" else LARGEST  # each layer is gone through by itself
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < most:
            raise self.refusal(f"{self.path}{names[0]} is {cut(repr(found), 60)}; expected a whole number from 0")
        return found

    def count(self, *names: str) -> int:
        """A number that is nought where the file does not have it."""
        return self.maybe(*names) or 0

    def flag(self, *names: str) -> bool:
        return self.value(*names) is True

    def text_of(self, *names: str) -> str:
        found = self.value(*names)
        return found if isinstance(found, str) else ""

    def items(self, *names: str) -> list[Any]:
        found = self.value(*names)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self.refusal(f"{self.path}{names[0]} is {cut(repr(found), 60)}; expected a list")
        return found

    def per_layer(self, layers: int, *names: str, numbers: bool = False) -> list[Any]:
        """A list with an entry for each layer, or nothing; one of `numbers` the file must have."""
        found = self.items(*names)
        if (found or numbers) and len(found) < layers:
            raise self.refusal(f"{self.path}{names[0]} has {len(found)} entries for {layers} layers")
        if wrong := [one for one in found if numbers and not (isinstance(one, int) and 0 <= one < LARGEST)]:
            raise self.refusal(f"{self.path}{names[0]} has {cut(repr(wrong[0]), 60)}; expected whole numbers from 0")
        return found[:layers]

    def missing(self, *names: str) -> InputError:
        return self.refusal(f"{self.path}{names[0]} is missing; this architecture's reader needs it")

    def refusal(self, message: str) -> InputError:
        return InputError.single(self.file, message, rule="bad-config")

    def _note(self, name: str, value: Any) -> None:
        if self.topic:
            self.sources.setdefault(self.topic, {})[f"{self.path}{name}"] = value


def parse(text: bytes | str, file: str) -> dict[str, Any]:
    """A mapping of JSON; a file that is none is refused with its place."""
    data = json_text.parse(text, file, "expected a mapping")
    if not isinstance(data, dict):
        raise InputError.single(file, f"expected a mapping at the top, found {type(data).__name__}", rule="bad-json")
    return data
