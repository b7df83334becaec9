"""The node image made of kind's published one: what a rack's node has beyond it is put on top, and committed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from testbed.base import names, store
from testbed.base.shell import RackError, run
from testbed.base.steps import Say
from testbed.make import binaries, images, oci, rootfs, source

FILES = names.KIND_DIR / "published"
SCRATCH = "kind/sparkloom"  # of the script, removed by it
OWN_RUNTIME = frozenset({"containerd", "runc"})  # the published image brings newer ones
CONTAINERD = "etc/containerd/config.toml"
BOOT = '["/usr/local/bin/entrypoint", "/sbin/init"]'


def inputs() -> list[store.Part]:
    return [source.IMAGE, FILES, Path(__file__)]


def packages() -> list[str]:
    return [name for name in rootfs.packages() if name not in OWN_RUNTIME]


def with_sandbox(config: str, published: str) -> str:
    """Our containerd configuration with the pause image that the published one names: that one is preloaded there."""
    form = re.compile(r'^(\s*)sandbox(?:_image)?\s*=\s*["\']([^"\']+)["\']', re.MULTILINE)
    upstream = form.search(published)
    if not upstream or not form.search(config):
        raise RackError(
            f"found no sandbox image in {CONTAINERD} of {source.IMAGE_NAME} or of {names.NODE_FILES}, expected one in "
            f"both; set {source.WISH}={source.OWN} to build the node image here instead"
        )
    return form.sub(lambda ours: f'{ours[1]}sandbox_image = "{upstream[2]}"', config, count=1)


def _stage(tree: Path, published: str, wrapper: Path) -> None:
    """The files to lay over: the node's own, and what the script takes from its scratch folder."""
    run(["cp", "-rT", names.NODE_FILES, tree])
    config = tree / CONTAINERD
    config.write_text(with_sandbox(config.read_text(), published))
    for path in (tree / "usr/local/sbin").iterdir():
        path.chmod(0o755)
    stand_in = tree / "usr/local/lib/sparkloom-testbed/gpu-stand-in"
    shutil.copy2(binaries.binary("gpu", "gpu-stand-in"), stand_in)
    scratch = tree / SCRATCH
    scratch.mkdir(parents=True)
    for origin in (FILES / "enrich.sh", wrapper, images.archive()):
        shutil.copy2(origin, scratch / origin.name)


def build(work: Path, say: Say, tag: str, wrapper: Path, units: tuple[str, ...], masked: tuple[str, ...]) -> None:
    """Leaves node.tar (for `docker load`) and kubectl in `work`."""
    log = names.CACHE / "logs" / "published.log"
    log.unlink(missing_ok=True)
    holder = f"{names.CLUSTER}-node-image"
    run(["docker", "rm", "--force", "--volumes", holder], check=False)  # of a run that was killed
    lenient = ["--security-opt", "seccomp=unconfined"]
    run(["docker", "run", "-d", "--name", holder, *lenient, "--entrypoint", "sleep", source.IMAGE, "infinity"])
    try:
        published = run(["docker", "exec", holder, "cat", f"/{CONTAINERD}"]).stdout
        tree = work / "over"
        tree.mkdir()
        _stage(tree, published, wrapper)
        run(["docker", "cp", f"{tree}/.", f"{holder}:/"])
        store.remove_tree(tree)
        say(f"adding packages, CNI plugins, stand-ins and images to {source.IMAGE_NAME}")
        places = [names.CNI_BIN, names.CNI_CONF, names.NODE_STATE]
        lists = [" ".join(words) for words in (units, masked, packages())]
        run(["docker", "exec", holder, "bash", f"/{SCRATCH}/enrich.sh", *places, *lists], log=log)
        _check_images(log)
        run(["docker", "cp", f"{holder}:/usr/bin/kubectl", work / "kubectl"])
        say("committing the image")
        run(["docker", "commit", "--change", f"ENTRYPOINT {BOOT}", "--change", "CMD []", holder, tag])
    finally:
        run(["docker", "rm", "--force", "--volumes", holder], check=False)
    run(["docker", "save", "-o", work / "node.tar", tag])


def _check_images(log: Path) -> None:
    taken = set(log.read_text().splitlines())
    lost = [name for name in oci.references(images.archive()) if name not in taken]
    if lost:
        raise RackError(f"containerd did not take these images: {', '.join(lost)}; see {log}")
