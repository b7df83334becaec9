"""Ninety odd things that a person types: each ends with a status that was meant, and says what to write instead.

The terminal judges every one: 80 columns, no traceback, never 70. Two windows' worth of them share one shell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys import sites
from tests.journeys.terminal import Terminal
from tests.journeys.test_broken_files import BOMB, MINE
from tests.places import REPO

GPT = "openai--gpt-oss-120b"
CUDNN = b"RuntimeError: cuDNN is not available.\n"
RECIPE = (REPO / "tests/journeys/recipes/compose.yml").read_bytes()
FILES = {
    "empty": b"",
    "binary": bytes(range(256)) * 40,
    "name with spaces.yml": MINE,
    "größe.yml": MINE,
    "nul.log": b"a\0b\n" + CUDNN,
    "long.log": b"x" * 200_000 + b"\n" + CUDNN,
    "crlf.log": b"\xef\xbb\xbfINFO a\r\n" + CUDNN.replace(b"\n", b"\r\n"),
    "bomb.yml": BOMB,
    "recipe.yml": RECIPE,
    "bom.yml": b"\xef\xbb\xbf" + RECIPE.replace(b"\n", b"\r\n"),
}
PLAN, BENCH = f"plan {GPT}", "bench --url http://127.0.0.1:9"
# what is typed behind `sparkloom`: the status, and words that have to be said, which name the value and the cure
INPUTS = {
    # wrong words
    "''": (2, "No such command", "-h"),
    f"plann {GPT}": (2, "'plann'", "'plan'"),
    "PLAN": (2, "'PLAN'", "-h"),
    "help plan": (2, "'help'", "sparkloom -h"),
    "show argw": (2, "'argw'", "'argv'"),
    "completion tcsh": (2, "'tcsh'", "bash"),
    "matrix grid.json fly": (2, "'fly'", "run"),
    "fabric discovered": (2, "'discovered'", "discover"),
    f"export {GPT} --as docker": (2, "'docker'", "compose"),
    f"{PLAN} --sesions 3": (2, "--sesions", "--sessions"),
    f"allreduce {GPT} --backend mpi": (2, "'mpi'", "nccl"),
    "connect nobody -i home": (2, "nobody", "openai"),
    "plan nobody": (2, "nobody", "sparkloom profiles"),
    "evidence best nobody": (2, "'nobody'", "known here"),
    f"evidence compare nobody {GPT}": (2, "nobody", "sparkloom profiles"),
    "image show nobody": (2, "nobody", "sparkloom image list"),
    "plan 💥": (2, "💥", "sparkloom profiles"),
    # options in the wrong place, too many words, too few
    "--json profiles": (2, "--json", "behind the command"),
    f"-i home {PLAN}": (2, "-i", "behind the command"),
    "show -i home argv": (2, "-i", "sparkloom show COMMAND"),
    "--version extra": (0, "sparkloom"),
    f"{PLAN} extra words": (2, "extra words", "plan -h"),
    "profiles extra": (2, "extra", "profiles -h"),
    "fleet plan extra": (2, "extra", "plan -h"),
    "mcp extra": (2, "extra", "mcp -h"),
    "up extra": (2, "extra", "up -h"),
    "use a b": (2, "(b)", "use -h"),
    "use home --none": (2, "--none", "home", "write one"),
    "bench extra": (2, "extra", "--help"),
    "plan": (2, "'profile'", "plan -h"),
    "diagnose": (2, "'logs'", "diagnose -h"),
    "import": (2, "'file'", "import -h"),
    "keys add": (2, "'name'", "add -h"),
    "profile new": (2, "'model'", "new -h"),
    f"export {GPT}": (2, "--as", "compose"),
    f"{PLAN} --set": (2, "--set", "argument"),
    "metrics rules --out": (2, "--out", "argument"),
    "bench --url": (2, "--url", "--help"),
    # numbers
    f"{PLAN} --sessions 0": (2, "'0'", "1"),
    f"{PLAN} --sessions -5": (2, "'-5'", "1"),
    f"{PLAN} --sessions 99999999999999999999": (2, "'99999999999999999999'", "4096"),
    f"{PLAN} --sessions many": (2, "'many'", "integer"),
    f"{PLAN} --context 12parsecs": (2, "'12parsecs'", "128k"),
    f"{PLAN} --context 1e99": (2, "'1e99'", "128k"),
    f"{PLAN} --prefix-hit nan": (2, "'nan'", "0.999"),
    "profiles --nodes 9": (2, "'9'", "8"),
    "profiles --concurrency 0": (2, "'0'", "1"),
    f"show argv {GPT} --rank -1": (2, "-1", "ranks 0 to 0"),
    "logs --rank x -i home": (2, "'x'", "integer"),
    "status --every 0 -i home": (2, "'0'", "1"),
    "usage --since -3d": (2, "'-3d'", "7d"),
    f"allreduce {GPT} --largest 0": (2, "'0'", "8192"),
    f"{BENCH} -n 1,x": (2, "'x'", "1,4,8"),
    f"{BENCH} --rate inf": (2, "'inf'", "0.5,2"),
    f"{BENCH} --max-tokens -1": (2, "'-1'", "at least 2"),
    "bench --url http://127.0.0.1:99999": (2, "99999", "http://HOST:PORT"),
    "bench --url ftp://127.0.0.1": (2, "ftp://127.0.0.1", "http://HOST:PORT"),
    # values that are none
    "plan ''": (2, "empty", "sparkloom profiles"),
    f"{PLAN} --engine-version ''": (2, "''", "catalogs here"),
    f"{PLAN} --engine-version banana": (2, "'banana'", "catalogs here"),
    f"{PLAN} --set launch": (2, "launch", "key=value"),
    f"{PLAN} --set lunch.tp=2": (2, "lunch.tp=2", "launch.*"),
    f"{PLAN} --set launch.max_num_seqs=-1": (1, "found -1", "from 1 on"),
    f"lint {GPT} --set launch.tensor_parallel_size=3": (2, "tensor_parallel_size", "remove it"),
    "keys add '' -i home": (2, "''", "pattern"),
    "init 'a b' </dev/null": (2, "a b", "a-z"),
    "plan https://x.invalid/recipe.yml": (2, "https://x.invalid/recipe.yml", "sparkloom import"),
    # no files, folders, others' files
    "diagnose empty": (2, "empty", "expected"),
    "diagnose folder": (2, "folder", "directory"),
    "diagnose binary": (2, "binary", "log"),
    "diagnose loop": (2, "loop", "symbolic links"),
    "diagnose nowhere.log": (2, "nowhere.log", "No such file"),
    "diagnose nul.log": (1, "fp4-gemm-cudnn-missing"),
    "diagnose long.log": (1, "fp4-gemm-cudnn-missing"),
    "diagnose crlf.log": (1, "fp4-gemm-cudnn-missing"),
    "import empty": (2, "empty", "compose file"),
    "import folder": (2, "folder", "name one file"),
    "import binary": (2, "binary", "UTF-8"),
    "import bomb.yml": (2, "bomb.yml", "expected"),
    "import bom.yml": (0, "openai/gpt-oss-120b"),
    "import recipe.yml -o folder": (2, "folder", "may write"),
    "guard empty": (2, "empty", "expected"),
    "guard --batch folder": (2, "folder", "expected"),
    "plan binary": (2, "binary", ".yml"),
    "plan loop": (2, "loop", ".yml"),
    "plan /etc/passwd": (2, "passwd", "key: value"),
    f"{PLAN} -i empty": (2, "empty", "inventories/gb10"),
    f"{PLAN} -i folder": (2, "folder", "sparkloom init"),
    "use loop": (2, "loop", "inventories/gb10"),
    "matrix folder run": (2, "folder", "YAML file"),
    "profile new folder": (2, "folder", "config.json"),
    "plan 'name with spaces.yml'": (0, "name with spaces"),
    "lint größe.yml": (0, "1 profile: "),
    # standard input and output
    "diagnose - </dev/null": (2, "standard input", "expected"),
    "diagnose - <&-": (2, "standard input", "expected"),
    "import - <&-": (2, "-:", "expected"),
    "lint - </dev/null": (2, "-: no such profile", "sparkloom profiles"),
    "mcp </dev/null": (0,),
    "profiles >&-": (0,),
    "profiles --json >/dev/full": (2, "standard output", "space"),
    "profiles | head -1": (0, "profile"),
    f"show manifests {GPT} 2>/dev/null | head -1": (0,),
    # endless and with bytes that no terminal may obey
    "plan $(head -c 100000 /dev/zero | tr '\\0' x)": (2, "xxx", "sparkloom profiles"),
    "plan $'a\\x1b[2Jb'": (2, "sparkloom profiles"),
    "plan $'a\\xffb'": (2, "sparkloom profiles"),
}
PIPED = "|"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """One shell of 80 columns, in a folder with odd files and a site that does not answer."""
    home: Path = tmp_path_factory.mktemp("odd") / "home"
    home.mkdir()
    for name, content in FILES.items():
        (home / name).write_bytes(content)
    (home / "folder").mkdir()
    (home / "loop").symlink_to("loop")
    (home / "home").symlink_to(sites.off(home))
    made = Terminal(home)
    yield made
    made.close()


@pytest.mark.parametrize("words", INPUTS)
def test_an_odd_input_ends_as_meant(shell: Terminal, words: str) -> None:
    code, *said = INPUTS[words]
    seen = shell.type(f"sparkloom {words}", int(code), copied=PIPED in words).has(*map(str, said))
    assert len(seen.lines) < 120, "what was typed fills the window"


@pytest.mark.parametrize("words", ["plan nobody", "diagnose nowhere.log", "import empty", "guard empty"])
def test_what_is_wrong_is_json_too_where_it_was_asked_for(shell: Terminal, words: str) -> None:
    seen = shell.type(f"sparkloom {words} --json 2>/dev/null", 2, copied=True)
    (problem,) = json.loads(seen.text)["problems"]
    assert problem["file"] in words and problem["message"]
