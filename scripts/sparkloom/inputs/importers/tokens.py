"""What shell text consists of: words of parts, signs between them, and what is read from or written to a file."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Part:
    """Literal text, or what stands behind a `$`; `quoted` says whether the shell would split it."""

    text: str
    kind: str = "text"  # text, variable, command, array, sum
    quoted: bool = False


@dataclass(slots=True)
class Word:
    line: int
    raw: str = ""
    parts: list[Part] = field(default_factory=list)

    @property
    def plain(self) -> str | None:
        """Its text, where nothing in it is to be replaced."""
        return "".join(part.text for part in self.parts) if all(p.kind == "text" for p in self.parts) else None


@dataclass(slots=True)
class Sign:
    line: int
    text: str


@dataclass(slots=True)
class Redirection:
    line: int
    sign: str
    target: Word | None
    body: str | None = None  # of a here-document


Token = Word | Sign | Redirection
