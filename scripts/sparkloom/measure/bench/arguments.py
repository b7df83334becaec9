"""The options of `sparkloom bench`.

Read by argparse: the library behind the other commands loads a validator to read a number, which alone would cost
this program as much CPU time and memory as a whole level of eight streams.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from sparkloom.base.errors import InputError
from sparkloom.inputs import remembered
from sparkloom.measure.bench import settings
from sparkloom.measure.bench.exchange import Limits
from sparkloom.measure.bench.settings import Settings

ABOUT = """\
Measure a served model: first token, tokens a second, and whether it is text.

Streams chat completions with fixed prompts and counts by the engine's own
numbers. For each level: time to the first token (reasoning counts),
milliseconds per token, tok/s of each request, their sum (what posts call peak)
and all tokens over all time. The guard reads every stream: garbage makes the
run invalid."""
END = """\
A key for the server comes from SPARKLOOM_API_KEY or --api-key-file, never from
an option.

Exit status: 0 valid; 1 garbage, failed requests, or no token counts;
2 unusable options, or no server; 130 stopped by Ctrl-C (143 by SIGTERM): what
was measured until then is shown and kept.

  sparkloom bench --url http://spark1:30000 -i inventories/home -o build/home
  sparkloom bench -i inventories/home --group chat
  sparkloom bench --url https://llm.home --ca ca.pem --rate 0.2,0.5,1 --max-tokens 512
  sparkloom bench --url http://spark1:30000 -n 1,6 --depth 8k,64k,128k --prefix 0.9 --max-tokens 256

docs/bench.md explains every number."""


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
    what = Settings(**chosen, limits=Limits(read.first_timeout, read.stall_timeout))
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


def _tokens(text: str) -> int:
    return settings.depths("--prompt-tokens", text)[0]


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no share; write a number from 0 to 1")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="sparkloom bench", description=ABOUT, epilog=END, allow_abbrev=False, add_help=False,
        formatter_class=_formatter,
    )  # fmt: skip
    _what(parser.add_argument_group("what is sent"))
    _how(parser.add_argument_group("how"))
    _where(parser.add_argument_group("site and files"))
    return parser


def _formatter(prog: str) -> argparse.HelpFormatter:
    import shutil  # for --help alone

    width = min(shutil.get_terminal_size().columns, 118)
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=width)


def _what(add: argparse._ArgumentGroup) -> None:
    option = add.add_argument
    url = "the server: http(s)://HOST:PORT, with or without /v1 (default: the endpoint of -i)"
    option("--url", default="", help=url)
    option("--model", metavar="NAME", help="as the server names it (default: the only one)")
    levels = "levels: streams at a time (default: 1,4,8)"
    streams = partial(settings.numbers, "--concurrency")
    option("-n", "--concurrency", dest="streams", type=streams, default="1,4,8", metavar="LIST", help=levels)
    rate = "open loop: requests per second at random moments, such as 0.5,2"
    option("--rate", dest="rates", type=partial(settings.rates, "--rate"), default=(), metavar="LIST", help=rate)
    option("--requests", type=_least(int, 1), metavar="N", help="per level (default: one per stream; 32 with --rate)")
    option("--max-tokens", type=_least(int, 2), default=3072, metavar="N", help="limit of an answer (default: 3072)")
    thinking = "reasoning on or off (default: the model's own)"
    option("--thinking", action=argparse.BooleanOptionalAction, default=None, help=thinking)
    option("--temperature", type=_least(float, 0), metavar="T", help="default: the server's")
    option("--ignore-eos", action="store_true", help="let every answer run to its limit")
    counts = "ask for token counts with every chunk: exact with speculation, more bytes"
    option("--token-counts", action="store_true", help=counts)
    seed = "seed of the order of the prompts, the moments of --rate, and the engine (default: 1)"
    option("--seed", type=int, default=1, metavar="N", help=seed)
    depth = "tokens before every question, a level for each: 0,8k,64k,128k (default: 0)"
    option("--depth", dest="depths", type=partial(settings.depths, "--depth"), default=(), metavar="LIST", help=depth)
    prefix = "share of --depth that all requests have in common, for the prefix cache: 0.9 (default: 0)"
    option("--prefix", type=_share, default=0.0, metavar="SHARE", help=prefix)
    own = "further tokens before each question, never shared (default: 0)"
    option("--prompt-tokens", type=_tokens, default=0, metavar="TOKENS", help=own)
    tools = "offer tools and judge each answer's calls: name, JSON, arguments"
    option("--tools", action="store_true", help=tools)
    option(
        "--prompts",
        type=Path,
        default=settings.PROMPTS,
        metavar="FILE",
        help="other prompts, in the shape of sparkloom/measure/bench/prompts.json",
    )


def _how(add: argparse._ArgumentGroup) -> None:
    option = add.add_argument
    warmup = "tokens of the warm-up before each level, never part of a figure; 0: none (default: 32)"
    option("--warmup", dest="warmup_tokens", type=_least(int, 0), default=32, metavar="N", help=warmup)
    first = "limit for the first token (default: 600)"
    option("--first-timeout", type=_least(float, 0.1), default=600.0, metavar="SECONDS", help=first)
    stall = "limit between two tokens (default: 120)"
    option("--stall-timeout", type=_least(float, 0.1), default=120.0, metavar="SECONDS", help=stall)
    flight = "with --rate: most requests at a time; waiting counts as latency (default: 256)"
    option("--in-flight", dest="most_in_flight", type=_least(int, 1), default=256, metavar="N", help=flight)
    option("--ca", type=Path, metavar="FILE", help="CA certificates for the server (PEM)")
    option("--api-key-file", type=Path, metavar="FILE", help="file with the server's key")


def _where(add: argparse._ArgumentGroup) -> None:
    option = add.add_argument
    option("-i", "--inventory", type=Path, metavar="DIR", help="site that serves (default: `sparkloom use`)")
    option("--profile", metavar="NAME", help="with -i, if several are served")
    group = "with -i: the group to measure"
    option("--group", metavar="NAME", help=group)
    option("-o", "--output", type=Path, metavar="DIR", help="folder for the result file, a new one per run")
    submit = "also write the levels as Spark Arena's benchmark.csv"
    option("--submit", type=Path, metavar="FILE", help=submit)
    option("-q", "--quiet", action="store_true", help="no progress on standard error")
    option("--json", action="store_true", dest="as_json", help="print the result as JSON instead of the table")
    option("-h", "--help", action="help", help="show this and exit")
