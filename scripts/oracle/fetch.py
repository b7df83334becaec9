"""Brings the Python files of an engine release onto this machine.

Only ``*.py`` and the release's METADATA are kept: a vLLM wheel is 400 MB of kernels that no argument parser reads. The
wheel comes through pip, with whatever index this machine's pip is configured for, and is deleted once unpacked.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

# The Python files are the same for every platform, so one platform is asked for everywhere and the result is the same
# on a laptop and on a Spark. The tags are those under which releases have been published so far.
_PLATFORMS = ("manylinux_2_35", "manylinux_2_34", "manylinux_2_31", "manylinux_2_28", "manylinux2014", "manylinux1")
_PYTHON = "3.11"

# What the parsers really import; everything else heavy is a stub. Pinned, so that a verdict is the same tomorrow.
_SGLANG = ("msgspec==0.22.0", "packaging==26.3", "typing_extensions==4.16.0")
REAL_DEPENDENCIES: dict[str, tuple[str, ...]] = {
    "sglang": _SGLANG,
    "vllm": (*_SGLANG, "pydantic==2.14.3", "regex==2026.11.15"),
}


class FetchError(Exception):
    """The release is not here and could not be brought here."""


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "sparkloom" / "engines"


def release_dir(engine: str, version: str, root: Path | None = None) -> Path:
    return (root or cache_root()) / f"{engine}-{version}"


def dependency_dir(engine: str, root: Path | None = None) -> Path:
    pins = hashlib.sha256(" ".join(REAL_DEPENDENCIES[engine]).encode()).hexdigest()[:8]
    return (root or cache_root()) / f"{engine}-needs-py{sys.version_info[0]}{sys.version_info[1]}-{pins}"


def is_fetched(engine: str, version: str, root: Path | None = None) -> bool:
    return (release_dir(engine, version, root) / engine / "__init__.py").is_file()


def fetch(engine: str, version: str, root: Path | None = None, say: Callable[[str], None] | None = None) -> Path:
    """The folder with the release's Python files, downloaded if it is not there yet."""
    if engine not in REAL_DEPENDENCIES:
        raise FetchError(f"engine {engine!r} has no wheel to ask; expected one of: {', '.join(REAL_DEPENDENCIES)}")
    return fetch_package(engine, version, root, say)


def fetch_package(
    engine: str, version: str, root: Path | None = None, say: Callable[[str], None] | None = None
) -> Path:
    """The same for any package that has a wheel: what an engine's source patches change may lie in another one."""
    target = release_dir(engine, version, root)
    if target.is_dir():  # published in one step, so it is whole
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    _say(say, f"{engine} {version}: downloading the wheel")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as work:
        wheel = _download(engine, version, Path(work))
        size = wheel.stat().st_size / 1e6
        unpacked = Path(work) / "unpacked"
        count = _unpack(wheel, unpacked)
        wheel.unlink()
        _publish(unpacked, target)
    _say(say, f"{engine} {version}: {count} files kept of {size:.0f} MB, {time.monotonic() - started:.0f} s")
    return target


def fetch_dependencies(engine: str, root: Path | None = None, say: Callable[[str], None] | None = None) -> Path:
    """A folder with the small real packages that the parser imports, for this Python."""
    target = dependency_dir(engine, root)
    if (target / "complete").is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    _say(say, f"{engine}: installing {', '.join(REAL_DEPENDENCIES[engine])}")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as work:
        folder = Path(work) / "site"
        _pip("install", "--no-compile", "--only-binary=:all:", "--target", str(folder), *REAL_DEPENDENCIES[engine])
        (folder / "complete").write_text("")
        _publish(folder, target)
    return target


def _download(engine: str, version: str, folder: Path) -> Path:
    platforms = [f"--platform={tag}_x86_64" for tag in _PLATFORMS] + ["--platform=any"]
    _pip(
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        f"--python-version={_PYTHON}",
        *platforms,
        "--dest",
        str(folder),
        f"{engine}=={version}",
    )
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"pip download {engine}=={version} left {len(wheels)} wheels in {folder}, expected one")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> int:
    count = 0
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            name = info.filename
            if name.endswith(".py") or name.endswith(".dist-info/METADATA"):
                archive.extract(info, target)
                count += 1
    return count


def _publish(folder: Path, target: Path) -> None:
    """Moves a finished folder into place; another process may have been faster, and its result is as good."""
    try:
        folder.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        shutil.rmtree(folder)


def _pip(*words: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "--retries=2",
        "--timeout=30",
        *words,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        tail = "\n".join((result.stderr or result.stdout).strip().splitlines()[-6:])
        raise FetchError(
            f"pip {words[0]} failed ({result.returncode}): {tail}\n"
            f"The index is the one this machine's pip uses (see: {sys.executable} -m pip config list)."
        )


def _say(say: Callable[[str], None] | None, line: str) -> None:
    if say is not None:
        say(line)
