"""What this machine is and how it gets packages: read from its own configuration, never assumed."""

from __future__ import annotations

import os
import platform
import shutil
import threading
from functools import cache
from pathlib import Path

from testbed.base import locks, store
from testbed.base.screen import INSTALLS
from testbed.base.shell import APART, RackError, out, run
from testbed.base.steps import Say, Step

CAP_SYS_RESOURCE = 24
APT_WAIT_SECONDS = 300
_ONE_APT = threading.Lock()  # steps that go on aside install too
# what a bare Debian or Ubuntu lacks of the programs that the rack calls, and the packages that bring them
TOOLS = {
    "ip": "iproute2",
    "iptables-save": "iptables",
    "mount": "mount",
    "nsenter": "util-linux",
    "ssh": "openssh-client",
}
BROWSER = "chromium"  # as Debian packages it
SHELLS = ("zsh", "fish")  # in which completion is typed; bash is there
SSHD = {
    "openssh-server": "usr/sbin/sshd",
    "libwrap0": "libwrap.so.0",
}  # unpacked, not installed: nothing may listen here
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")  # Go's downloads are checked against them


@cache
def os_release() -> dict[str, str]:
    pairs = (line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return {name: value.strip('"') for name, value in pairs}


def require_root() -> None:
    if os.geteuid():
        raise RackError("this command makes containers, network namespaces and mounts: run it as root (sudo)")


def architecture() -> str:
    machine = platform.machine()
    known = {"x86_64": "amd64", "aarch64": "arm64"}
    if machine not in known:
        raise RackError(f"found machine type {machine}, expected one of: {', '.join(known)}")
    return known[machine]


def lacks_sys_resource() -> bool:
    """Some virtual machines take this capability from everybody; containers must then not ask for it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapBnd:"):
            return not int(line.split()[1], 16) >> CAP_SYS_RESOURCE & 1
    return False


def _lacking() -> list[str]:
    packages = [package for program, package in TOOLS.items() if not shutil.which(program)]
    return packages + ([] if CERTIFICATES.exists() else ["ca-certificates"])


def steps() -> list[Step]:
    title = f"installs what is missing of {', '.join(TOOLS.values())}, ca-certificates"
    return [Step("tools", title, lambda: not _lacking(), lambda say: apt_install(_lacking(), say))]


def require_space(folder: Path, gib: int, what: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free >> 30
    if free < gib:
        raise RackError(
            f"found {free} GiB free in {folder}, expected {gib} for {what}; "
            "make room there, or name another folder in XDG_CACHE_HOME"
        )


def apt_install(packages: list[str], say: Say) -> None:
    """Install Debian or Ubuntu packages that are missing; says so first."""
    with _ONE_APT:
        _apt_install(packages, say)


def _apt_install(packages: list[str], say: Say) -> None:
    missing = [p for p in packages if not _installed(p)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise RackError(
            f"needs {', '.join(missing)}, and this machine has no apt-get: install them, then run this again"
        )
    say(f"{INSTALLS} {' '.join(missing)}")
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    # an apt-get whose parent was killed may still be at work: wait for it
    wait = ["-o", f"DPkg::Lock::Timeout={APT_WAIT_SECONDS}"]
    command = ["apt-get", *wait, "install", "-y", "-qq", "--no-install-recommends", *missing]
    if run(command, env=env, check=False).returncode:
        run(["dpkg", "--configure", "-a"], env=env, check=False)  # what a killed one left half done
        run(["apt-get", "update", "-qq"], env=env)
        run(command, env=env)


def browser(say: Say) -> None:
    """A real one for the page's tests. Without it they are skipped: not every distribution has it as a package."""
    try:
        apt_install([BROWSER], say)
    except RackError as error:
        say(f"no {BROWSER}, so the page's tests in a browser are skipped: {error}")


def shells(say: Say) -> None:
    """For the journeys of completion, which are skipped without them."""
    try:
        apt_install(list(SHELLS), say)
    except RackError as error:
        say(f"no {' or '.join(SHELLS)}, so completion in them is not tried: {error}")


def ssh_server(say: Say) -> Path:
    """A folder with the distribution's sshd and its library: an installed one would listen on this machine."""
    key = store.key_of([*os_release().values(), platform.machine()])
    with locks.making("sshd"):
        if not store.is_built("sshd", key):
            _unpack_sshd(key, say)
    return store.place("sshd", key)


def _unpack_sshd(key: str, say: Say) -> None:
    say(f"fetches {', '.join(SSHD)} with apt-get, to be unpacked")
    with store.building("sshd", key) as folder:
        aside = folder / "packages"
        aside.mkdir()
        if run(["apt-get", "download", *SSHD], cwd=aside, check=False).returncode:
            run(["apt-get", "update", "-qq"])
            run(["apt-get", "download", *SSHD], cwd=aside)
        for package in aside.glob("*.deb"):
            run(["dpkg-deb", "--extract", package, aside])
        (folder / "lib").mkdir()
        shutil.copy2(aside / SSHD["openssh-server"], folder)
        shutil.copy2(next(aside.rglob(SSHD["libwrap0"])), folder / "lib")
        shutil.rmtree(aside)


def bootstrap(
    suite: str, tree: Path, mirror: str, options: list[str], say: Say, log: Path, env: dict[str, str] | None = None
) -> None:
    """debootstrap in namespaces of its own: when it is killed, what it started and mounted goes with it."""
    apt_install(["debootstrap"], say)
    run([*APART, "debootstrap", "--variant=minbase", *options, suite, tree, mirror], log=log, env=env)


def _installed(package: str) -> bool:
    state = run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}", package], check=False)
    return state.returncode == 0 and state.stdout.startswith("ii")


def apt_source() -> tuple[str, str, str]:
    """(mirror, suite, components) of this machine's own distribution, as its apt is configured."""
    suite = os_release().get("VERSION_CODENAME", "")
    rows = _apt_targets()
    if not rows:
        run(["apt-get", "update", "-qq"])
        rows = _apt_targets()
    mine = [(uri, component) for uri, release, component in rows if release == suite]
    if not suite or not mine:
        raise RackError(
            f"found no apt source for this system's release (codename {suite or 'unknown'}); "
            "expected one in /etc/apt/sources.list or /etc/apt/sources.list.d/"
        )
    mirror = mine[0][0]
    components = sorted({c for uri, c in mine if uri == mirror}, key=lambda c: (c != "main", c))
    return mirror, suite, ",".join(components)


def _apt_targets() -> list[tuple[str, str, str]]:
    text = out(["apt-get", "indextargets", "--format", "$(REPO_URI)\t$(RELEASE)\t$(COMPONENT)", "Created-By: Packages"])
    rows = [tuple(line.split("\t")) for line in text.splitlines()]
    return [(row[0], row[1], row[2]) for row in rows if len(row) == 3]
