"""The rack's programs share one list of versions, so that what two of them have in common is compiled once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testbed.base import names
from testbed.base.shell import run
from testbed.make import binaries, images, traefik_source

TEXT = binaries.VERSIONS[0].read_text()
ASKED = dict(re.findall(r"^\t(\S+) (v\S+)(?: // indirect)?$", TEXT, re.MULTILINE))


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("k8s.io/kubernetes", names.KUBERNETES),
        ("sigs.k8s.io/kind", names.KIND),
        ("gopkg.in/k8snetworkplumbingwg/multus-cni.v4", names.MULTUS),
        ("go.etcd.io/etcd/server/v3", "v" + names.ETCD_IMAGE.rpartition(":")[2].partition("-")[0]),
        ("github.com/coredns/coredns", names.COREDNS_IMAGE.rpartition(":")[2]),
        (traefik_source.ITSELF.path, traefik_source.ITSELF.version),
        (traefik_source.ACME.path, traefik_source.ACME.version),
    ],
)
def test_what_is_built_is_what_the_rack_says_it_is(module: str, version: str) -> None:
    assert ASKED[module] == version


def test_every_part_of_kubernetes_is_of_one_release() -> None:
    replaced = re.findall(r"^\tk8s\.io/\S+ => k8s\.io/\S+ (v\S+)$", TEXT, re.MULTILINE)
    assert len(replaced) > 20 and set(replaced) == {names.KUBERNETES.replace("v1.", "v0.")}


def test_one_folder_holds_every_program_of_ours() -> None:
    """A second list of versions would compile client-go a second time; the policy controller's is of 2024."""
    lists = {path.parent.relative_to(binaries.SOURCE).as_posix() for path in binaries.SOURCE.rglob("go.mod")}
    assert lists == {".", "policy", "traefik/ext"}
    for build in binaries.BUILDS:
        assert all(path.exists() for path in build.own if isinstance(path, Path))


def test_each_program_goes_to_its_own_place_under_its_own_name(tmp_path: Path) -> None:
    """One `go build` makes them all, and calls etcd "server"."""
    made = tmp_path / "made"
    made.mkdir()
    packages = [package for build in binaries.BUILDS for package in build.packages]
    for program in map(binaries._program, packages):
        (made / program).touch(exist_ok=False)
    for build in binaries.BUILDS:
        binaries._keep(build, made, tmp_path / build.name)
    assert not list(made.iterdir())
    assert (tmp_path / "etcd/etcd").exists() and (tmp_path / "gpu/gpu-stand-in").exists()
    assert {path.name for path in (tmp_path / "kubernetes").iterdir()} == {"kubernetes", "kubectl"}


def test_kubernetes_commands_are_links_to_one_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each links a copy of most of the others: six of them took a minute of one core after all was compiled."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nbasename $0\n")
    program.chmod(0o755)
    monkeypatch.setattr(binaries, "binary", lambda build, name: program)
    folder = images._commands(tmp_path) / "usr/local/bin"
    for command in (*images.SIMPLE, images.PROXY):
        assert run([folder / command]).stdout.strip() == command
        assert f'"{command}"' in (binaries.SOURCE / "kubernetes/main.go").read_text()
    assert [path.name for path in folder.iterdir() if not path.is_symlink()] == [binaries.KUBERNETES]
