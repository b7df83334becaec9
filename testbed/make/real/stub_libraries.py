"""Empty libraries in the place of NVIDIA's, so that the wheel of torch that the index has can be imported without them.

Each missing library gets the symbols that the wheel's own libraries expect of it. A call of CUDA says "no device"
(100), any other 0: `torch.cuda.is_available()` is False then, and nothing else of CUDA is ever called.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

from testbed.base.shell import RackError

SYSTEM = re.compile(r"lib(c|m|mvec|dl|rt|pthread|gcc_s|stdc\+\+|util)\.so|ld-linux")
GIVEN = re.compile(r"GLIBC|GCC|CXXABI|OMP|GOMP")  # versions of symbols that the system's libraries have
WORDS = re.compile(r"Get(Last)?Error(String|Name)?$|ErrorString$|ErrorName$")  # a text is expected
NO_DEVICE = 100


def make(libraries: Path, users: list[Path], work: Path) -> list[str]:
    """Writes what is missing into `libraries`; `users` are other objects that load them. Returns the names."""
    objects = [path for path in sorted(libraries.glob("*.so*")) if not path.is_symlink()] + users
    have = {path.name for path in (*libraries.iterdir(), *users)}
    needed = {name for path in objects for name in _needed(path)}
    missing = sorted(name for name in needed - have if not SYSTEM.match(name))
    defined = {symbol for path in objects for symbol, _ in _symbols(path, "--defined-only")}
    defined |= {
        symbol for name in needed - set(missing) - have for symbol, _ in _symbols(_system(name), "--defined-only")
    }
    wanted: dict[str, set[str]] = defaultdict(set)
    versions: dict[str, str] = {}
    for path in objects:
        for symbol, version in _symbols(path, "--undefined-only"):
            if symbol not in defined and not GIVEN.match(version):
                home = _home(version, missing)
                if not home:
                    raise RackError(f"{path.name} wants {symbol} {version}: in none of {', '.join(missing)}")
                wanted[home].add(symbol)
                versions |= {home: version} if version else {}
    for name in missing:
        _compile(name, sorted(wanted[name]), versions.get(name, ""), libraries / name, work)
    return missing


def _home(version: str, missing: list[str]) -> str:
    """Symbols carry the name of their library as a version, or none; then any library that is loaded will do."""
    if version in missing:
        return version
    like = re.split(r"[_.]", version.lower())[0] or "libcudart"  # libnuma_1.2 is of libnuma.so.1
    return next((name for name in missing if like in name), "")


def _compile(name: str, symbols: list[str], version: str, target: Path, work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    source, script = work / f"{name}.c", work / f"{name}.map"
    source.write_text("".join(map(_function, symbols)))
    script.write_text(f"{version} {{ global: *; }};\n")
    words = ["gcc", "-shared", "-fPIC", "-O0", "-w", "-fno-builtin", f"-Wl,-soname,{name}", "-o", target, source]
    subprocess.run([*words, *([f"-Wl,--version-script={script}"] if version else [])], check=True)


def _function(symbol: str) -> str:
    if WORDS.search(symbol):
        return f'const char *{symbol}(void) {{ return "no CUDA here"; }}\n'
    return f"long {symbol}(void) {{ return {NO_DEVICE if re.match('cu(da|[A-Z])', symbol) else 0}; }}\n"


def _needed(path: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", _said("readelf", "-d", path))


def _symbols(path: Path, which: str) -> list[tuple[str, str]]:
    """Names and their versions; weak ones that nobody defines are optional."""
    found = []
    for line in _said("nm", "-D", "--with-symbol-versions", which, path).splitlines():
        *_, kind, full = line.split()
        symbol, _, version = full.partition("@")
        if which == "--defined-only" or kind not in "wv":
            found.append((symbol, version.lstrip("@")))
    return found


def _system(name: str) -> Path:
    return Path(_said("gcc", f"-print-file-name={name}").strip())


def _said(*words: str | Path) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout
