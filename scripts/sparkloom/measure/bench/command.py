"""`sparkloom bench` from its options to its exit status."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparkloom.base.errors import InputError, Problem
from sparkloom.base.table import window
from sparkloom.measure.bench import arguments, origin, result, settings, target
from sparkloom.measure.bench.run import Bench, Run


def _by_level(told: dict[str, float] | None) -> dict[int, float]:
    return {int(n): float(value) for n, value in (told or {}).items()}


def _where(asked: Namespace, endpoint: Any) -> target.Target:
    """The server that was named; without one the site's own endpoint, with the authority and key that belong to it."""
    url, ca, key_file = asked.url, asked.ca, asked.api_key_file
    key = os.environ.get("SPARKLOOM_API_KEY")
    if not url:
        if not endpoint:
            raise InputError.single("--inventory", "expected -i INVENTORY, or --url of a server", rule="no-endpoint")
        if "url" not in endpoint:
            raise InputError([Problem(**endpoint)])
        url, ca = endpoint["url"], ca or _path(endpoint["ca"])
        key_file = key_file or (None if key else _path(endpoint["key_file"]))
    return target.parse(url, ca=ca, key=target.read_key(key_file, key))


def _which(what: settings.Settings, site: dict[str, Any]) -> settings.Settings:
    """Asked for by the name that leads to the group; a site that serves several is not measured as one of them."""
    several, name, asleep = site.pop("several", None), site.get("asked_for"), site.pop("asleep", None)
    if asleep and not what.url:
        message = f"{asleep} is asleep; ask it something first, which wakes it, and measure once it has answered"
        raise InputError.single("--group", message, rule="asleep")
    if several and not what.url and not what.model:
        raise InputError.single(
            "--group", f"{several}; name one, or what clients ask for with --model", rule="which-group"
        )
    return what._replace(model=str(name)) if name and not what.model and site.get("group") else what


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _submit(file: Path, data: dict[str, Any]) -> None:
    from sparkloom.measure.bench import arena  # tables of numbers, for who asks for one

    arena.write(file, data)
    sys.stderr.write(f"for Spark Arena: {file}; its own profile is {arena.PROFILE}\n")


def bench(words: Sequence[str]) -> int:
    """Measures, shows and keeps; 0 valid, 1 not, 128 + the signal when it was stopped."""
    gc.freeze()
    gc.set_threshold(
        50_000
    )  # a stream makes no cycles; looking for them every 700 objects would cost a tenth of its time
    what, asked = arguments.parse(words)
    begun = time.monotonic()
    of = {"profile": asked.profile, "streams": what.streams, "group": asked.group, "model": what.model}
    site = origin.site(asked.inventory, **of)
    where = _where(asked, site.pop("endpoint", None))
    what = _which(what, site)
    bounds, ceilings = (_by_level(site.get(name)) for name in ("bounds", "ceilings"))
    progress = result.Progress(None if asked.quiet else sys.stderr)
    file: Path | None = None
    provenance: dict[str, Any] = {}

    def keep(run: Run) -> None:
        if file:
            result.write(file, result.document(run, {**provenance, "client": result.client(begun)}))

    made = Bench(what, where, (lambda *_: None) if asked.quiet else progress, keep, bounds, ceilings)
    file = result.path(asked.output, made.run.model) if asked.output else None
    provenance |= origin.collect(where, what, made.run.model, settings.asked(what), site)
    run = made.measure()
    data = result.document(run, {**provenance, "client": result.client(begun)})
    if file and run.levels:
        result.write(file, data)
    if asked.submit and run.levels:
        _submit(asked.submit, data)
    shown = json.dumps(data, indent=1) + "\n" if asked.as_json else result.table(data, window(sys.stdout))
    sys.stdout.write(shown)
    if file and run.levels:
        sys.stderr.write(f"kept in {file}\n")
    if run.signal is not None:
        name = signal.Signals(run.signal).name
        sys.stderr.write(f"stopped by {name}; what was measured until then is kept above\n")
        return 128 + run.signal
    return 0 if data["valid"] else 1
