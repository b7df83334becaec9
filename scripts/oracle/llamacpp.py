"""The flags of a llama.cpp build, read from what its own programs print for --help: names and types; no text is copied.

    python -m scripts.oracle.llamacpp b11669 SERVER_HELP RPC_HELP --of "Debian 0.7.0+dfsg-2" > llamacpp-b11669.json

SERVER_HELP and RPC_HELP are files with what `llama-server --help` and `rpc-server --help` printed. A build knows what
it was compiled with: --rpc is missing where the backend is.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from . import catalog

COLUMN = 40  # where descriptions begin; a longer head has its description on the next line
NAME = re.compile(r"-{1,2}[A-Za-z][\w.-]*")
EXITS = re.compile(r"print (?:usage|the|list|source|version|cache)|show (?:this|list|version|source)|and exit")
WHOLE = {"N", "PORT", "INDEX", "SEED", "MiB"}
PROGRAMS = {"llama-server": ["/app/llama-server"], "rpc-server": ["/app/rpc-server", "/app/ggml-rpc-server"]}

Facts = dict[str, Any]


def entries(text: str) -> list[tuple[str, str]]:
    """(head, description) of every flag: what is typed, and what is said of it."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("-") and not line.startswith("-----"):
            short = len(line) > COLUMN and line[COLUMN - 1] == " "
            found.append((line[:COLUMN].strip(), line[COLUMN:]) if short else (line.strip(), ""))
        elif line.startswith(" " * COLUMN) and found:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line[COLUMN:]}")
    return found


def names(head: str) -> tuple[list[str], str]:
    """Every spelling, and the word for the value, if it takes one."""
    spellings: list[str] = []
    rest = head
    while match := NAME.match(rest):
        spellings.append(match[0])
        rest = rest[match.end() :].lstrip(" ,")
    return spellings, rest


def described(head: str, text: str) -> tuple[str, Facts]:
    spellings, value = names(head)
    positive = [name for name in spellings if not name.startswith("--no-")]
    off = [name for name in spellings if name.startswith("--no-")] if positive else []
    off += [name for name in positive if off and re.match(r"-n\w", name)]  # -nkvo beside --no-kv-offload
    main = next((name for name in positive or spellings if name.startswith("--")), spellings[0])
    facts: Facts = {"also": [name for name in spellings if name != main and name not in off]}
    if value:
        facts |= _value(value, text)
    else:
        facts["action"] = "toggle" if off else "exit" if EXITS.search(text) else "true"
        facts["off"] = off
    if "DEPRECATED" in text or "deprecated" in text.split("\n")[0]:
        facts["deprecated"] = True
    return main, {key: entry for key, entry in facts.items() if entry not in ([], None)}


def _value(word: str, text: str) -> Facts:
    default = re.search(r"\(default:\s*'?([^\s,)';]+)", text)
    told = default[1] if default else ""
    choices = _choices(word, text)
    if choices:
        wordy = re.fullmatch(r"[a-z]+", told) and not choices[0].isdigit()  # "same as ..." is no value
        facts: Facts = {"choices": sorted({*choices, *([told] if wordy else [])})}
        return facts | ({"default": told} if told in facts["choices"] else {})
    if len(word.split()) > 1 and word.isupper():
        return {"nargs": len(word.split())}
    if re.fullmatch(r"-?\d+", told) and word in WHOLE:
        return {"type": "int", "default": int(told)}
    if re.fullmatch(r"-?\d+\.\d+", told):
        return {"type": "float"}
    if word == "N" and re.search(r"number of|first N", text) and not told.isalpha():  # "auto" is a value
        return {"type": "int"}
    return {"type": "json_object"} if word == "STRING" and "json" in text.lower() else {}


def _choices(word: str, text: str) -> list[str]:
    """In the word for the value, in a sentence, or as a list."""
    if word.startswith(("[", "{", "<")) and "..." not in word:
        listed = re.fullmatch(r"[\[{]([\w.+-]+(?:[,|][\w.+-]+)+)[\]}]|<(\d(?:\|\d)+)>", word)
        return re.split(r"[,|]", listed[1] or listed[2]) if listed else []
    if allowed := re.search(r"allowed values: ([^\n]+)", text):
        return allowed[1].split(", ")
    bullets = re.findall(r"^- ([\w+.-]+)(?: \(default\))?:", text, re.MULTILINE)
    return bullets if len(bullets) > 1 else []


def flags(text: str) -> dict[str, Facts]:
    return dict(described(head, told) for head, told in entries(text))


def lender(text: str) -> dict[str, Facts]:
    """rpc-server writes its list another way: two spaces before each flag."""
    found = {}
    for line in text.splitlines():
        if match := re.match(r"  (-\w), (--[\w-]+)(?: (\S+))?\s", line):
            short, name, value = match.groups()
            default = re.search(r"\(default: ([^\s)]+)\)", line)
            facts: Facts = {"also": [short]}
            if not value:
                facts["action"] = "exit" if name == "--help" else "true"
            elif default and default[1].isdigit():
                facts |= {"type": "int", "default": int(default[1])}
            elif default:
                facts["default"] = default[1]
            found[name] = facts
    return found


def build(release: str, server: str, rpc: str, of: str) -> dict[str, Any]:
    return {
        "engine": "llamacpp",
        "version": release,
        "source": f"what llama-server and rpc-server print for --help ({of}), read by scripts/oracle",
        "entry": ["llama-server"],
        "positionals": [],
        "prefixes": False,
        "short_keys": True,
        "programs": PROGRAMS,
        "registries": {},
        "flags": flags(server),
        "env": {},
        "others": {"rpc-server": {"also": ["ggml-rpc-server"], "flags": lender(rpc)}},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.oracle.llamacpp", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("release", help="the build, as b11669")
    parser.add_argument("server_help", type=Path, help="what `llama-server --help` printed")
    parser.add_argument("rpc_help", type=Path, help="what `rpc-server --help` printed")
    parser.add_argument("--of", required=True, help="which program that was: who packed it, and when")
    given = parser.parse_args()
    server, rpc = given.server_help.read_text(), given.rpc_help.read_text()
    print(catalog.dump(build(given.release, server, rpc, given.of)), end="")


if __name__ == "__main__":
    main()
