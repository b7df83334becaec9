"""A build on a node: judged before, followed, published for the others, imported.

By a docker that only writes down what it is told and saves a small archive, and by BuildKit itself where a dockerd is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkloom.inputs import image_recipes
from sparkloom.inputs.image_recipes import HOST, LoadedRecipe
from sparkloom.onnode.images import build, main, pull, sharing
from sparkloom.onnode.images.build import Building
from sparkloom.onnode.images.runtime import PINNED, ImageError, Runtime
from sparkloom.onnode.weights import check
from sparkloom.onnode.weights import main as weights_main
from sparkloom.onnode.weights.job import Job
from sparkloom.onnode.weights.layout import Store
from sparkloom.site import image_build
from tests import image_archives as made
from tests.onnode.images import buildx
from tests.onnode.images.test_images import REAL, Place, place
from tests.onnode.weights.test_chain import free_port
from tests.until import until

__all__ = ["place"]
NAME = f"{HOST}/llama.cpp:b8399-sm121"
LOADED = image_recipes.load("llama.cpp-b8399")
DOCKER = """#!/bin/sh
echo "docker $*" >> {log}
case "$1 $2" in
"buildx version") exit {buildx};;
"info --format") echo {root};;
"buildx build")
    echo '#5 [build 3/9] RUN cmake -B build'
    until [ -e {go} ]; do sleep 0.05; done
    [ -e {fail} ] && echo 'ERROR: failed to solve: process "cmake" did not complete: exit code: 1' && exit 1
    exit 0;;
"save -o") cp {archive} "$3";;
esac
"""


class Node:
    """This machine as a node: its folders, and a docker of the test's own in front of any other."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, buildx: int = 0) -> None:
        self.folder, self.go, self.fail = folder, folder / "go", folder / "fail"
        self.log, self.archive = folder / "docker.log", folder / "saved.tar"
        (folder / "bin").mkdir()
        text = DOCKER.format(log=self.log, buildx=buildx, root=folder, go=self.go, fail=self.fail, archive=self.archive)
        (folder / "bin/docker").write_text(text)
        (folder / "bin/docker").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setattr(build, "which", lambda name: None if name == "buildctl" else shutil.which(name))
        monkeypatch.setattr(pull, "RUN", folder / "run")
        monkeypatch.setattr(build, "RUN", folder / "run")
        monkeypatch.setattr(Building.__init__, "__defaults__", (folder / "run",))

    def asked(self, place: Place | None = None, **more: Any) -> dict[str, Any]:
        told = image_build.asked(LOADED, places=[place] if place else [{"socket": "/none", "root": "/none"}])
        ours = {"store": str(self.folder / "store"), "work": str(self.folder / "work")}
        return {**told, **ours, "disk_gb": 0.001, "memory_gib": 0.001, **more}

    def saves(self, content: bytes = b"engine" * 900, label: str = "") -> made.Made:
        image = labelled(made.image("arm64", content), label or str(self.asked()["identity"]))
        made.keep(self.archive, made.layout(**{NAME: image}))
        return image


def labelled(image: made.Made, identity: str) -> made.Made:
    """The same image, whose configuration says what it was built from."""
    manifest = json.loads(image.blobs[image.digest])
    config = json.loads(image.blobs[manifest["config"]["digest"]])
    config["config"] = {"Labels": {build.LABEL: identity}}
    text = json.dumps(config).encode()
    manifest["config"] |= {"digest": made.digest(text), "size": len(text)}
    whole = json.dumps(manifest).encode()
    top = {**image.top, "digest": made.digest(whole), "size": len(whole)}
    layers = {one["digest"]: image.blobs[one["digest"]] for one in manifest["layers"]}
    return made.Made({**layers, made.digest(text): text, made.digest(whole): whole}, top)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def ended(one: Building) -> dict[str, Any]:
    return dict(until(lambda: status if (status := one.status())["state"] in ("done", "failed", "none") else None, 60))


def test_a_build_shows_its_step_is_found_at_work_and_leaves_an_archive_of_the_store(node: Node) -> None:
    node.saves()
    one = Building(node.asked())
    one.start()
    until(lambda: one.status()["state"] == "builds [build 3/9] RUN cmake -B build", 60)
    again = Building(node.asked()).start()
    assert again["state"].startswith("builds"), "a second run finds it"
    node.go.touch()
    assert ended(one)["state"] == "done"
    told = node.log.read_text()
    assert told.count("docker buildx build") == 1 and "--provenance=false" in told
    assert f"--build-arg SOURCE_DATE_EPOCH={LOADED.recipe.epoch} -t {NAME}" in told and "--network" not in told
    published = main.COMMANDS["publish"](node.asked())
    row = check.check(Store(node.folder / "store"), image_build.model(LOADED), published["revision"], deep=True)
    assert row["ok"] and row["bytes"] == node.archive.stat().st_size
    assert not list((node.folder / "work").iterdir()), "no second copy stays"


def test_a_failed_build_says_why_and_the_next_run_begins_anew(node: Node) -> None:
    node.saves()
    node.fail.touch()
    node.go.touch()
    one = Building(node.asked())
    one.start()
    status = ended(one)
    assert status["state"] == "failed" and "failed to solve" in status["cause"] and "/log" in status["cause"]
    node.fail.unlink()
    one.start()
    assert ended(one)["state"] == "done"


def test_a_recipe_that_downloads_nothing_has_no_network(node: Node) -> None:
    for tool, words in (("docker", "--network none"), ("buildctl", "force-network-mode=none")):
        lines = build.commands(tool, node.asked(online=False), Path("/c"), Path("/o"))
        assert words in " ".join(lines[0])
        assert words not in " ".join(build.commands(tool, node.asked(), Path("/c"), Path("/o"))[0])


def test_buildkitd_takes_the_times_out(node: Node) -> None:
    (line,) = build.commands("buildctl", node.asked(), Path("/c"), Path("/o"))
    assert f"type=docker,name={NAME},dest=/o,rewrite-timestamp=true" in line
    assert f"build-arg:SOURCE_DATE_EPOCH={LOADED.recipe.epoch}" in line and "platform=linux/arm64" in line


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"disk_gb": 1e6}, "GB free, the build needs 1000000 GB; make room there"),
        ({"memory_gib": 1e6}, "GiB of memory are available, the build needs 1000000 GiB"),
    ],
)
def test_a_node_without_room_is_refused(node: Node, more: dict[str, Any], said: str) -> None:
    told = build.judge(node.asked(**more))
    (refusal,) = told["refusals"]
    assert said in refusal


def test_a_build_beside_a_serving_engine_is_refused_unless_it_is_said(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    crictl = node.folder / "bin/crictl"
    crictl.write_text('#!/bin/sh\necho \'{"items": [{"metadata": {"name": "glm-rank0-0"}}]}\'\n')
    crictl.chmod(0o755)
    (node.folder / "bin/ctr").write_text("#!/bin/sh\n")
    (node.folder / "bin/ctr").chmod(0o755)
    place = {"socket": str(node.folder), "root": str(node.folder)}
    (refusal,) = build.judge(node.asked(place))["refusals"]
    assert "glm-rank0-0 serves here" in refusal and "image_build_beside=true" in refusal
    told = build.judge(node.asked(place, beside=True))
    assert told["refusals"] == [] and told["serving"] == ["glm-rank0-0"], "and it is said"


def test_without_buildkit_it_is_said_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(tmp_path, monkeypatch, buildx=1)
    (refusal,) = build.judge(node.asked())["refusals"]
    assert "docker-buildx-plugin" in refusal
    with pytest.raises(ImageError, match="docker-buildx-plugin"):
        Building(node.asked()).start()
    monkeypatch.setattr(build, "which", lambda name: None)
    assert "neither Docker nor a buildkitd" in build.judge(node.asked())["refusals"][0]


def handed_on(store: Path, revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The weights' own agents carry it to a second node."""
    monkeypatch.setattr(weights_main, "LINGER", 1.0)
    ports = [free_port(), free_port()]
    peer = {"kind": "peer", "name": "spark1", "addresses": ["127.0.0.1"], "port": ports[0]}
    jobs = []
    for number, (source, folder) in enumerate((({"kind": "own"}, store), (peer, tmp_path / "second"))):
        spec = {
            "job": "job", "secret": "of this run", "peers": ["127.0.0.1"], "store": str(folder), "source": source,
            "models": image_build.wanted(LOADED, revision), "listen": ["127.0.0.1"], "port": ports[number],
            "connections": 2, "downstream": number == 0,
        }  # fmt: skip
        jobs.append(Job(spec, tmp_path / f"job-{number}"))
    threads = [threading.Thread(target=weights_main.transfer, args=(job,), daemon=True) for job in jobs]
    threads[0].start()
    assert jobs[0].listed.wait(30)
    jobs[1].spec["manifests"] = jobs[0].manifests
    threads[1].start()
    for thread in threads:
        thread.join(30)
    assert [(job.state, job.cause) for job in jobs] == [("done", "")] * 2
    return tmp_path / "second"


def imported(place: Place, file: Path) -> Mapping[str, Any]:
    asked = {"places": [place], "file": str(file)}
    main.COMMANDS["import"](asked)
    status = until(
        lambda: told if (told := main.COMMANDS["importing"](asked))["state"] in ("done", "failed") else None, 60
    )
    assert status["state"] == "done", status
    main.COMMANDS["settle"]({**asked, "images": [{"image": NAME, "digest": ""}]})
    return main.COMMANDS["built"]({"places": [place], "image": NAME})


def shared(place: Place, image: made.Made) -> set[str]:
    """Of which repository each part says that it is."""
    runtime = Runtime.here([place])
    rows = {row.split()[0]: row for row in runtime.run("content", "ls").splitlines()}
    key = f"{sharing.SOURCE}{HOST}="
    return {rows[part].partition(key)[2].partition(",")[0].strip() for part in image.blobs}


@REAL
def test_a_part_of_two_images_says_both(place: Place, tmp_path: Path) -> None:
    image = made.image("arm64", b"of two" * 700)
    runtime = Runtime.here([place])
    for number, name in enumerate((f"{HOST}/one:1", f"{HOST}/two:1")):
        file = tmp_path / f"{number}.tar"
        made.keep(file, made.layout(**{name: image}))
        subprocess.run([*runtime.ctr, "images", "import", str(file)], check=True, capture_output=True)
    for name in ("one", "two"):
        assert set(sharing.share(runtime, f"{HOST}/{name}", image.digest)) == set(image.blobs)
        assert sharing.share(runtime, f"{HOST}/{name}", image.digest) == [], "a second time there is nothing to do"
    rows = runtime.run("content", "ls")
    assert rows.count(f"{sharing.SOURCE}{HOST}=one,two") == len(image.blobs)


@REAL
def test_what_was_built_is_handed_on_imported_and_told_by_its_label(
    node: Node, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = node.saves(b"handed on" * 500)
    node.go.touch()
    one = Building(node.asked())
    one.start()
    assert ended(one)["state"] == "done"
    published = main.COMMANDS["publish"](node.asked())
    second = handed_on(node.folder / "store", published["revision"], tmp_path, monkeypatch)
    file = Store(second).link(image_build.model(LOADED)) / build.ARCHIVE
    found = imported(place, file)
    assert found["tag"] == image.digest and found["digests"] == [image.digest]
    assert found["made_of"] == node.asked()["identity"]
    assert shared(place, image) == {"llama.cpp"}, "K3s' registry gives away only parts that say whose they are"
    decided = image_build.decide(LOADED, {"spark1": found}, "", again=False)
    assert decided.digest == image.digest and not decided.build


def tiny(folder: Path, machine: str) -> LoadedRecipe:
    """Everything that needs no registry: an image out of nothing, a file, an archive, labels, a variable."""
    content = made.tar({"etc/os-release": b"ID=none\n"})
    (folder / "root.tar").write_bytes(content)
    (folder / "engine.py").write_text("print('serves')\n")
    files = [("root.tar", "/", True), ("engine.py", "/engine.py", False)]
    written = [
        {"file": name, "sha256": made.digest((folder / name).read_bytes())[7:], "to": to, "unpack": unpack}
        for name, to, unpack in files
    ]
    whole = LOADED.recipe.model_dump() | {
        "summary": "an engine out of nothing", "platform": f"linux/{machine}", "build": None, "copies": [],
        "packages": [], "run": [], "proof": [], "base": {"image": "scratch"}, "files": written,
            "labels": {"with": 'a "quote" and $dollar'},
        "env": {"ENGINE": "tiny"}, "needs": {"disk_gb": 0.001, "memory_gib": 0.001},
    }  # fmt: skip
    return replace(LOADED, name="tiny", recipe=type(LOADED.recipe).model_validate(whole), folder=folder)


DOCKERD = pytest.mark.skipif(not buildx.answers(), reason="needs a dockerd")


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The docker of this machine, with buildx or with the test's own words for it."""
    monkeypatch.setattr(Building.__init__, "__defaults__", (tmp_path / "run",))
    monkeypatch.setattr(build, "which", lambda name: None if name == "buildctl" else shutil.which(name))
    if subprocess.run(["docker", "buildx", "version"], capture_output=True).returncode:
        monkeypatch.setenv("PATH", f"{buildx.wrapped(tmp_path / 'bin')}:{os.environ['PATH']}")
    yield
    subprocess.run(["docker", "image", "rm", "-f", NAME], capture_output=True)


def whole(loaded: LoadedRecipe, tmp_path: Path, place: Place | None = None) -> dict[str, Any]:
    ours = {"store": str(tmp_path / "store"), "work": str(tmp_path / "work")}
    return {**image_build.asked(loaded, places=[place] if place else []), **ours}


@REAL
@DOCKERD
def test_buildkit_itself_builds_a_recipe_and_containerd_has_it(place: Place, tmp_path: Path, docker: None) -> None:
    """Dockerfile, BuildKit, docker save, the store, containerd: all of it real, out of nothing but files."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    loaded = tiny(tmp_path, machine)
    asked = whole(loaded, tmp_path, place)
    judged = build.judge(asked)
    assert judged["refusals"] == [] and judged["tool"] == "docker"
    one = Building(asked)
    one.start()
    status = ended(one)
    assert status["state"] == "done", status["cause"]
    main.COMMANDS["publish"](asked)
    found = imported(place, Store(tmp_path / "store").link(image_build.model(loaded)) / build.ARCHIVE)
    assert found["made_of"] == asked["identity"], "the label of the Dockerfile came through"
    assert not image_build.decide(loaded, {"spark1": found}, "", again=False).build
    runtime = Runtime.here([place])
    text = runtime.run("images", "ls", f"name=={NAME}")
    assert str(found["tag"]) in text and f"linux/{machine}" in text and PINNED in text
    (config,) = [told["config"] for part in sharing.parts(runtime, found["tag"])
                 if "rootfs" in (told := sharing.blob(runtime, part))]  # fmt: skip
    assert config["Labels"]["with"] == 'a "quote" and $dollar' and "ENGINE=tiny" in config["Env"]
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    runtime.run("images", "mount", NAME, str(mounted))
    try:
        assert (mounted / "engine.py").read_text() == "print('serves')\n"
        assert (mounted / "etc/os-release").read_text() == "ID=none\n"
    finally:
        subprocess.run(["umount", str(mounted)], check=False)


@DOCKERD
@pytest.mark.parametrize("name", image_recipes.names())
def test_buildkit_understands_every_line_of_the_shipped_recipes(name: str, tmp_path: Path, docker: None) -> None:
    """Out of nothing instead of their bases: it reads the whole file, and then finds no shell for the first step."""
    asked = whole(image_recipes.load(name), tmp_path)
    lines = b64decode(asked["context"]["Dockerfile"]).decode().splitlines()
    bare = "\n".join(re.sub(r"^FROM \S+", "FROM scratch", line) for line in lines) + "\n"
    asked["context"]["Dockerfile"] = b64encode(bare.encode()).decode()
    asked |= {"platform": f"linux/{'amd64' if os.uname().machine == 'x86_64' else 'arm64'}", "online": False}
    one = Building(asked)
    one.start()
    status = ended(one)
    assert status["state"] == "failed" and "parse error" not in status["cause"], status["cause"]
    assert re.search(r"/bin/sh|executor failed", status["cause"]), status["cause"]
