"""A checkpoint's files in a folder of this machine: no network."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from sparkloom.base.errors import InputError
from sparkloom.inputs.checkpoint.headers import Source


class Folder(Source):
    """`snapshots/` of the hub's cache are followed to their one commit. A config.json stands for its folder; a file of
    another name is one that was saved alone.
    """

    def __init__(self, path: Path) -> None:
        self.config = path if path.is_file() else path / "config.json"
        self.path = path = self.config.parent
        self.shown = str(path)
        self.commit = path.name if len(path.name) == 40 and path.parent.name == "snapshots" else None
        if not self.config.is_file():
            message = "no config.json here; name one, or the folder that has one"
            raise InputError.single(self.shown, message, rule="missing-file")

    @cached_property
    def sizes(self) -> dict[str, int]:
        try:
            if self.config.name != "config.json":
                return {"config.json": self.config.stat().st_size}
            return {
                str(file.relative_to(self.path)): file.stat().st_size for file in self.path.iterdir() if file.is_file()
            }
        except OSError as error:
            raise InputError.single(self.shown, f"cannot be read: {error}", rule="unreadable") from None

    def part(self, name: str, start: int, stop: int) -> bytes:
        file = self.config if name == "config.json" else self.path / name
        try:
            with file.open("rb") as source:
                source.seek(start)
                return source.read(stop - start)
        except OSError as error:
            raise InputError.single(str(file), f"cannot be read: {error}", rule="unreadable") from None
