"""llama.cpp: rank 0 runs llama-server, every other rank lends its memory through rpc-server.

Both stand in no PATH of any image, so the catalog says where they are, and under which names builds have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sparkloom.inputs.catalogs.catalog import Catalog
from sparkloom.inputs.image_recipes import HOST
from sparkloom.inputs.profile import FlagValue, LoadedSketch
from sparkloom.launch import ports
from sparkloom.launch.engines import base
from sparkloom.launch.engines.base import engine_setting, topology_setting
from sparkloom.launch.values import EnvVar, Place, Setting, Topology

NEWEST = "b11669"  # of the catalogs: it knows most spellings
LOUD = 4


class LlamaCpp(base.Adapter):
    name = "llamacpp"
    published = f"{HOST}/llama.cpp:{{release}}-sm121"
    lends = ports.RPC
    key_words = ("--api-key-file", base.KEY_FILE)

    def derived(self, loaded: LoadedSketch, topology: Topology) -> list[Setting]:
        model = loaded.profile.model
        file = f"{base.model_folder(model.id)}/{model.file or 'model.gguf'}"
        settings = [
            engine_setting("model", file, "the first shard; llama.cpp finds its siblings"),
            *base.listening(self.port),
            base.counting("metrics"),
        ]
        if Catalog.load(self.name, loaded.profile.engine.release, self.dialect).flag("verbosity"):
            settings.append(engine_setting("verbosity", LOUD, "below it a build says nothing while it loads"))
        if topology.distributed:
            helpers = ",".join(f"{topology.address(place)}:{ports.RPC}" for place in topology.places[1:])
            settings.append(topology_setting("rpc", helpers, "the other ranks, on the first rail"))
        return settings

    def rank_settings(self, topology: Topology, place: Place) -> tuple[Setting, ...]:
        if not place.rank:
            return ()
        why = "listens on the rail only: the RPC protocol has no authentication"
        return (
            topology_setting("host", topology.address(place), why),
            topology_setting("port", ports.RPC, "see rpc of rank 0"),
        )

    def environment(self, topology: Topology, place: Place) -> list[EnvVar]:
        """It reads one file, and no hub's cache."""
        return []

    def ports(
        self, flags: Mapping[str, FlagValue], env: Mapping[str, str], release: str, nodes: int
    ) -> list[ports.Port]:
        lent = [ports.Port(ports.RPC, "memory that the other ranks lend")] if nodes > 1 else []
        return [*super().ports(flags, env, release, nodes), *lent]

    def canonical(self, settings: Iterable[Setting]) -> dict[str, FlagValue]:
        """By the catalog's names: a profile writes --parallel as `np`, since `parallel` is the placement there."""
        known = Catalog.load(self.name, NEWEST, self.dialect)
        result: dict[str, FlagValue] = {}
        for setting in settings:
            flag = known.flag(setting.name)
            off = flag is not None and any(name.lstrip("-").replace("-", "_") == setting.name for name in flag.off)
            result[flag.dest if flag else setting.name] = not setting.value if off else setting.value
        return result

    def argv(self, settings: Sequence[Setting], topology: Topology, place: Place, release: str) -> tuple[str, ...]:
        known = Catalog.load(self.name, release, self.dialect)
        if place.rank:
            return (known.programs["rpc-server"][0], *base.words(self.rank_settings(topology, place)))
        words = base.words(settings, joined=False)  # no `=`: its parser takes the word behind a flag as it is
        return (known.programs["llama-server"][0], *(_dashed(word, known.spellings) for word in words))


def _dashed(word: str, known: Mapping[str, str]) -> str:
    """-np has one dash."""
    return word[1:] if word.startswith("--") and word not in known and word[1:] in known else word


ADAPTER = LlamaCpp()
