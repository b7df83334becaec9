"""A full disk, no network, a home that nobody may write: said by file and cause, and nothing is half written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.sites import off
from tests.journeys.terminal import Terminal

BASH = ("bash", "--norc", "--noprofile", "--noediting")
FULL = "No space left on device"


def apart(home: Path, *flags: str, **env: str) -> Terminal:
    """A terminal in namespaces of its own."""
    words = ("unshare", *flags)
    if os.geteuid() or subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("needs root and namespaces of its own")
    return Terminal(home, shell=(*words, *BASH), **env)


@pytest.fixture
def full(home: Path) -> Iterator[Terminal]:
    """~/full is a disk of 64 KiB on which nothing is free."""
    made = apart(home, "--mount")
    made.type("mkdir full; mount -t tmpfs -o size=64k tmpfs full")
    yield made
    made.close()


def fill(terminal: Terminal) -> None:
    terminal.type("dd if=/dev/zero of=full/rest bs=4k 2>/dev/null", 1)


def test_a_full_disk_leaves_what_was_there(full: Terminal) -> None:
    oss = "vllm serve openai/gpt-oss-120b --max-model-len 65536"
    full.type(f"sparkloom import - -o full/mine.yml <<< '{oss}'").has("wrote full/mine.yml")
    full.type("cp full/mine.yml before.yml")
    fill(full)
    full.type(f"sparkloom import - -o full/mine.yml <<< '{oss} --port 9'", 2).has("full/mine.yml", FULL)
    assert full.type("cmp before.yml full/mine.yml; ls -A1 full").lines == ["mine.yml", "rest"]
    full.type("sparkloom render full/mine.yml -o full/out", 2).has("full/out", FULL)
    full.type("sparkloom export openai--gpt-oss-120b --as compose -o full/c.yml", 2).has("full/c.yml", FULL)
    full.type("sparkloom metrics dashboards --out full/boards", 2).has("full/boards")
    full.type("sparkloom metrics rules --out full/rules.yml", 2).has("full/rules.yml")
    full.type("sparkloom plan openai--gpt-oss-120b > full/plan", 2).has(FULL)


def test_a_key_that_could_not_be_kept_is_not_shown(full: Terminal) -> None:
    site = off(full.home)
    full.type("cp -r inventories/evening full/; rm -r inventories/evening; ln -s ~/full/evening inventories/evening")
    keys = site / "group_vars/all/keys.yml"
    full.type("sparkloom keys add anna --offline -i inventories/evening").has("sk-")
    fill(full)
    seen = full.type("sparkloom keys add bob --offline -i inventories/evening", 2).has("keys.yml", FULL)
    assert "sk-" not in seen.text and not keys.is_symlink()
    full.type("sparkloom keys list -i inventories/evening").has("anna")


def test_without_a_network_what_needs_none_works(home: Path) -> None:
    terminal = apart(home, "--net")
    terminal.type("sparkloom plan openai--gpt-oss-120b").has("fits")
    terminal.type("sparkloom import - <<< 'vllm serve openai/gpt-oss-120b'").has("openai/gpt-oss-120b")
    terminal.type("sparkloom profile new nobody/Anything", 2).has("nobody/Anything")
    off(home)
    terminal.type("sparkloom bench -i inventories/evening", 2).has("does not answer")
    terminal.type("sparkloom status -i inventories/evening", 2).has("kubeconfig")
    terminal.type("sparkloom init home --address 127.0.0.11 --user nvidia --profile glm-4.7-nvfp4", 2).has("127.0.0.11")
    terminal.close()


def test_a_home_that_may_not_be_written(home: Path) -> None:
    site = off(home)
    home.chmod(0o555)
    words = ("--reuid", "65534", "--regid", "65534", "--clear-groups")
    # root's folders stay readable: the checkout may lie there
    may = (
        "--bounding-set",
        "-all,+dac_read_search",
        "--inh-caps",
        "-all,+dac_read_search",
        "--ambient-caps",
        "+dac_read_search",
    )
    if os.geteuid() or subprocess.run(["setpriv", *words, *may, "true"], capture_output=True).returncode:
        pytest.skip("needs root, and setpriv")
    terminal = Terminal(home, shell=("setpriv", *words, *may, *BASH))
    terminal.type("touch it", 1)
    terminal.type("sparkloom plan openai--gpt-oss-120b").has("fits")
    terminal.type("sparkloom profiles > /dev/null")
    refused = "Permission denied"
    terminal.type("sparkloom import - -o mine.yml <<< 'vllm serve openai/gpt-oss-120b'", 2).has("mine.yml", refused)
    terminal.type("sparkloom render glm-4.7-nvfp4 -o out", 2).has("out", refused)
    terminal.type("sparkloom export openai--gpt-oss-120b --as compose -o c.yml", 2).has("c.yml", refused)
    terminal.type("sparkloom keys add anna --offline -i inventories/evening", 2).has("keys.yml", refused)
    terminal.type("sparkloom use inventories/evening", 2).has("site.txt", refused, "-i", "XDG_CONFIG_HOME")
    terminal.type("sparkloom use --none")
    terminal.type("sparkloom status -i inventories/evening", 2).has("kubeconfig")
    terminal.type("sparkloom doctor -i inventories/evening", None)
    terminal.type("sparkloom up -i inventories/evening", None)
    assert not (site / "group_vars/all/keys.yml").exists()
    terminal.close()
