"""K3s itself, from its Go module: the self-extracting program, and the archive of the images that it starts.

By its repository's own recipe (scripts/build, scripts/package-cli), with three parts that no module has: the shell
tools of k3s-root are the machine's own, flannel's CNI plugin is the last one of the CNI project's, and there are no
Helm charts, so that Traefik is disabled where this program runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from testbed.base import machine, names, store
from testbed.base.shell import out, run
from testbed.base.steps import Say, Step, artefact
from testbed.make import binaries, golang, oci, rootfs
from testbed.make import images as rack_images

RECIPE = "1"  # raise to rebuild
RELEASE = "v1.32.0+k3s1"
COMMIT = "cca8facaa33a3ec7897349a8740fd96029590c31"
DATE = "2025-01-07T17:13:09Z"  # the commit's: no clock of this machine goes into the program
OURS = Path(__file__).parent / "k3s_go"
SERVER_TAGS = "ctrd apparmor seccomp netgo osusergo providerless urfave_cli_no_docs static_build"
SHIM_TAGS = "apparmor seccomp netgo osusergo static_build"
CLI_TAGS = "urfave_cli_no_docs"
COMMANDS = ("k3s-agent", "k3s-server", "k3s-token", "k3s-etcd-snapshot", "k3s-secrets-encrypt", "k3s-certificate")
SERVER_NAMES = ("containerd", "crictl", "ctr", "kubectl", "k3s-completion", *COMMANDS)
PLUGINS = {  # K3s' multi-call program: where the project of the CNI plugins keeps each
    "bandwidth": "meta",
    "bridge": "main",
    "firewall": "meta",
    "flannel": "meta",
    "host-local": "ipam",
    "loopback": "main",
    "portmap": "meta",
}
IMAGES = {  # under the names by which this release asks for them, with the rack's own programs in them
    "docker.io/rancher/mirrored-pause:3.6": "pause",
    "docker.io/rancher/mirrored-coredns-coredns:1.12.0": "coredns",
}
# K3s' own SQLite is C; the archives are zstd's. The first is looked for as `cc`.
PACKAGES = {"cc": ("gcc", "libc6-dev"), "zstd": ("zstd",)}


# No checksum database knows K3s' own modules: what each must be was seen on 2026-11-24.
CONTAINERD_PATH = "github.com/k3s-io/containerd"
SOURCE = golang.Module(
    "github.com/k3s-io/k3s",
    "v1.32.1-0.20250107171309-cca8facaa33a",  # the tag v1.32.0+k3s1, as Go calls it
    "h1:TU64dN3gxaaUBBVWZeMXlu5NeLFCyUZH62R1MpwwErk=",
)
SHIM = golang.Module(CONTAINERD_PATH, "v1.7.23-k3s2", "h1:QPS588RkyWooj/M+C64EAd1wDeqLmW/RB0DNW08x7ls=")
CNI = golang.Module(
    "github.com/containernetworking/plugins", "v1.6.0", "h1:lrsUrLF7QODLx6gncHOqk/pnCiC7c6bvDAskV4KUifQ="
)
FLANNEL = golang.Module(CNI.path, "v0.9.1", "h1:FD1tADPls2EEi3flPc2OegIY1M9pUa9r2Quag7HMLV8=")
MODULES = (SOURCE, SHIM, CNI, FLANNEL)


def _stamps(compiler: str) -> dict[str, str]:
    """What the release writes into its program; K3s does not start when it was compiled by another Go than it says."""
    own = "github.com/k3s-io/k3s/pkg/version"
    stamps = {f"{own}.Version": RELEASE, f"{own}.GitCommit": COMMIT[:8], f"{own}.UpstreamGolang": compiler}
    for package in ("k8s.io/client-go/pkg/version", "k8s.io/component-base/version"):
        facts = {"gitVersion": RELEASE, "gitCommit": COMMIT, "gitTreeState": "clean", "buildDate": DATE}
        stamps |= {f"{package}.{key}": value for key, value in facts.items()}
    return stamps | {
        "sigs.k8s.io/cri-tools/pkg/version.Version": "v1.31.0-k3s2",
        "go.etcd.io/etcd/api/v3/version.GitSHA": "HEAD",
        "github.com/cloudnativelabs/kube-router/v2/pkg/version.Version": "v2.2.1",
        **_containerd_stamps(),
    }


def _containerd_stamps() -> dict[str, str]:
    package = "github.com/containerd/containerd/version"
    return {f"{package}.Version": SHIM.version, f"{package}.Package": CONTAINERD_PATH}


@dataclass(frozen=True)
class _Workshop:
    """One run of the recipe: where it works, and with what."""

    go: Path
    work: Path
    say: Say

    @property
    def env(self) -> dict[str, str]:
        return golang.environment(self.go) | {"GONOSUMDB": "github.com/k3s-io/*"}

    @property
    def log(self) -> Path:
        return names.CACHE / "logs" / "k3s.log"

    @property
    def compiler(self) -> str:
        return out([self.go, "env", "GOVERSION"])

    def copied(self, module: golang.Module, name: str) -> Path:
        return module.copy(self.go, self.env, self.work / name)

    def compile(
        self, folder: Path, package: str, target: Path, *, tags: str = "", stamps: dict[str, str], c: bool = False
    ) -> None:
        self.say(f"compiles {target.name}")
        words = ["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())]
        if c:  # one file that runs on any node, whatever its libc
            words.append("-extldflags '-static -lm -ldl -lpthread'")
        flags = ["-trimpath", "-mod=mod", "-tags", tags, "-ldflags", " ".join(words), "-p", str(os.cpu_count() or 1)]
        env = self.env | {"CGO_ENABLED": "1" if c else "0"}
        run([self.go, "build", *flags, "-o", target, package], env=env, cwd=folder, log=self.log)


def _cni(shop: _Workshop) -> Path:
    """The plugins as packages of one program: each has its own `main`, which gets a name that others can call."""
    tree = shop.copied(CNI, "cni")
    old = FLANNEL.fetch(shop.go, shop.env, shop.work) / "plugins/meta/flannel"
    shutil.copytree(old, tree / "plugins/meta/flannel", ignore=shutil.ignore_patterns("*_test.go"))
    run(["chmod", "-R", "u+w", tree])
    for name, kind in PLUGINS.items():
        for path in (tree / "plugins" / kind / name).glob("*.go"):
            text = re.sub(r"^package main$", f"package {name.replace('-', '')}", path.read_text(), flags=re.M)
            path.write_text(re.sub(r"^func main\(\)", "func Main()", text, flags=re.M))
    shutil.copy2(OURS / "cni.go.txt", tree / "main.go")
    return tree


def _pack(shop: _Workshop, parts: Path, source: Path) -> Path:
    """What the program unpacks at its first start (data/<hash>/bin): four programs, and links that name them."""
    stage = shop.work / "stage"
    (stage / "bin/aux").mkdir(parents=True)
    (stage / "etc").mkdir()
    for part in parts.iterdir():
        shutil.copy2(part, stage / "bin" / part.name)
    shutil.copy2(source / "contrib/util/check-config.sh", stage / "bin/check-config")
    (stage / "bin/check-config").chmod(0o755)
    files = sorted(path.name for path in (stage / "bin").iterdir() if path.is_file())
    links = dict.fromkeys(SERVER_NAMES, "k3s") | dict.fromkeys(PLUGINS, "cni")
    sums = (f"{hashlib.sha256((stage / 'bin' / name).read_bytes()).hexdigest()}  {name}\n" for name in files)
    (stage / "bin/.sha256sums").write_text("".join(sums))
    (stage / "bin/.links").write_text("".join(f"{name} {target}\n" for name, target in sorted(links.items())))
    for name, target in links.items():
        (stage / "bin" / name).symlink_to(target)
    tar = shop.work / "data.tar"
    run(["tar", "-C", stage, "--owner=0", "--group=0", "--mtime=@0", "--sort=name", "-cf", tar, "./bin", "./etc"])
    return _squeezed(tar, "-9", "--long=25")


def _squeezed(tar: Path, *how: str) -> Path:
    run(["zstd", "-q", "-T0", "-f", "--rm", *how, tar, "-o", f"{tar}.zst"])
    return Path(f"{tar}.zst")


def _tools(say: Say) -> None:
    lacking = [name for program, names_ in PACKAGES.items() if not shutil.which(program) for name in names_]
    if lacking:
        machine.apt_install(lacking, say)


def _build(work: Path, say: Say) -> None:
    go = golang.find(say)
    golang.begin("k3s")
    _tools(say)
    shop = _Workshop(go, work, say)
    shop.log.unlink(missing_ok=True)
    (work / "go.mod").write_text("module scratch\n")  # `go mod download` wants to stand in a module
    parts = work / "parts"
    parts.mkdir()
    say("fetches K3s' source and what it is made of")
    source, shim = shop.copied(SOURCE, "source"), shop.copied(SHIM, "shim")
    run([go, "mod", "download"], env=shop.env, cwd=source, log=shop.log)
    stamps = _stamps(shop.compiler)
    # The shim is built by containerd's own list of modules: K3s' list holds a go-runc that does not fit it.
    shop.compile(
        shim,
        "./cmd/containerd-shim-runc-v2",
        parts / "containerd-shim-runc-v2",
        tags=SHIM_TAGS,
        stamps=_containerd_stamps(),
    )
    shop.compile(
        _cni(shop), ".", parts / "cni", stamps={f"{CNI.path}/pkg/utils/buildversion.BuildVersion": CNI.version}
    )
    shop.compile(source, "./cmd/server", parts / "k3s", tags=SERVER_TAGS, stamps=stamps, c=True)
    say("packs what the program carries")
    data = _pack(shop, parts, source)
    inside = source / "pkg/data"
    (inside / "name").write_text(f"{hashlib.sha256(data.read_bytes()).hexdigest()}.tar.zst")
    shutil.move(data, inside / "data.tar.zst")
    shutil.copy2(OURS / "data.go.txt", inside / "embed.go")
    shop.compile(source, "./cmd/k3s", work / "k3s", tags=CLI_TAGS, stamps=stamps)
    for name in ("source", "shim", "cni", "stage", "parts"):
        store.remove_tree(work / name)


def _pack_images(work: Path, say: Say) -> None:
    say("writes the archive of K3s' images")
    images = []
    for name, program in IMAGES.items():
        tree = rack_images.stage(work / program, [(binaries.binary(program, program), program)])
        layer = oci.pack(tree, work / "layers")
        images.append(oci.Image([name], [layer], {"Entrypoint": [f"/{program}"]}))
    tools = oci.pack(rootfs.base(), work / "layers")
    images.append(oci.Image([names.TOOLS_IMAGE], [tools], {"Cmd": ["sleep", "infinity"]}))
    oci.write(images, work / "images.tar")
    _squeezed(work / "images.tar", "-3")
    for name in (*IMAGES.values(), "layers"):
        store.remove_tree(work / name)


def _inputs() -> list[store.Part]:
    modules = [word for module in MODULES for word in (module.path, module.version, module.sum)]
    return [RECIPE, RELEASE, machine.architecture(), *modules, SERVER_TAGS, SHIM_TAGS, CLI_TAGS, *COMMANDS, OURS]


def _image_inputs() -> list[store.Part]:
    return [RECIPE, str(IMAGES), names.TOOLS_IMAGE, *binaries.inputs(*IMAGES.values()), *rootfs.base_inputs()]


def program() -> Path:
    return store.place("real-k3s", store.key_of(_inputs())) / "k3s"


def images() -> Path:
    return store.place("real-k3s-images", store.key_of(_image_inputs())) / "images.tar.zst"


def is_built() -> bool:
    return program().exists() and images().exists()


def steps() -> list[Step]:
    """After the rack's own: its small base, pause and CoreDNS are there then."""
    title = f"builds K3s {RELEASE} itself from its Go module (70 MB; 25 minutes of one core)"
    build = artefact("real-k3s", title, _inputs, _build, warm=partial(golang.begun, "k3s"))
    packs = artefact("real-k3s-images", "packs the images that K3s starts", _image_inputs, _pack_images)
    return [*golang.steps_around([build]), packs]
