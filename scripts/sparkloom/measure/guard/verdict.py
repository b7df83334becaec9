"""What the guard says."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from sparkloom.onnode.sse import Channel


class Verdict(NamedTuple):
    """`at_chunk` counts chunks of all channels from 0; `at_char` counts characters of the named channel.

    Both say where the stream could have been stopped, not where the trouble began. `cut` is no judgement of the text:
    the recorded stream did not come to its end.
    """

    verdict: Literal["ok", "garbage", "cut"]
    kind: str | None = None
    at_chunk: int | None = None
    at_char: int | None = None
    channel: Channel | None = None
    why: str | None = None
    looked_at: str | None = None

    @property
    def ok(self) -> bool:
        return self.verdict == "ok"

    def as_dict(self) -> dict[str, Any]:
        told = self._asdict()
        shown = {name: told[name] for name in ("verdict", "kind", "at_chunk", "at_char")}
        if self.looked_at:
            shown["looked_at"] = self.looked_at
        if self.why:
            shown |= {"channel": self.channel, "why": self.why}
        return shown


OK = Verdict("ok")


class Symptom(NamedTuple):
    """What one detector found, without a place."""

    kind: str
    why: str
