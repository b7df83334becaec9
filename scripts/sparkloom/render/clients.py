"""What a person pastes so that a program asks a site: clients.yml, filled in. No key is in it, only where one is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from sparkloom.base import document

FILE = Path(__file__).with_name("clients.yml")


@dataclass(frozen=True, slots=True)
class Client:
    """`shell`: what a shell is told first; `file` gets `text`; `run` asks."""

    name: str
    title: str
    asks: str
    run: str
    shell: str = ""
    trust: str = ""
    file: str = ""
    text: str = ""
    prompt: int = 0

    @property
    def lines(self) -> str:
        """As they are pasted: nothing is wrapped."""
        file = f"# {self.file} gets:\n{self.text}\n# then:" if self.file else ""
        return "\n".join(lines for lines in (self.shell, file, self.run) if lines)

    def filled(self, told: Mapping[str, str]) -> Client:
        """`told`: URL, MODEL, KEY and CA; without a CA everybody trusts the certificate already."""
        known = {**told, "ROOT": told["URL"].removesuffix("/v1")}

        def put(text: str) -> str:
            text = text if known["CA"] else text.replace("--cacert @CA@ ", "")
            for name, value in known.items():
                text = text.replace(f"@{name}@", value)
            return text.strip()

        trust = put(self.trust) if known["CA"] else ""
        shell = "\n".join(lines for lines in (put(self.shell), trust) if lines)
        return replace(self, run=put(self.run), shell=shell, trust=trust, text=put(self.text))


@cache
def every() -> dict[str, Client]:
    return {entry["name"]: Client(**entry) for entry in document.own(FILE.read_text(encoding="utf-8"))}
