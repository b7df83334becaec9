"""The CDI specification follows the driver, and nothing is written twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.loading import module

cdi = module("cdi")
LIB = "/usr/lib/aarch64-linux-gnu"


def spec(driver: str) -> str:
    return "".join(f"  - hostPath: {LIB}/{name}.so.{driver}\n" for name in ("libcuda", "libnvidia-ml"))


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        (spec("580.159.03"), "580.159.03"),
        (spec("570.86"), "570.86"),
        (spec("580.95.05") + spec("580.159.03"), ""),
        ("containerEdits: {}\n", ""),
        (f"  - hostPath: {LIB}/libcuda.so.1\n", ""),
        ("", ""),
    ],
)
def test_the_driver_is_read_from_its_libraries(text: str, driver: str) -> None:
    assert cdi.recorded(text) == driver


def test_a_new_specification_goes_where_the_toolkits_own_service_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etc, run = tmp_path / "etc.yaml", tmp_path / "run.yaml"
    monkeypatch.setattr(cdi, "outcome", lambda *words: ("", "no such unit"))
    assert cdi.wanted(etc, run) == [etc]
    monkeypatch.setattr(cdi, "outcome", lambda *words: ("[Unit]", ""))
    assert cdi.wanted(etc, run) == [run]
    etc.write_text(spec("1.2.3"))
    assert cdi.wanted(etc, run) == [etc]
    run.write_text(spec("1.2.3"))
    assert cdi.wanted(etc, run) == [etc, run], "both are read by runtimes, so both must fit"


def test_the_toolkits_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdi, "outcome", lambda *w: ("NVIDIA Container Toolkit CLI version 1.18.2\ncommit: abc\n", ""))
    assert cdi.toolkit() == "1.18.2"
    monkeypatch.setattr(cdi, "outcome", lambda *words: ("", "no nvidia-ctk"))
    assert cdi.toolkit() == ""
