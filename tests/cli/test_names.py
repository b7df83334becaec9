"""A profile is found by what somebody remembers of it, and never by a guess between two."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.cli import names
from tests.cli.window import piped

GLM, SUPER = "nvidia--glm-4.7-nvfp4", "nvidia--nemotron-3-super-120b-a12b-nvfp4"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (GLM, GLM),
        ("glm 4.7", GLM),
        ("GLM-4.7", GLM),
        ("nvidia/GLM-4.7-NVFP4", GLM),
        ("nvidia/nvidia-nemotron-3-super-120b-a12b-nvfp4", SUPER),  # the hub's name is not the file's
        ("super", SUPER),
        ("super ep4", f"{SUPER}--ep4"),
        ("glm mtp", f"{GLM}--mtp"),
        ("./mine.yml", "./mine.yml"),
        ("folder/mine.yaml", "folder/mine.yaml"),
    ],
)
def test_a_part_or_the_hub_id_is_enough(said: str, meant: str) -> None:
    assert names.exact(said) == meant


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("nemotron", f"names 14 profiles; write more of one: .*{SUPER}.* and 8 more"),
        ("ultra", "names 3 profiles; write more of one"),
        ("nemotrn super", f"nearest: {SUPER}"),
        ("gml", "no such profile"),
        ("somebody/Unheard-Of-7B", "no profile of that model here; `sparkloom profiles` lists"),
    ],
)
def test_what_is_not_one_profile_is_refused_with_what_it_could_be(said: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        names.exact(said)


def test_own_profiles_are_found_by_part_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cell-0042.yml").write_text(f"extends: {GLM}\n")
    monkeypatch.setenv("SPARKLOOM_PROFILES", str(tmp_path))
    assert names.exact("0042") == "cell-0042"


def test_the_command_says_which_one_it_took_and_json_stays_json() -> None:
    done = piped("plan", "glm-4.7", "--json")
    assert json.loads(done.text)["profile"] == GLM and done.errors == f"glm-4.7: {GLM}\n"
    done = piped("lint", "glm-4.7", "super")
    assert done.code == 0 and "2 profiles" in done.text


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("words", [(), ("plan",), ("evidence",), ("evidence", "find"), ("bench",), ("completion",)])
def test_help_by_its_short_name_too(words: tuple[str, ...], flag: str) -> None:
    done = piped(*words, flag)
    assert done.code == 0 and done.text.lower().startswith("usage: sparkloom"), done.errors


def test_it_says_its_version() -> None:
    done = piped("--version")
    assert done.code == 0 and done.text.split()[0] == "sparkloom" and done.text.split()[1][0].isdigit()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sparkloom li", {"lint"}),
        ("sparkloom evidence b", {"best"}),
        ("sparkloom plan nvidia--glm-4", {GLM, f"{GLM}--mtp"}),
        ("sparkloom plan --ex", {"--explain"}),
        ("sparkloom bench --he", {"--help"}),  # asked, not run
    ],
)
def test_a_shell_completes_commands_options_and_profiles(typed: str, offered: set[str]) -> None:
    asked = {"_SPARKLOOM_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = piped(environment=asked)
    assert set(done.text.split()) == offered and done.errors == ""


def test_bash_accepts_the_script() -> None:
    script = piped("completion", "bash").text
    done = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p sparkloom"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and done.stdout.strip().endswith("sparkloom"), done.stderr
    for shell in ("zsh", "fish"):
        assert f"complete_{shell}" in piped("completion", shell).text
