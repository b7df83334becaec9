"""Every command explains itself in 80 columns, and says how it is used when it is given nonsense."""

from __future__ import annotations

import re

import pytest

from sparkloom.cli.commands import COMMANDS
from tests.cli.window import seen

EVERY = [(command.name,) for command in COMMANDS if not command.below]
EVERY += [(command.name, one.name) for command in COMMANDS for one in command.below]
COPIED = re.compile(r" *sparkloom ")  # an example to copy: the terminal breaks it


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_it_explains_itself_and_refuses_nonsense(words: tuple[str, ...]) -> None:
    shown = seen(80, *words, "--help")
    assert shown.code == 0 and re.search(rf"[Uu]sage: sparkloom {' '.join(words)}", shown.text)
    assert not [line for line in shown.lines if len(line) > 80 and not COPIED.match(line)]
    refused = seen(80, *words, "--no-such-option")
    assert refused.code == 2 and re.search("[Uu]sage:|--help", refused.text) and "--no-such-option" in refused.text
