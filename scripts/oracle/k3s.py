"""The flags of a K3s release, read from K3s' own source: names, types and which command takes them; no text is copied.

    python -m oracle.k3s CLONE v1.35.8+k3s1 COMMIT [COMMIT ...] > scripts/sparkloom/render/k3s/flags-v1.35.8+k3s1.json

CLONE is a git directory of K3s, or its unpacked Go module (`go mod download github.com/k3s-io/k3s@<pseudo-version>`;
its name holds commit and date). With several commits, a flag must be in all of them: where a clone lacks a release's
tag, commits before and after it enclose what the release can have.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any

SOURCE = "pkg/cli/cmds"
KINDS = {"String": "string", "Bool": "bool", "Int": "int", "Duration": "duration", "StringSlice": "list"}
SERVER = re.compile(r"ServerFlags\s*= \[\]cli\.Flag\{")
LEFT_OUT = ("_windows.go", "_test.go")
MODULE = re.compile(r"@v[\d.]+-[\w.]*?(\d{4})(\d\d)(\d\d)\d{6}-([0-9a-f]{12})$")
LITERAL = re.compile(r"&cli\.(\w+)Flag\{")
NAMED = re.compile(r"^\s*(\w+)\s*=\s*&cli\.\w+Flag\{", re.M)
REFERENCE = re.compile(r"^\s*(\w+),\s*$", re.M)

Flag = dict[str, Any]


def git(clone: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", clone, *words], capture_output=True, text=True, check=True).stdout


def unpacked(clone: Path) -> re.Match[str] | None:
    """A Go module's folder, by its name."""
    return MODULE.search(clone.name)


def resolved(clone: Path, commit: str) -> tuple[str, str]:
    """The commit in full, as far as it is known, and its date."""
    if module := unpacked(clone):
        year, month, day, short = module.groups()
        if not commit.startswith(short):
            raise ValueError(f"{clone.name} is no commit {commit}")
        return commit, f"{year}-{month}-{day}"
    return git(clone, "rev-parse", commit).strip(), git(clone, "show", "-s", "--format=%cs", commit).strip()


def sources(clone: Path, commit: str) -> str:
    if unpacked(clone):
        paths = [path for path in sorted((clone / SOURCE).glob("*.go")) if not path.name.endswith(LEFT_OUT)]
        return "\n".join(path.read_text() for path in paths)
    listed = git(clone, "ls-tree", "--name-only", commit, f"{SOURCE}/").split()
    wanted = [path for path in listed if path.endswith(".go") and not path.endswith(LEFT_OUT)]
    return "\n".join(git(clone, "show", f"{commit}:{path}") for path in wanted)


def body(text: str, start: int) -> str:
    """From an opening brace to the one that closes it."""
    depth = 0
    for index in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return text[start + 1 : index]
    raise ValueError("a brace is not closed")


def described(kind: str, inside: str) -> Flag | None:
    name = re.search(r'\bName:\s+"([^"]+)"', inside)
    aliases = re.search(r"\bAliases:\s+\[\]string\{([^}]*)\}", inside)
    if not name or kind not in KINDS:
        return None
    first, *more = (part.strip() for part in name[1].split(","))  # up to 1.32 the aliases stand in the name
    also = re.findall(r'"([^"]+)"', aliases[1]) if aliases else []
    return {"name": first, "type": KINDS[kind], "aliases": [*more, *also]}


def named(text: str) -> dict[str, Flag]:
    flags = {}
    for match in NAMED.finditer(text):
        literal = LITERAL.search(text, match.start())
        assert literal
        flag = described(literal[1], body(text, literal.end() - 1))
        if flag:
            flags[match[1]] = flag
    return flags


def listed(inside: str, known: dict[str, Flag]) -> list[Flag]:
    """The flags of one []cli.Flag: literals, and names of those declared elsewhere."""
    flags, rest, position = [], [], 0
    for literal in LITERAL.finditer(inside):
        if literal.start() < position:
            continue
        rest.append(inside[position : literal.start()])
        text = body(inside, literal.end() - 1)
        position = literal.end() + len(text) + 1
        flag = described(literal[1], text)
        if flag:
            flags.append(flag)
    rest.append(inside[position:])
    names = [name for part in rest for name in REFERENCE.findall(part)]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"flags that are declared nowhere: {unknown}")
    return flags + [known[name] for name in names]


def read(clone: Path, commit: str) -> dict[str, dict[str, Flag]]:
    text = sources(clone, commit)
    known = named(text)
    agent = text.index("Flags: []cli.Flag{", text.index("func NewAgentCommand"))
    server = SERVER.search(text)
    assert server
    starts = {"server": server.end() - 1, "agent": text.index("{", agent)}
    return {
        command: {flag["name"]: flag for flag in listed(body(text, start), known)} for command, start in starts.items()
    }


def facts(clone: Path, release: str, commits: list[str]) -> dict[str, Any]:
    each = [read(clone, commit) for commit in commits]
    flags: dict[str, Any] = {}
    for command in ("server", "agent"):
        for name, flag in each[0][command].items():
            if all(other[command].get(name) == flag for other in each):
                entry = flags.setdefault(name, {"type": flag["type"], "aliases": flag["aliases"], "commands": []})
                entry["commands"].append(command)
    dated = dict(resolved(clone, commit) for commit in commits)
    source = {"repository": "github.com/k3s-io/k3s", "path": SOURCE, "commits": dated}
    return {"release": release, "source": source, "flags": dict(sorted(flags.items()))}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m oracle.k3s", description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("release")
    parser.add_argument("commit", nargs="+")
    args = parser.parse_args()
    commits = [resolved(args.clone, commit)[0] for commit in args.commit]
    print(json.dumps(facts(args.clone, args.release, commits), indent=1))


if __name__ == "__main__":
    main()
