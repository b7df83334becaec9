"""Every parser that takes bytes of somebody else, by name. GGUF has none here: its files are only listed by name."""

from __future__ import annotations

from tests.security.guided import clients, files, peers, said
from tests.security.guided.target import Target

TARGETS: dict[str, Target] = {**files.TARGETS, **peers.TARGETS, **clients.TARGETS, **said.TARGETS}
