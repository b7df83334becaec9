"""The modules of role k3s that change a machine: only pinned bytes are installed, no secret is shown, all goes away."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkloom.site import ansible
from sparkloom.site.tasks import k3s as tasks
from tests.k3s_sites import site
from tests.plugins.loading import context, module, on_node

state, remove = (module(f"k3s_{name}") for name in ("state", "remove"))


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A folder of release files behind a URL."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    (folder / "k3s").write_bytes(b"the program")
    with tarfile.open(folder / "cni.tgz", "w:gz") as archive:
        for name in ("host-device", "static"):
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(name)
            archive.addfile(entry, io.BytesIO(name.encode()))
    handler = partial(SimpleHTTPRequestHandler, directory=folder)
    web = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{web.server_address[1]}"
    web.shutdown()


def item(mirror: str, tmp_path: Path, name: str, files: dict[str, str | None], digest: str = "") -> dict[str, Any]:
    real = hashlib.sha256((tmp_path / "mirror" / name).read_bytes()).hexdigest()
    return {
        "name": name,
        "url": f"{mirror}/{name}",
        "sha256": digest or real,
        "variable": "k3s_sha256.amd64",
        "files": {str(tmp_path / "root" / path): member for path, member in files.items()},
    }


def programs(tmp_path: Path, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    places = {"record": str(tmp_path / "record.json"), "staging": str(tmp_path / "staging")}
    return on_node("k3s_programs", items=list(items), **places, **more)


def test_pinned_files_are_installed_and_on_record(tmp_path: Path, mirror: str) -> None:
    wanted = [
        item(mirror, tmp_path, "k3s", {"k3s": None}),
        item(mirror, tmp_path, "cni.tgz", {"host-device": "host-device", "static": "static"}),
    ]
    assert programs(tmp_path, *wanted, dry=True)["changed"] and not (tmp_path / "root").exists()
    assert programs(tmp_path, *wanted)["changed"]
    assert (tmp_path / "root/k3s").read_text() == "the program" and (tmp_path / "root/static").read_text() == "static"
    assert (tmp_path / "root/host-device").stat().st_mode & 0o777 == 0o755
    read = state.programs(str(tmp_path / "record.json"))
    assert read["k3s"] == {"sha256": wanted[0]["sha256"], "intact": True}
    (tmp_path / "root/static").write_text("other")
    assert state.programs(str(tmp_path / "record.json"))["cni.tgz"]["intact"] is False
    assert not (tmp_path / "staging").exists()


def test_other_bytes_are_refused_and_nothing_is_replaced(tmp_path: Path, mirror: str) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/k3s").write_text("as before")
    said = programs(tmp_path, item(mirror, tmp_path, "k3s", {"k3s": None}, digest="0" * 64))
    assert (
        said["failed"] and "expected " + "0" * 64 in said["msg"] and "k3s_sha256.amd64 in versions.yml" in said["msg"]
    )
    assert (tmp_path / "root/k3s").read_text() == "as before" and not (tmp_path / "record.json").exists()


def test_what_no_mirror_has_is_said_with_the_ways_out(tmp_path: Path, mirror: str) -> None:
    wanted = item(mirror, tmp_path, "k3s", {"k3s": None}) | {"url": f"{mirror}/gone"}
    assert "k3s_artifacts" in programs(tmp_path, wanted)["msg"]


def test_an_archive_without_the_plugin_is_refused(tmp_path: Path, mirror: str) -> None:
    said = programs(tmp_path, item(mirror, tmp_path, "cni.tgz", {"whereabouts": "whereabouts"}))
    assert "has no whereabouts" in said["msg"] and not (tmp_path / "root/whereabouts").exists()


def test_a_secret_is_written_closed_and_never_shown(tmp_path: Path) -> None:
    target, secret = tmp_path / "token", "K10abc::node:verysecretindeed"
    said = on_node("files", files=[], secrets={str(target): secret})
    assert said["changed"] and target.read_text() == secret and target.stat().st_mode & 0o777 == 0o600
    assert "verysecret" not in json.dumps(said)
    assert not on_node("files", files=[], secrets={str(target): secret})["changed"]


def test_passphrases_are_made_once_and_kept_closed(tmp_path: Path) -> None:
    paths = {
        "token": str(tmp_path / "etc/token"),
        "agent_token": str(tmp_path / "etc/agent-token"),
        "joining": {"server": str(tmp_path / "full"), "agent": str(tmp_path / "none")},
    }
    assert len(on_node("k3s_secrets", paths=paths)["missing"]) == 2
    assert not (tmp_path / "etc").exists(), "reading makes nothing"
    made = on_node("k3s_secrets", paths=paths, create=True)
    first = (tmp_path / "etc/token").read_text()
    assert made["changed"] and len(first.strip()) == 64 and made["tokens"]["server"] == first.strip()
    (tmp_path / "etc/token").chmod(0o644)
    (tmp_path / "full").write_text("K10hash::server:x\n")
    again = on_node("k3s_secrets", paths=paths, create=True)
    assert (tmp_path / "etc/token").read_text() == first and (tmp_path / "etc/token").stat().st_mode & 0o077 == 0
    assert again["tokens"]["server"] == "K10hash::server:x", "the form with the certificate's hash, once K3s wrote it"


def test_marks_tell_two_tokens_apart_and_neither(tmp_path: Path) -> None:
    paths = {name: str(tmp_path / name) for name in ("token", "agent_token")}
    paths |= {"joining": {"server": str(tmp_path / "full"), "agent": str(tmp_path / "none")}}
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "full").write_text("secret\n")
    told = on_node("k3s_secrets", paths=paths, marks=True)
    assert told["marks"]["token"] == told["marks"]["server"] == hashlib.sha256(b"secret").hexdigest()
    assert told["marks"]["agent_token"] == told["marks"]["agent"] == ""
    assert "tokens" not in told and "secret" not in str(told), "and nothing else is told"


def test_what_k3s_was_started_with_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "stamp"
    path.write_text(f"{'1' * 64}  /usr/local/bin/k3s\n{'2' * 64}  /etc/rancher/k3s/config.yaml\n")
    assert state.stamp(str(path)) == {"/usr/local/bin/k3s": "1" * 64, "/etc/rancher/k3s/config.yaml": "2" * 64}
    assert state.stamp(str(tmp_path / "none")) == {}


def test_only_k3s_own_firewall_rules_are_taken_away() -> None:
    assert all(
        remove.RULES.search(line)
        for line in ("-A KUBE-SERVICES -j x", "-A POSTROUTING -m comment --comment flanneld -j FLANNEL-POSTRTG")
    )
    assert not remove.RULES.search("-A DOCKER-USER -j RETURN")


def test_a_folder_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "data/deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data")
    remove.clear(tmp_path / "link")
    assert (tmp_path / "data/deep").exists() and remove.gone(tmp_path / "link")
    remove.clear(tmp_path / "data")
    assert remove.gone(tmp_path / "data")


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(ansible, "cluster", lambda _: site(["box1"]))
    return tasks.leftovers(context({"ansible_play_hosts_all": ["spark1", "spark3"]}))


def test_k3s_is_taken_off_no_spark_that_the_run_leaves_out(left: dict[str, Any]) -> None:
    """On the old code `--limit spark1` took it off all of them; a server beside the Sparks is in no such run."""
    assert left["machines"] == ["spark3", "spark1", "box1"]


def test_what_kubelet_leaves_behind_goes_and_a_drivers_folder_stays_when_somebody_uses_it(
    tmp_path: Path, left: dict[str, Any]
) -> None:
    assert {"/var/log/pods", "/var/log/containers"} <= set(left["remove"])
    drivers = [path for path in left["empty"] if path.startswith("/usr/libexec/kubernetes")]
    for folder, somebody in ((tmp_path / "a", False), (tmp_path / "b", True)):
        inner = [Path(f"{folder}{path}") for path in drivers]
        inner[0].mkdir(parents=True)
        if somebody:
            (inner[0] / "vendor~driver").mkdir()
        remove.clear_empty([str(path) for path in inner])
        assert inner[-1].exists() == somebody


IN_ITS_OWN_MOUNTS = """
import json, subprocess, sys
from pathlib import Path
from sparkloom.onnode.tasks import k3s_remove as remove
(folder,) = sys.argv[1:]
point = Path(folder, "k3s/pvc of somebody")
point.mkdir(parents=True)
subprocess.run(["mount", "-t", "tmpfs", "none", str(point)], check=True)
(point / "precious").write_text("x")
seen = remove.mounted([folder])
remove.run = lambda *argv, **_: subprocess.CompletedProcess(argv, 32, "", "umount: target is busy.")
held = remove.unmount([folder])
remove.clear(Path(folder, "k3s"))
kept = (point / "precious").exists()
remove.run = lambda *argv, **_: subprocess.run(argv, capture_output=True, text=True)
left = remove.unmount([folder])
remove.clear(Path(folder, "k3s"))
print(json.dumps([seen, held, kept, left, Path(folder, "k3s").exists()]))
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="mounts in a namespace: needs root")
def test_nothing_is_removed_through_a_mount_and_a_name_with_a_space_is_unmounted(tmp_path: Path) -> None:
    """Its name was read as `pvc\\040of\\040somebody`, umount did not find it, and its files went with K3s'."""
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", IN_ITS_OWN_MOUNTS]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen, held, kept, left, there = json.loads(done.stdout)
    point = f"{tmp_path}/k3s/pvc of somebody"
    assert seen == [point] and held == [f"{point} (umount: target is busy.)"]
    assert kept, "a file of somebody's volume was removed"
    assert left == [] and not there


def test_no_file_goes_while_something_is_mounted_below(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "k3s").mkdir()
    monkeypatch.setattr(remove, "run", lambda *argv, **_: subprocess.CompletedProcess(argv, 0, "", ""))
    monkeypatch.setattr(remove, "shims", lambda data: [])
    monkeypatch.setattr(remove, "unmount", lambda prefixes: [f"{tmp_path}/k3s/x (busy)"])
    lists = {"services": [], "mounts": [str(tmp_path)], "links": [], "remove": [str(tmp_path / "k3s")], "empty": []}
    assert remove.take({"data": str(tmp_path), **lists}) == [f"{tmp_path}/k3s/x (busy)"]
    assert (tmp_path / "k3s").exists()


def test_a_machine_names_volumes_containers_and_pods_of_others(tmp_path: Path, left: dict[str, Any]) -> None:
    found = left["others"]
    assert found["ours"][-1] == "sparkloom" and "kube-system" in found["ours"]
    ours = found["ours"]
    places = {name: str(tmp_path / name) for name in ("volumes", "containers", "logs")}
    assert on_node("k3s_others", **places, ours=ours)["others"] == []
    for folder in (
        "volumes/pvc-1_photos_album", "containers/k8s.io/abc", "containers/default/mine",
        "logs/photos_web-0_5e1f", "logs/kube-system_coredns-1_77", "logs/sparkloom_x-rank0-0_12",
    ):  # fmt: skip
        (tmp_path / folder).mkdir(parents=True)
    said = on_node("k3s_others", **places, ours=ours)
    assert said["others"] == [
        f"volume {tmp_path}/volumes/pvc-1_photos_album",
        "container mine (containerd's namespace default)",
        "pod photos/web-0",
    ] and not said["changed"]  # fmt: skip
