"""Random command lines around what a release knows: right, nearly right and wrong ones, the same for the same seed."""

from __future__ import annotations

import json
import random

from sparkloom.inputs.catalogs.catalog import Catalog, Flag

_START = {"sglang": ["python3", "-m", "sglang.launch_server", "--model-path", "m"], "vllm": ["vllm", "serve", "m"]}
# Flags with checks of their own after parsing, which the catalog does not hold.
_LEFT_OUT = {
    "--config",
    "--data-parallel-multi-port-external-lb",
    "--enable-per-request-metrics",
    "--grpc-port",
    "--model",
    "--reasoning-effort-map",
    "--sse-keep-alive-interval",
}
_ODD = [
    "abc",
    "-1",
    "-5",
    "0.5",
    "1e3",
    "",
    "None",
    "{bad",
    "{}",
    "[1",
    "true",
    "12 ",
    "1_000",
    "x y",
    "a=b",
    "10K",
    "3.5M",
]
_FITTING = {
    "int": ["4"],
    "float": ["0.5"],
    "size": ["8k", "4096", "4K", "1.5k", "2Ki", "1.5Ki"],
    "size_or_auto": ["auto", "-1", "8k"],
    "json": ['{"a":1}', "[1]", "3"],
    "json_object": ["{}", '{"zz":1}', "[]"],
    "str_or_json": ["x", '{"a":"b"}', "{bad}"],
    "lora": ["a=/b", '{"lora_name":"a","lora_path":"/b"}', '{"name":"a","path":"/b"}', "/b"],
}


def command_lines(catalog: Catalog, count: int, seed: int) -> list[list[str]]:
    chance = random.Random(seed)
    flags = [flag for flag in catalog.flags() if flag.action != "exit" and flag.name not in _LEFT_OUT]
    return [_line(catalog, flags, chance) for _ in range(count)]


def _line(catalog: Catalog, flags: list[Flag], chance: random.Random) -> list[str]:
    words = list(_START[catalog.engine])
    if chance.random() < 0.05:
        words = words[:-1]
    for flag in chance.sample(flags, chance.randint(1, 4)):
        words += _use(flag, chance)
    return words


def _use(flag: Flag, chance: random.Random) -> list[str]:
    name = _spelling(flag, chance)
    if not flag.takes_value:
        after = [chance.choice(["true", "false"])] if chance.random() < 0.06 else []
        return [name if chance.random() < 0.95 else f"{name}=1", *after]
    count = 1 if chance.random() < 0.9 else chance.choice([0, 2])
    values = [_value(flag, chance) for _ in range(chance.randint(0, 3) if flag.many else count)]
    if values and chance.random() < 0.15:
        return [f"{name}={values[0]}", *values[1:]]
    return [name, *values]


def _spelling(flag: Flag, chance: random.Random) -> str:
    name, draw = chance.choice(flag.names), chance.random()
    if draw > 0.95:
        return name[: chance.randint(3, len(name))] if len(name) > 3 else name
    if draw > 0.92 and name.startswith("--"):
        return "--" + name[2:].replace("-", "_")
    return name + "x" if draw > 0.90 else name


def _value(flag: Flag, chance: random.Random) -> str:
    if chance.random() > 0.55:
        return chance.choice(_ODD)
    if flag.choices:
        return str(chance.choice(flag.choices))
    if flag.fields and chance.random() < 0.5:
        return json.dumps({chance.choice(flag.fields).split(".")[0]: {}}) if "." in flag.fields[0] else "{}"
    return chance.choice(_FITTING.get(flag.type, ["some/text"]))
