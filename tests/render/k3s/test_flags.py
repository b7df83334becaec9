"""The committed facts of the pinned release, and the reader that makes them from K3s' source."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from oracle import k3s as reader
from sparkloom.render.k3s import flags, machines
from tests.k3s_sites import chosen, site
from tests.places import REPO

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
    assert len(flags.releases()) >= 2
    for release in flags.releases():
        planned = machines.plan(site(["spark1", "spark2", "spark3"]), chosen(k3s_version=release))
        assert set(planned["hosts"]) == {"spark1", "spark2", "spark3", "spark4"}
