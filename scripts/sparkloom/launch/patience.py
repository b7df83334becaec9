"""How long an engine may be left alone before something calls it dead: one figure for all its own watchdogs.

Engines end themselves while they only compile: SGLang's watchdog after 300 s and its warm-up after 600 s, vLLM's API
server when its core is not ready after 600 s. A first start on a GB10 compiles kernels for up to 36 minutes. Our own
supervisor finds a hang within two minutes (onnode/rank/progress.py), so theirs need not be short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkloom.launch.values import EnvVar, Origin, Setting

if TYPE_CHECKING:
    from sparkloom.inputs.catalogs.catalog import Catalog
    from sparkloom.launch.engines.base import Adapter

FIRST_COMPILE = 36 * 60  # field reports of a cold FlashInfer cache on a GB10, 2026
SECONDS = 3600  # the same with room for slower nodes; what launch scripts of vroomfondel/dgxarley set too
LONGEST_LOAD = 490  # of the loads that were measured: Nemotron Ultra, 83.7 GiB a rank
START_OVER = 300  # graphs, a first token
WHOLE_PREFILL = 900  # one prefill that is not cut in chunks moves no counter; 505 s were seen (sparkring#231)

WHY = f"a first start compiles for up to {FIRST_COMPILE // 60} min; the rank's supervisor finds a hang in two"


def start_seconds(load_seconds: float | None) -> int:
    """From the engine's start to its first token: three times the load, and a first compilation."""
    return int(3 * (load_seconds or LONGEST_LOAD) + FIRST_COMPILE + START_OVER)


def wait_seconds(load_seconds: float | None) -> int:
    """For whoever waits for a group from outside: its own budget, and pods that are made and meet first."""
    return start_seconds(load_seconds) + 2 * START_OVER


def settings(engine: Adapter, catalog: Catalog | None) -> list[Setting]:
    """The flags for it that this release knows; none of an engine without a catalog."""
    known = [name for name in engine.patient_flags if catalog and catalog.flag(name)]
    return [Setting(name, SECONDS, Origin("platform", why=WHY)) for name in known]


def environment(engine: Adapter, catalog: Catalog | None) -> list[EnvVar]:
    known = [name for name in engine.patient_env if catalog and catalog.variable(name)]
    return [EnvVar(name, str(SECONDS), Origin("platform", why=WHY)) for name in known]
