"""TAB, really typed, in bash, zsh and fish."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.journeys.terminal import PROGRAMS

READY = {
    "bash": (["--norc", "--noprofile"], 'eval "$(sparkloom completion bash)"; bind "set enable-bracketed-paste off"'),
    "zsh": (["-f"], 'autoload -Uz compinit; compinit -u; eval "$(sparkloom completion zsh)"'),
    "fish": (["--no-config"], "sparkloom completion fish | source"),
}
TYPED = {  # what is typed before TAB, and what stands there then
    "sparkloom diagn": "diagnose",
    "sparkloom plan nvidia--glm-5.3-flash-nvfp4--": "nvidia--glm-5.3-flash-nvfp4--4node",
    "sparkloom evidence comp": "evidence compare",
    "sparkloom plan --expl": "--explain",
    "sparkloom keys rev": "keys revoke",
    "sparkloom sto": "stop",
}


@pytest.fixture(params=READY)
def shell(request: pytest.FixtureRequest, home: Path) -> Iterator[pexpect.spawn]:
    name = request.param
    if not shutil.which(name):
        pytest.skip(f"no {name} here: apt-get install {name}")
    words, ready = READY[name]
    env = {"HOME": str(home), "TERM": "xterm", "LANG": "C.UTF-8", "PATH": f"{PROGRAMS}:/usr/bin:/bin", "PS1": "> "}
    made = pexpect.spawn(name, words, env=env, cwd=str(home), dimensions=(24, 120), encoding="utf-8", timeout=120)  # type: ignore[arg-type]
    made.sendline(ready)
    made.sendline("echo rea''dy")
    made.expect("ready\r")
    made.shell = name  # type: ignore[attr-defined]
    yield made
    made.delayafterterminate = made.ptyproc.delayafterterminate = 10
    made.close(force=True)


def test_what_was_begun_is_completed(shell: pexpect.spawn) -> None:
    for typed, wanted in TYPED.items():
        shell.send(f"{typed}\t")
        # the shell draws what it adds: all of the word, or only its rest
        shell.expect(re.escape(wanted.split()[-1][-5:]))
        shell.sendcontrol("u")
        shell.sendline("echo ne''xt")
        shell.expect("next\r")


def test_a_choice_is_shown_and_nothing_else(shell: pexpect.spawn) -> None:
    shell.send("sparkloom key\t")
    shell.expect("keys")
    shell.send(" \t\t")
    for word in ("add", "list", "revoke"):
        shell.expect(word)
    shell.sendcontrol("u")
    shell.sendline("echo ne''xt")
    shell.expect("next\r")
    assert "Traceback" not in str(shell.before)
