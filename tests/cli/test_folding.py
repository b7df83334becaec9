"""Lines for people are broken between words at the window's edge, in one place; a pipe and programs get them whole."""

from __future__ import annotations

import pytest

from tests.cli.window import piped, seen

AMBIGUOUS = ("argv", "glm")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_what_is_unusable_fits_the_window_and_loses_nothing(columns: int) -> None:
    shown, whole = seen(columns, *AMBIGUOUS), piped(*AMBIGUOUS)
    assert len(shown.widest) <= columns and shown.code == whole.code == 2
    assert "".join(shown.text.split()) == "".join(whole.errors.split()) and whole.errors.count("\n") == 1
    assert all(line.startswith("  ") for line in shown.lines[1:])


def test_a_command_line_to_paste_is_never_broken() -> None:
    value = "launch.json_model_override_args={" + ", ".join(f'"key{n}": {n}' for n in range(20)) + "}"
    words = ("argv", "nvidia--glm-4.7-nvfp4", "--rank", "0", "--set", value)
    assert seen(80, *words).text == piped(*words).text
