"""What preflight measured of a site: kept, added to, read by every plan, refused when somebody spoilt it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkloom import case
from sparkloom.base import repository
from sparkloom.base.errors import InputError
from sparkloom.inputs import site_memory
from sparkloom.site.checks import memories

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
HOST = {"MemAvailable": 115.0, "Cached": 9.0, "Shmem": 1.0}


def probe(free: float | None, users: tuple[str, ...] = ()) -> dict[str, object]:
    return {"memory": {"gib": HOST, "cuda_free_gib": free, "gpu_processes": list(users)}}


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(repository, "WORK", tmp_path)
    return site_memory.path("gb10")


def test_only_idle_nodes_that_can_be_asked_are_measured() -> None:
    probes = {
        "spark1": probe(101.96),
        "spark2": probe(None),
        "spark3": probe(20.0, ("sglang",)),
        "spark4": {"msg": "x"},
    }
    assert memories.free_to_cuda(probes) == {"spark1": (101.96, 109.96)}


def test_a_cache_gives_back_no_more_than_is_available() -> None:
    assert memories.free_to_cuda({"spark1": probe(112.0)}) == {"spark1": (112.0, 115.0)}


def test_nodes_are_added_to_what_is_known(build: Path) -> None:
    site_memory.keep(build, {"spark1": (101.0, 103.0)}, "then")
    site_memory.keep(build, {"spark2": (99.0, 104.0)}, "now")
    site_memory.keep(build, {}, "later")
    assert site_memory.read(build) == {"spark1": (101.0, 103.0), "spark2": (99.0, 104.0)}
    assert site_memory.platform("gb10", ["spark1", "spark2"]).measured_free_gib == (99.0, 103.0)
    assert site_memory.platform("gb10", ["spark1", "spark3"]).measured_free_gib is None


def test_a_site_without_a_preflight_is_planned_as_before(build: Path) -> None:
    assert case.plan(ULTRA)["memory"]["free_before_load_gib"] == 100.7


def test_every_plan_of_the_site_uses_the_measure(build: Path) -> None:
    site_memory.keep(build, {f"spark{n}": (110.0 + n, 110.0 + n) for n in (1, 2, 3, 4)}, "now")
    plan = case.plan(ULTRA)
    assert plan["memory"]["free_before_load_gib"] == pytest.approx(107.0)
    assert plan["explain"]["memory.free_before_load_gib"]["origin"] == "measured by preflight on this site"
    assert case.judge(ULTRA, overrides=["launch.mem_fraction_static=0.85"]).errors == []
    site_memory.keep(build, {"spark3": (90.0, 90.0)}, "now")
    assert "does-not-fit" in {finding.rule for finding in case.judge(ULTRA).errors}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cuda_free_gib": {"spark1": 3}}', '{"cuda_free_gib": 1}'])
def test_a_spoilt_file_is_refused_by_name(build: Path, text: str) -> None:
    build.parent.mkdir(parents=True)
    build.write_text(text)
    with pytest.raises(InputError, match=r"memory\.json.*preflight"):
        case.judge(ULTRA)
