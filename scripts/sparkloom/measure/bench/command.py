"""`sparkloom bench` from its options to its exit status.

They are read by argparse: the library behind the other commands loads a validator to read a number, which alone would
cost this program as much CPU time and memory as a whole level of eight streams.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from sparkloom.base.errors import InputError, Problem
from sparkloom.base.table import window
from sparkloom.inputs import remembered
from sparkloom.measure.bench import origin, result, settings, target
from sparkloom.measure.bench.exchange import Limits
from sparkloom.measure.bench.run import Bench, Run
from sparkloom.measure.bench.settings import Settings

ABOUT = """\
Measure a served model: first token, tokens a second, text or garbage.

Streams chat completions with fixed prompts; the engine reports the token
counts. Each level shows the time to the first token (reasoning counts),
milliseconds per token, tok/s of each request, their sum (posts call it peak),
and all tokens divided by the level's time. The guard reads every stream:
garbage makes the run invalid."""
END = """\
SPARKLOOM_API_KEY or --api-key-file gives the server's key; no option takes the
key itself.

Exit status: 0 valid; 1 garbage, failed requests, or no token counts;
2 unusable options, or no server; 130 stopped by Ctrl-C (143 by SIGTERM): the
results up to then are shown and kept.

  sparkloom bench --url http://spark1:30000 -i inventories/home -o build/home
  sparkloom bench -i inventories/home --group chat
  sparkloom bench --url https://llm.home --ca ca.pem --rate 0.2,0.5,1 --max-tokens 512
  sparkloom bench --url http://spark1:30000 -n 1,6 --depth 8k,64k,128k --prefix 0.9 --max-tokens 256

docs/bench.md explains every number."""


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
    what, asked = parse(words)
    begun = time.monotonic()
    of = {"profile": asked.profile, "streams": what.streams, "group": asked.group, "model": what.model}
    site = origin.site(asked.inventory, **of)
    where = _where(asked, site.pop("endpoint", None))
    what = _which(what, site)
    progress = result.Progress(None if asked.quiet else sys.stderr)
    file: Path | None = None
    provenance: dict[str, Any] = {}

    def keep(run: Run) -> None:
        if file:
            result.write(file, result.document(run, {**provenance, "client": result.client(begun)}))

    made = Bench(what, where, (lambda *_: None) if asked.quiet else progress, keep, site)
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


OPTIONS = Path(__file__).with_name("options.json")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError.single("sparkloom bench", f"{message}; --help lists the options", rule="option")


def parse(words: Sequence[str]) -> tuple[Settings, argparse.Namespace]:
    """What is measured, and all options as they were given; InputError names the option, `--help` ends the program."""
    read = _parser().parse_args(list(words))
    if not read.url:  # another server is not the remembered site's
        read.inventory = remembered.meant(read.inventory)
    if read.group and not read.inventory:
        raise InputError.single("--group", "of which site? -i names it", rule="option")
    if not read.url and not read.inventory:
        raise InputError.single("sparkloom bench", "where? --url names the server, -i the site", rule="option")
    chosen = {name: getattr(read, name) for name in Settings._fields if name != "limits"}
    what = Settings(**chosen, limits=Limits(read.first_s, read.stall_s))
    if what.prefix and not any(what.depths):
        raise InputError.single("--prefix", "a share of --depth, and none is given", rule="option")
    return what, read


def _least(kind: type[int] | type[float], least: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(-1)
        if not value >= least:
            words = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"'{text}' is not {words} of at least {least:g}")
        return value

    return read


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no share; write a number from 0 to 1")
    return value


READERS: dict[str, Callable[[str], Any]] = {
    "int": int, "path": Path, "share": _share, "seconds": _least(float, 0.1),
    "tokens": lambda text: settings.depths("--prompt-tokens", text)[0],
    "number from 0": _least(float, 0), "from 0": _least(int, 0), "from 1": _least(int, 1), "from 2": _least(int, 2),
    "streams": partial(settings.numbers, "--concurrency"), "rates": partial(settings.rates, "--rate"),
    "depths": partial(settings.depths, "--depth"),
}  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    """A value that nobody gives is that of the Settings; `options.json` has all else of an option."""
    parser = _Parser(
        prog="sparkloom bench",
        description=ABOUT,
        epilog=END,
        allow_abbrev=False,
        add_help=False,
        formatter_class=_formatter,
    )
    parser.register("action", "switch", argparse.BooleanOptionalAction)
    for name, reader in READERS.items():
        parser.register("type", name, reader)
    for title, options in json.loads(OPTIONS.read_text(encoding="utf-8")).items():
        group = parser.add_argument_group(title)
        for option in options:
            group.add_argument(*option.pop("names"), **option)
    parser.set_defaults(**Settings._field_defaults, **Limits._field_defaults)
    return parser


def _formatter(prog: str) -> argparse.HelpFormatter:
    import shutil  # for --help alone

    width = min(shutil.get_terminal_size().columns, 118)
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=width)
