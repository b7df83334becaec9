"""Traefik at the version of the pinned K3s release, from its Go module, as an image under the name that K3s uses.

Two things differ from upstream's own build. Its module archive lacks a small package that its repository replaces
(`dynamic/ext`, empty types): ours stands in. And the list of 180 DNS providers of the ACME library is left out, with
the cloud SDKs behind it: nothing here asks an authority for a certificate. The dashboard has no pages.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.shell import run
from testbed.base.steps import Say, Step, artefact
from testbed.make import golang, oci

RECIPE = "1"  # raise to rebuild
VERSION = "3.7.8"  # of K3s v1.35.8+k3s1, by its release notes
IMAGE = f"docker.io/rancher/mirrored-library-traefik:{VERSION}"

SOURCE = names.REPO / "testbed" / "make" / "traefik_go"
MODULE = "github.com/traefik/traefik/v3"
# its sum stands here: go.sum leaves out what is replaced by a folder
ACME = golang.Module("github.com/go-acme/lego/v5", "v5.2.2", "h1:KqFas/Ak2QDdU+Qm7MO9OEnS35zC000kPmM+5tLdZKk=")
DEFINITIONS = "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml"


def _inputs() -> list[store.Part]:
    return [RECIPE, VERSION, machine.architecture(), SOURCE, Path(oci.__file__)]


def _without_providers(source: Path, target: Path) -> None:
    """The ACME library less the providers; its registry knows none."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*_test.go", "testdata", "fixtures"))
    run(["chmod", "-R", "u+w", target])
    for folder in (target / "providers/dns").iterdir():
        if folder.is_dir() and folder.name != "internal":
            shutil.rmtree(folder)
    shutil.copy2(SOURCE / "dns/dns.go.txt", target / "providers/dns/zz_gen_dns_providers.go")


def _build(work: Path, say: Say) -> None:
    go = golang.find(say)
    golang.begin("traefik")
    env = golang.environment(go)
    source = work / "source"
    shutil.copytree(SOURCE, source)
    say("fetching modules")
    _without_providers(ACME.fetch(go, env, work), source / "lego")
    say("compiling Traefik")
    log = names.CACHE / "logs" / "traefik.log"
    log.unlink(missing_ok=True)
    tree = work / "tree"
    flags = ["-trimpath", "-p", str(os.cpu_count() or 1), "-ldflags", "-s -w"]
    run([go, "build", *flags, "-o", tree / "traefik", f"{MODULE}/cmd/traefik"], env=env, cwd=source, log=log)
    listed = run([go, "list", "-m", "-f", "{{.Dir}}", MODULE], env=env, cwd=source).stdout.strip()
    shutil.copy2(Path(listed) / DEFINITIONS, work / "definitions.yml")
    (tree / "tmp").mkdir(mode=0o1777)
    layer = oci.pack(tree, work / "layers")
    oci.write([oci.Image([IMAGE], [layer], {"Entrypoint": ["/traefik"], "User": "65532"})], work / "traefik.tar")
    for name in ("source", "tree", "layers"):
        store.remove_tree(work / name)


def place() -> Path:
    return store.place("traefik", store.key_of(_inputs()))


def archive() -> Path:
    return place() / "traefik.tar"


def definitions() -> Path:
    """Traefik's own definitions of its kinds, as its module carries them."""
    return place() / "definitions.yml"


def steps() -> list[Step]:
    title = f"builds Traefik {VERSION}, the one of K3s' pinned release"
    return [artefact("traefik", title, _inputs, _build, warm=partial(golang.begun, "traefik"))]
