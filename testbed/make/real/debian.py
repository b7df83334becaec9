"""Packages of another Debian suite than the machine's: as pinned here, or else as the suite's signed index has them.

A testing suite moves on, and its archive forgets. What is taken instead of a pin is checked by Debian's signature.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from testbed.base import machine
from testbed.base.shell import RackError, run
from testbed.base.steps import Say

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SECONDS = 120


@dataclass(frozen=True)
class Package:
    path: str  # below the archive's root
    sha256: str

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1].split("_")[0]


def pinned(table: Path) -> list[Package]:
    """Those of this machine's architecture."""
    rows = (line.split() for line in table.read_text().splitlines() if not line.startswith("#"))
    return [Package(path, sha256) for arch, path, sha256 in rows if arch == machine.architecture()]


def mirror(say: Say) -> str:
    """Debian's archive: the machine's own on Debian, else the one that debootstrap knows."""
    if machine.os_release().get("ID") == "debian":
        return machine.apt_source()[0].rstrip("/")
    machine.apt_install(["debootstrap", "debian-archive-keyring"], say)
    script = Path(shutil.which("debootstrap") or "/usr/sbin/debootstrap").read_text()
    found = re.search(r'^DEF_MIRROR="([^"]+)"', script, re.MULTILINE)
    if not found:
        raise RackError("found no archive of Debian: debootstrap names none (DEF_MIRROR)")
    return found[1].rstrip("/")


def unpack(suite: str, table: Path, tree: Path, work: Path, say: Say) -> None:
    """The packages of a table into a folder; each is checked before it is opened."""
    archive = mirror(say)
    for number, package in enumerate(pinned(table), 1):
        target = work / f"{number:02d}-{package.name}.deb"
        if not _fetch(f"{archive}/{package.path}", package.sha256, target):
            say(f"the archive has {package.path.rsplit('/', 1)[-1]} no more: takes what {suite} has now")
            return _current(suite, archive, [each.name for each in pinned(table)], tree, work)
        run(["dpkg-deb", "-x", target, tree])


def _fetch(url: str, sha256: str, target: Path) -> bool:
    """Whether the file is there and is the one; anything but "not there" is an error that says so."""
    try:
        with urlopen(url, timeout=SECONDS) as reply:
            data = reply.read()
    except URLError as error:
        if getattr(error, "code", None) == 404:
            return False
        raise RackError(f"got no {url.rsplit('/', 1)[-1]} of Debian's archive: {error}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise RackError(f"{url.rsplit('/', 1)[-1]} of Debian's archive is not what packages.txt pins: another sha256")
    target.write_bytes(data)
    return True


def _current(suite: str, archive: str, names: list[str], tree: Path, work: Path) -> None:
    """By apt with folders of its own: it checks the index by Debian's key and each package by the index."""
    state = work / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "sources").write_text(f"deb [signed-by={KEYRING}] {archive} {suite} main\n")
    (state / "status").touch()
    places = {
        "Dir::Etc::sourcelist": state / "sources",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-q", *(word for name, value in places.items() for word in ("-o", f"{name}={value}"))]
    run([*apt, "update"])
    run([*apt, "download", *names], cwd=state)
    for package in sorted(state.glob("*.deb")):
        run(["dpkg-deb", "-x", package, tree])
