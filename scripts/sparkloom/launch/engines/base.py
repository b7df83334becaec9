"""What every engine adapter has in common: how settings become words, and what the fabric requires."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sparkloom.base import document
from sparkloom.inputs.catalogs.flagtypes import PLAIN, Dialect
from sparkloom.inputs.profile import FlagValue, LoadedSketch, Model
from sparkloom.launch import fabric, ranges
from sparkloom.launch.ports import Port
from sparkloom.launch.ranges import Range
from sparkloom.launch.values import EnvVar, Origin, Place, Setting, Topology

if TYPE_CHECKING:
    from sparkloom.launch.memory.constants import Requirements
    from sparkloom.launch.memory.fit import Fit
    from sparkloom.launch.view import ModelView

MODELS = "/models"  # where the node's model store is mounted in every pod (a hub cache, read offline)
CACHE = "/cache"  # where the node keeps kernels compiled at run time, one folder per profile and image
SEALED = "/sealed"  # the node's copy of them, which a pod only reads
_COMMON: dict[str, Any] = document.own(Path(__file__).with_name("common.yml").read_text())
LOADERS: Mapping[object, str] = _COMMON["loaders"]
SITED: Mapping[str, str] = _COMMON["sited"]
FILES: Sequence[str] = _COMMON["files"]
MODEL_FOLDER = "{model_folder}"  # in a flag's text: the folder of this model's files inside the store

LOAD_FORMATS = ("load_format", "speculative_draft_load_format")


def model_folder(model_id: str) -> str:
    """A link that the model store keeps beside the hub cache, for engines that want a path and not an id."""
    return f"{MODELS}/by-name/{model_id.replace('/', '--')}"


class Adapter:
    """What an engine is asked. Its own class, and `engine.yml` in its folder, say what differs from these answers."""

    name: str
    port: int
    reserved: Sequence[str]  # flags that follow from the topology; a profile may not set them
    starts: tuple[tuple[str, ...], ...] = ()  # how others' command lines begin that start it, longest first
    placed: Mapping[str, str] = {}  # flags of such lines that are a part of launch.parallel here, or the model's name
    usual: bool = False  # where nobody's launch of a model is known
    one_file: bool = False  # a model's name may say which of its files, behind a colon
    published: str = ""  # the image that its project publishes for a release
    filed: Mapping[str, str] = {}  # flags that name a YAML file, and the launch key under which a profile has its text
    lost: Mapping[str, str] = {}  # flags of such lines that have no counterpart here, with what they do
    sited_env: Mapping[str, str] = {}  # likewise variables that say nothing here
    sited: Mapping[str, str] = {}  # and those that follow from the inventory or are sparkloom's own, with why (SITED)
    generates = ""  # a path that answers 200 only when a token was produced, also under load; empty where none does
    nccl = True  # whether its ranks speak NCCL to each other, over the rails' RDMA devices
    alone = ""  # why its ranks cannot meet, and it serves on one node only; empty where they can
    no_copies = "has no data parallelism that spans nodes; write dp: 1"  # empty where launch.parallel.dp may be more
    lends = 0  # port at which every rank but the first lends its memory; rank 0's engine starts once all do
    package = ""  # its own, as Python imports it
    schedulers: tuple[str, ...] = ()  # titles of the processes without which it only looks alive
    progress: tuple[tuple[str, str], ...] = ()  # patterns of its log, and what a start is at then
    compiles = True  # kernels at run time, into the node's cache: a first start takes long
    caches: Mapping[str, str] = {}  # variables of its own for such kernels, and the folder of each in the node's cache
    works: tuple[str, ...] = ()  # patterns of its log that say that it computes
    metrics = ""  # the path of its own counters, named in measure.json
    patient_flags: tuple[str, ...] = ()  # seconds after which it gives itself up: launch/patience.py says how many
    patient_env: tuple[str, ...] = ()
    key_words: tuple[str, ...] = ()  # of rank 0 in its pod: where the API key stands, as a file of a Secret
    dialect: Dialect = PLAIN  # how its parser reads a command line
    ranges: Mapping[str, Range] = {}  # what its numbers may be, where the parser takes any (launch/ranges.py)
    synonyms: Mapping[str, str] = {}  # of its flags, and what each is called here
    called: Mapping[str, str] = {}  # what engines name each in its own way, and this one's flag for it

    def __init__(self) -> None:
        """What is data, from the folder that the class stands in."""
        folder = Path(str(sys.modules[type(self).__module__].__file__)).parent
        told: dict[str, Any] = document.own((folder / "engine.yml").read_text(encoding="utf-8"))
        told["starts"] = tuple(map(tuple, told.get("starts", ())))
        told["sited"] = {flag: SITED.get(why, why) for flag, why in told.get("sited", {}).items()}
        told["ranges"] = {flag: ranges.of(limits) for flag, limits in told.get("ranges", {}).items()}
        for key, value in told.items():
            setattr(self, key, value)

    def first_flags(self, model: Model) -> dict[str, FlagValue] | None:
        """With what a first launch begins, where nobody's launch of the model is known; None where none is drafted."""
        return None

    def derived(self, loaded: LoadedSketch, topology: Topology) -> list[Setting]:
        """The flags that follow from model and topology."""
        raise NotImplementedError

    def argv(self, settings: Sequence[Setting], topology: Topology, place: Place, release: str) -> tuple[str, ...]:
        raise NotImplementedError

    def rank_settings(self, topology: Topology, place: Place) -> tuple[Setting, ...]:
        """What one rank is told beside what all are."""
        return ()

    def spell(self, settings: Sequence[Setting], release: str) -> tuple[Setting, ...]:
        """Settings in the spelling that `release` prefers; unknown ones stay as written, for lint to name."""
        return tuple(settings)

    def canonical(self, settings: Iterable[Setting]) -> dict[str, FlagValue]:
        """The same settings under their oldest names, which is what rules are written against."""
        return {setting.name: setting.value for setting in settings}

    def environment(self, topology: Topology, place: Place) -> list[EnvVar]:
        nccl = nccl_environment(topology, place) if self.nccl else []
        return [*offline_environment(), *cache_environment(self.caches), *nccl]

    def ports(self, flags: Mapping[str, FlagValue], env: Mapping[str, str], release: str, nodes: int) -> list[Port]:
        """Every port that it listens at in this release, by its oldest flags' names."""
        return [Port(self.port, f"the API of {self.name}")]

    def whole_prefill(self, flags: Mapping[str, FlagValue]) -> bool:
        """Whether a long prompt is one step, in which none of its counters moves."""
        return False

    def other_command(self, words: Sequence[str]) -> str:
        """What a command that others write beside this engine's start is here; empty where it is none of its own."""
        return ""

    def modules(self, flags: Mapping[str, FlagValue]) -> list[dict[str, str]]:
        """Packages that a flag's value needs and that the engine's own list does not bring everywhere."""
        given = ((name, flags.get(name)) for name in LOAD_FORMATS)
        return [{"module": LOADERS[word], "flag": f"{name} {word}"} for name, word in given if word in LOADERS]

    def files(self, settings: Sequence[Setting], loaded: LoadedSketch) -> dict[str, str]:
        """Path in the pod -> text, where an engine reads a file of its own."""
        return {}


class Memory(Protocol):
    """The module `memory` of an engine's folder, read only when a plan is made.

    It may have `shared(view) -> flags`, too: what the engine is told so that it keeps to what `view` has free, whoever
    else has a share of its Sparks and started before or after it.
    """

    def requirements(self, view: ModelView) -> Requirements: ...

    def fit(self, view: ModelView, needs: Requirements) -> Fit: ...


KEY_FOLDER = "/sparkloom/key"  # of a Secret, in rank 0's pod
KEY_CONFIG = ("--config", f"{KEY_FOLDER}/engine.yaml")
KEY_FILE = f"{KEY_FOLDER}/key"  # the key and nothing else; the supervisor reads it too


def topology_setting(name: str, value: FlagValue, why: str) -> Setting:
    return Setting(name, value, Origin("topology", why=why))


def engine_setting(name: str, value: FlagValue, why: str) -> Setting:
    return Setting(name, value, Origin("engine", why=why))


def listening(port: int, why: str = "the engine's own default, named so that nothing guesses") -> list[Setting]:
    """Where rank 0 answers; the same for every engine."""
    reach = "the Service reaches the pod's address; a NetworkPolicy closes the port to others"
    return [engine_setting("host", "0.0.0.0", reach), engine_setting("port", port, why)]


def counting(flag: str) -> Setting:
    """The switch of an engine's own /metrics, where it is off unless asked for."""
    return engine_setting(flag, True, "its counters tell a busy engine from a dead one, and bench reads its gauges")


def words(settings: Iterable[Setting], *, dash: str = "-", joined: bool = True) -> list[str]:
    """Command-line words. A switch that is false is left out.

    Full names only: the engines' parsers accept any unambiguous prefix, and what is unambiguous in one
    release is not in the next. So a value that begins with a dash is joined to its flag, where the parser takes that.
    """
    result: list[str] = []
    for setting in settings:
        if setting.value is None or setting.value is False:
            continue
        flag, given = "--" + setting.name.replace("_", dash), values(setting.value)
        dashed = joined and len(given) == 1 and given[0].startswith("-")
        result += [f"{flag}={given[0]}"] if dashed else [flag, *given]
    return result


def values(value: FlagValue) -> list[str]:
    """The words behind a flag; a mapping travels as JSON."""
    if value is True:
        return []
    if isinstance(value, dict):
        return [json.dumps(value, separators=(",", ":"))]
    return [text(item) for item in value] if isinstance(value, list) else [text(value)]


def text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def offline_environment() -> list[EnvVar]:
    return _variables("offline", "platform", models=MODELS)


def cache_environment(own: Mapping[str, str]) -> list[EnvVar]:
    """Kernels compiled at run time outlive the pod; the engine's own cache variables come on top."""
    common = _variables("caches", "platform", cache=CACHE)
    return [*common, *(replace(common[0], name=name, value=f"{CACHE}/{folder}") for name, folder in own.items())]


def nccl_environment(topology: Topology, place: Place) -> list[EnvVar]:
    """What NCCL must be told on GB10 rails. Nothing here for a rank that is alone."""
    if not topology.distributed:
        return []
    words = {
        "hcas": ",".join(endpoint.hca for endpoint in place.endpoints),
        "first": fabric.pod_interface(0),
        "prefix": place.endpoints[0].prefix,
        "traffic_class": fabric.LOSSLESS_DSCP << 2 | 2,
    }
    several = ["ring"] if topology.ring else ["two rails"] if len(place.endpoints) > 1 else []
    parts = ["rails", *several, *(["lossless"] if topology.lossless else [])]
    return [variable for part in parts for variable in _variables(part, "fabric", **words)]


def _variables(part: str, origin: str, **words: object) -> list[EnvVar]:
    """One part of environment.yml."""
    told = _environment()[part].items()
    return [EnvVar(name, value.format(**words), Origin(origin, why=why)) for name, (value, why) in told]


@cache
def _environment() -> dict[str, dict[str, tuple[str, str]]]:
    read: dict[str, dict[str, tuple[str, str]]] = document.own(Path(__file__).with_name("environment.yml").read_text())
    return read
