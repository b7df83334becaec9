"""What of `up` is said to take longer than a minute, before, while and after something of it was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkloom import case
from sparkloom.base import repository
from sparkloom.site import expected
from sparkloom.site.ending import Ending
from sparkloom.site.store import follow
from tests.inventories import own

GLM = "nvidia--glm-4.7-nvfp4"
IMAGE = "xomoxcc/dgx-spark-sglang:0.5.10-cudnn"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(repository, "WORK", tmp_path)
    return own(tmp_path, "gb10")


def told(site: Path, profile: str | None = GLM) -> dict[str, str]:
    return {step.what: step.text for step in expected.steps(site, case.cluster(site), profile)}


def test_before_the_first_run_rates_are_guesses_and_say_so(site: Path) -> None:
    found = told(site)
    assert found["weights"] == "220.0 GB at ~50.0 MB/s: ~73 min"
    assert found["image"] == "~10.0 GB at ~50.0 MB/s: ~3 min"
    assert found["first start"] == "6 min to load, as measured, then its kernels compile, once: up to ~36 min"
    assert told(site, None)["weights"].startswith("75.0 GB"), "the inventory's own profile"


def test_a_load_that_nobody_measured_is_that_of_the_most_similar_share(site: Path) -> None:
    assert told(site, "nvidia--glm-5.3-flash-nvfp4")["first start"].startswith("~9 min to load, by nvidia/NVIDIA-Nemo")


def test_a_size_that_nobody_wrote_down_is_a_guess_too(site: Path) -> None:
    assert told(site, "cyankiwi--minimax-m2.7-awq-4bit")["weights"].startswith("~2")


def test_a_run_s_own_rates_count_in_the_next_and_what_is_there_is_not_told(site: Path) -> None:
    weights = follow.measured("weights nvidia/GLM-4.7-NVFP4", 220e9, 2200)
    expected.keep("gb10", weights | follow.measured(f"image {IMAGE}", 12e9, 600) | follow.measured("image x", 9e8, 1))
    assert list(told(site)) == ["first start"]
    other = told(site, "nvidia--minimax-m2.7-nvfp4")
    assert other["weights"] == "135.0 GB at 100.0 MB/s: 22 min, at the rate measured here"
    assert other["image"] == "~10.0 GB at 20.0 MB/s: ~8 min, at the rate measured here"
    expected.keep("gb10", {f"start {GLM}": 130.0})
    assert told(site) == {"start": "2 min, as the last one here"}
    expected.keep("gb10", {f"start {GLM}": 31.0})
    assert told(site) == {}, "nothing takes a minute"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"start glm": "long"}', '{"weights": {"x": 1}}'])
def test_a_file_that_is_none_of_ours_counts_as_none(site: Path, text: str) -> None:
    expected.keep("gb10", {"image x": 1.0})
    (repository.kept("gb10") / "times.json").write_text(text)
    assert "weights" in told(site)


def test_a_run_gathers_what_its_tasks_measured() -> None:
    ending = Ending()
    for name, rate in (("weights a", 1.0), ("image b", 2.0)):
        ending.take("store.fetch", {"changed": True, "measured": {name: rate}})
    ending.take("ansible.builtin.command", {"rc": 0})
    assert ending.measured == {"weights a": 1.0, "image b": 2.0}
