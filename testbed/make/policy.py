"""The controller that makes network policies hold, the very code that K3s has in it: its kube-router, built alone.

It calls `ipset`, which K3s brings and a node of Kind has not: Debian's package, unpacked beside it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.shell import run
from testbed.base.steps import Say, Step, artefact
from testbed.make import golang

RECIPE = "1"  # raise to rebuild
SOURCE = names.REPO / "testbed" / "make" / "go" / "policy"  # its libraries are years older than the others'
PROGRAM = "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"
HOME = "/usr/local/lib/testbed-policy"  # on a node
PACKAGES = ("ipset", "libipset13")
IPSET = f"""#!/bin/sh
LD_LIBRARY_PATH={HOME}/lib exec {HOME}/ipset.bin "$@"
"""


def _inputs() -> list[store.Part]:
    return [RECIPE, machine.architecture(), machine.os_release().get("VERSION_CODENAME", ""), IPSET, SOURCE]


def _ipset(work: Path, tree: Path, log: Path) -> None:
    fetched = work / "fetched"
    fetched.mkdir()
    asked = ["apt-get", "download", *PACKAGES]
    if run(asked, cwd=fetched, log=log, check=False).returncode:
        run(["apt-get", "update", "-qq"], log=log)
        run(asked, cwd=fetched, log=log)
    for archive in sorted(fetched.glob("*.deb")):
        run(["dpkg-deb", "--extract", archive, fetched / "tree"])
    (tree / "lib").mkdir()
    for library in (fetched / "tree/usr/lib").rglob("libipset.so.*"):
        library.rename(tree / "lib" / library.name)
    (fetched / "tree/usr/sbin/ipset").rename(tree / "ipset.bin")
    (tree / "ipset").write_text(IPSET)
    (tree / "ipset").chmod(0o755)
    store.remove_tree(fetched)


def _build(work: Path, say: Say) -> None:
    go = golang.find(say)
    golang.begin("policy")
    log = names.CACHE / "logs" / "policy.log"
    log.unlink(missing_ok=True)
    tree = work / "tree"
    tree.mkdir()
    say("unpacking ipset")
    _ipset(work, tree, log)
    say("compiling kube-router")
    flags = ["-trimpath", "-ldflags", "-s -w"]
    run([go, "build", *flags, "-o", tree / "kube-router", PROGRAM], env=golang.environment(go), cwd=SOURCE, log=log)


def place() -> Path:
    return store.place("policy", store.key_of(_inputs()))


def tree() -> Path:
    """What a node gets."""
    return place() / "tree"


def steps() -> list[Step]:
    title = "builds the network policy controller that K3s has in it (kube-router)"
    return [artefact("policy", title, _inputs, _build, warm=partial(golang.begun, "policy"))]
