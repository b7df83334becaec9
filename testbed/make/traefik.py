"""Traefik at the version of the pinned K3s release, from its Go module, as an image under the name that K3s uses.

Three things differ from upstream's own build. Its module archive lacks a small package that its repository replaces
(`dynamic/ext`, empty types): ours stands in. What speaks to clouds is left out: the list of 180 DNS providers of the
ACME library, as nothing here asks an authority for a certificate, and the provider of ECS, whose SDK is a fifth of all
the source. The dashboard has no pages.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.shell import run
from testbed.base.steps import Say, Step, artefact
from testbed.make import golang, oci
from testbed.make.binaries import SOURCE, VERSIONS

RECIPE = "1"  # raise to rebuild
VERSION = "3.7.8"  # of K3s v1.35.8+k3s1, by its release notes
IMAGE = f"docker.io/rancher/mirrored-library-traefik:{VERSION}"

OWN = SOURCE / "traefik"
ITSELF = golang.Module(
    "github.com/traefik/traefik/v3", f"v{VERSION}", "h1:fgLRGI4WQFjvSaxoscyV4pjBu+rBdtc24NWgyTy4na0="
)
ACME = golang.Module("github.com/go-acme/lego/v5", "v5.2.2", "h1:KqFas/Ak2QDdU+Qm7MO9OEnS35zC000kPmM+5tLdZKk=")
DEFINITIONS = "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml"


def _inputs() -> list[store.Part]:
    return [RECIPE, VERSION, machine.architecture(), *VERSIONS, OWN, Path(oci.__file__)]


def _without_clouds(acme: Path, itself: Path) -> None:
    """Less the packages that speak to one; what calls them finds ours, which know none."""
    for folder in (acme / "providers/dns").iterdir():
        if folder.is_dir() and folder.name != "internal":
            shutil.rmtree(folder)
    shutil.copy2(OWN / "dns.go.txt", acme / "providers/dns/zz_gen_dns_providers.go")
    shutil.rmtree(itself / "pkg/provider/ecs")
    (itself / "pkg/provider/ecs").mkdir()
    shutil.copy2(OWN / "ecs.go.txt", itself / "pkg/provider/ecs/ecs.go")


def _build(work: Path, say: Say) -> None:
    go = golang.find(say)
    golang.begin("traefik")
    env = golang.environment(go)
    source = work / "source"
    shutil.copytree(SOURCE, source)
    say("fetching modules")
    for module, name in ((ACME, "acme"), (ITSELF, "itself")):
        module.copy(go, env, source / name)
        run([go, "mod", "edit", f"-replace={module.path}=./{name}"], env=env, cwd=source)
    _without_clouds(source / "acme", source / "itself")
    say("compiling Traefik")
    log = names.CACHE / "logs" / "traefik.log"
    log.unlink(missing_ok=True)
    tree = work / "tree"
    command = [go, "build", *golang.FLAGS, "-ldflags", "-s -w", "-o", tree / "traefik", f"{ITSELF.path}/cmd/traefik"]
    run(command, env=env, cwd=source, log=log)
    shutil.copy2(source / "itself" / DEFINITIONS, work / "definitions.yml")
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
