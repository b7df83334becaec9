"""Which site is meant is said once: `sparkloom use`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.journeys.sites import off
from tests.journeys.terminal import Terminal

SAID = "(sparkloom use)"
PROFILE = "openai--gpt-oss-120b"


def test_a_site_is_remembered_said_and_forgotten(terminal: Terminal) -> None:
    site = off(terminal.home)
    terminal.type("sparkloom use").has("no site is remembered", "sparkloom use SITE")
    terminal.type("sparkloom use inventories/evening").has("inventories/evening")
    terminal.type("cd /")  # wherever one stands
    seen = terminal.type(f"sparkloom plan {PROFILE}")
    assert " ".join(seen.lines[:3]).startswith(f"site: {site}"[:60]) and SAID in seen.words
    terminal.type("sparkloom status", 2).has(SAID, "Connection refused", "sparkloom-evening")
    terminal.type("sparkloom bench", 2).has(SAID, "127.0.0.11", "does not answer")
    terminal.type("sparkloom keys add anna --offline", copied=True).has(SAID, "sk-")
    assert "anna" in (site / "group_vars/all/keys.yml").read_text()
    assert json.loads(terminal.type("sparkloom use --json", copied=True).text) == {"site": str(site)}
    terminal.type("sparkloom use --none").has("no site is remembered")
    assert SAID not in terminal.type(f"sparkloom plan {PROFILE}").words
    terminal.type("sparkloom keys list", 2).has("-i", "sparkloom use")


def test_who_names_a_site_or_reads_by_program_is_told_nothing(terminal: Terminal) -> None:
    off(terminal.home)
    off(terminal.home, "second")
    terminal.type("sparkloom use inventories/evening")
    assert SAID not in terminal.type(f"sparkloom plan {PROFILE} -i inventories/second").words
    told = json.loads(terminal.type(f"sparkloom plan {PROFILE} --json", copied=True).text)
    assert told["cluster"] == "evening"
    assert SAID not in terminal.type(f"sparkloom plan {PROFILE} 2>log | cat", copied=True).text
    assert SAID not in (terminal.home / "log").read_text()
    named = terminal.type(f"sparkloom bench --url http://127.0.0.1:9 --model {PROFILE}", 2)
    assert SAID not in named.words  # another server is not the site's


def test_what_cannot_be_remembered_is_refused(terminal: Terminal) -> None:
    site = off(terminal.home)
    terminal.type("sparkloom use nowhere", 2).has("nowhere", "no such inventory")
    terminal.type("mkdir empty; sparkloom use empty", 2).has("empty: no hosts.yml")
    terminal.type("sparkloom use inventories/evening --none", 2).has("--none", "inventories/evening")
    terminal.type("sparkloom use").has("no site is remembered")
    terminal.type("sparkloom use inventories/evening/hosts.yml").has(str(site))


def test_a_remembered_folder_that_is_gone_is_said_with_the_cure(terminal: Terminal) -> None:
    off(terminal.home)
    terminal.type("sparkloom use inventories/evening")
    terminal.type("mv inventories/evening inventories/later")
    for command in (f"plan {PROFILE}", "status", "bench", "use", "up"):
        seen = terminal.type(f"sparkloom {command}", 2).has("inventories/evening", "sparkloom use", "--none")
        assert seen.words.count("is no folder any more") == 1
    terminal.type(f"sparkloom plan {PROFILE} -i inventories/later")
    terminal.type("sparkloom use inventories/later")
    for spoilt in (":>", "printf '\\377\\xe6\\xbc\\xa2%.0s' {1..40} >", "printf 'a\\0b' >"):
        terminal.type(f"{spoilt} .config/sparkloom/site.txt")
        terminal.type(f"sparkloom plan {PROFILE}", None)
    terminal.type("sparkloom use --none").has("no site is remembered")
    terminal.type(f"sparkloom plan {PROFILE}")


def test_without_a_home_nothing_is_remembered(terminal: Terminal) -> None:
    for spoilt in ("mkdir -p .config/sparkloom/site.txt", "export HOME=/nowhere/at/all"):
        terminal.type(spoilt)
        terminal.type(f"sparkloom plan {PROFILE}")
        terminal.type("sparkloom use").has("no site is remembered")


def test_the_folder_is_xdgs(home: Path) -> None:
    off(home)
    terminal = Terminal(home, XDG_CONFIG_HOME=str(home / "settings"))
    terminal.type("sparkloom use inventories/evening")
    assert (home / "settings/sparkloom/site.txt").read_text().strip() == str(home / "inventories/evening")
    terminal.close()
