"""The committed facts of the pinned release, and the reader that makes them from K3s' source."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from oracle import k3s as reader
from sparkloom.base.errors import InputError
from sparkloom.render.k3s import flags, machines
from sparkloom.render.k3s.options import release as order
from tests.k3s_sites import chosen, site
from tests.places import REPO
from tests.render.manifests import schemas

SOURCE = """package cmds

var (
	Shared = &cli.StringSliceFlag{
		Name:        "node-label",
		Usage:       "text with { a brace }",
		Destination: &AgentConfig.Labels,
	}
	Port = &cli.IntFlag{
		Name:    "port",
		Aliases: []string{"p"},
	}
)

var ServerFlags = []cli.Flag{
	Shared,
	&cli.BoolFlag{
		Name: "cluster-init",
	},
	Port,
}

func NewAgentCommand() *cli.Command {
	return &cli.Command{
		Flags: []cli.Flag{
			Shared,
			&cli.DurationFlag{
				Name: "patience",
			},
		},
	}
}
"""


def test_the_release_that_is_pinned_is_known() -> None:
    versions = yaml.safe_load((REPO / "inventories/gb10/group_vars/all/versions.yml").read_text())
    facts = flags.facts(versions["k3s_version"])
    assert facts["source"]["repository"] == "github.com/k3s-io/k3s" and facts["source"]["commits"]
    assert len(facts["flags"]) > 100
    server = flags.known(versions["k3s_version"], "server")
    assert {
        "cluster-init": "bool",
        "tls-san": "list",
        "t": "string",
        "etcd-s3-timeout": "duration",
    }.items() <= server.items()
    assert "cluster-init" not in flags.known(versions["k3s_version"], "agent")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True)

    folder = tmp_path / reader.SOURCE
    folder.mkdir(parents=True)
    git("init", "-q")
    for number, text in enumerate((SOURCE, SOURCE.replace('"patience"', '"haste"'))):
        (folder / "all.go").write_text(text)
        (folder / "const_windows.go").write_text("package cmds // other flags there\n")
        git("add", ".")
        git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", str(number))
    return tmp_path


def test_flags_are_read_from_source(clone: Path) -> None:
    found = reader.facts(clone, "v1.0.0+k3s1", ["HEAD"])
    assert found["flags"] == {
        "cluster-init": {"type": "bool", "aliases": [], "commands": ["server"]},
        "haste": {"type": "duration", "aliases": [], "commands": ["agent"]},
        "node-label": {"type": "list", "aliases": [], "commands": ["server", "agent"]},
        "port": {"type": "int", "aliases": ["p"], "commands": ["server"]},
    }


def test_of_several_commits_only_what_all_have_counts(clone: Path) -> None:
    found = reader.facts(clone, "v1.0.0+k3s1", ["HEAD", "HEAD~1"])
    assert sorted(found["flags"]) == ["cluster-init", "node-label", "port"]


def test_a_flag_that_is_declared_nowhere_is_an_error(clone: Path) -> None:
    with pytest.raises(ValueError, match="Missing"):
        reader.listed("\n\tMissing,\n", {})


def test_a_go_module_is_a_source_too_and_old_releases_keep_aliases_in_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "k3s@v1.32.1-0.20250107171309-cca8facaa33a"
    (folder / reader.SOURCE).mkdir(parents=True)
    old = SOURCE.replace("ServerFlags =", "ServerFlags  =")
    old = re.sub(r'"port",\n\t\tAliases: .*', '"port, p",', old)
    (folder / reader.SOURCE / "all.go").write_text(old)
    (folder / reader.SOURCE / "x_windows.go").write_text("package cmds // others\n")
    commit = "cca8facaa33a3ec7897349a8740fd96029590c31"
    found = reader.facts(folder, "v1.32.0+k3s1", [commit])
    assert found["source"]["commits"] == {commit: "2025-01-07"}
    assert found["flags"]["port"] == {"type": "int", "aliases": ["p"], "commands": ["server"]}
    with pytest.raises(ValueError, match="is no commit"):
        reader.facts(folder, "v1.32.0+k3s1", ["87243446a2c2"])


def test_all_that_the_role_writes_is_known_to_every_release_with_facts() -> None:
    """So that one line in versions.yml changes the release, and nothing is lost on a server without a word."""
    every = {"pod_cidr": "10.50.0.0/16", "service_cidr": "10.51.0.0/16"}
    for release in flags.releases():
        options = chosen(k3s_version=release, k3s_api_host="k3s.home", k3s_disable=["traefik"])
        for servers in (["spark1", "spark2", "spark3"], ["box1"], None):
            planned = machines.plan(site(servers, **every), options)
            assert {"spark1", "spark2", "spark3", "spark4"} <= set(planned["hosts"])


def test_the_newest_minor_stands_beside_the_pinned_one_and_each_step_to_it() -> None:
    """Red before: only v1.32.0 and the pinned v1.35.8; a newer k3s_version was refused for want of facts."""
    pinned = chosen().version
    minors = [order(release)[1] for release in flags.releases()]
    above = [minor for minor in minors if minor >= order(pinned)[1]]
    assert above == [35, 36, 37], "an upgrade is one minor at a time"
    for release in flags.releases():
        facts = flags.facts(release)
        assert facts["release"] == release and facts["source"]["commits"] and len(facts["flags"]) > 100


def test_a_later_patch_is_judged_by_the_facts_of_one_before_it() -> None:
    assert flags.facts("v1.36.9+k3s2")["release"] == "v1.36.3+k3s1"
    with pytest.raises(InputError, match=r"nothing is known of v1.36.1\+k3s1's flags; expected one of .*v1.36.3\+k3s1"):
        flags.facts("v1.36.1+k3s1")


@pytest.mark.parametrize(
    ("older", "newer", "key", "value"),
    [
        ("v1.32.0+k3s1", "v1.35.8+k3s1", "etcd-s3-retention", 5),
        ("v1.36.3+k3s1", "v1.37.0+k3s1", "write-kubeconfig-name", "gb10"),
    ],
)
def test_a_flag_of_a_newer_release_is_refused_on_the_older_one(older: str, newer: str, key: str, value: object) -> None:
    """Red before: refused as misspelt, without the value and without the release that has it."""
    machines.plan(site(), chosen(k3s_version=newer, k3s_server_config={key: value}))
    with pytest.raises(InputError) as refusal:
        machines.plan(site(), chosen(k3s_version=older, k3s_server_config={key: value}))
    said = str(refusal.value)
    assert "k3s_server_config" in said and f"'{key}' is no flag of k3s server {older} (found {value!r})" in said
    assert f"{newer} has it: take it out, or another k3s_version in versions.yml" in said


def test_a_misspelt_secret_is_not_shown() -> None:
    with pytest.raises(InputError) as refusal:
        machines.plan(site(), chosen(k3s_server_config={"etcd-s3-secrt-key": "hush"}))
    assert "did you mean 'etcd-s3-secret-key'" in str(refusal.value) and "hush" not in str(refusal.value)


def test_objects_are_judged_by_the_schemas_of_every_release() -> None:
    """tests/render/manifests holds all that is rendered to these."""
    assert {f"1.{order(release)[1]}" for release in flags.releases()} <= set(schemas.RELEASES)
