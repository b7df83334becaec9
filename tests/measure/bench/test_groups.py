"""`sparkloom bench` at a site that serves several: who is measured, by which name, on which Sparks and rails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.measure import guard
from sparkloom.measure.bench import command, result, site
from sparkloom.measure.bench.settings import Settings
from sparkloom.site import client
from tests import inventories
from tests.fleet_cluster import FleetCluster, installed

GLM, OSS, QWEN = "nvidia--glm-5.3-flash-nvfp4", "openai--gpt-oss-120b", "radixark--qwen3.8-27b-nvfp4--2node"
LIST = f"""\
serve:
  - {{profile: {GLM}, name: glm, alias: glm-5.3, nodes: [spark3, spark2]}}
  - {{profile: {OSS}, alias: oss, nodes: [spark4]}}
"""


def served(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str = LIST, *names: str, **fabric: Any) -> Path:
    inventory = inventories.serving(folder, text, **fabric)
    plan = case.fleet(inventory)
    applied = [case.render_group(name, inventory, force=True).objects for name in names or ("glm", OSS)]
    cluster = FleetCluster([item for objects in applied for item in objects])
    monkeypatch.setattr(cluster, "head", lambda pod, limit: "", raising=False)
    cluster.core.list_node = lambda: type("Nodes", (), {"items": []})()
    installed(cluster, monkeypatch)
    assert plan.fits is not False
    return inventory


def measured(inventory: Path, **asked: Any) -> dict[str, Any]:
    told = {"profile": None, "streams": [1, 8], "group": None, "model": None, **asked}
    return site.collect(str(inventory), **told)


def test_a_group_is_measured_by_its_model_s_name_on_its_own_sparks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On the old code every Spark of the site's first ones, and `--profile names one`."""
    inventory = served(monkeypatch, tmp_path)
    told = measured(inventory, group="glm")
    assert (told["group"], told["asked_for"], told["sparks"]) == ("glm", "glm-5.3", ["spark3", "spark2"])
    assert told["profile"] == GLM and told["rails"]["ranks"]["0"]["node"] == "spark3"
    assert set(told["argv"]) == {"0", "1"} and told["bounds"]["8"] > told["bounds"]["1"] > 0
    assert measured(inventory, model="oss")["group"] == OSS, "the model that is asked for says whose figures these are"
    assert measured(inventory, profile=OSS)["group"] == OSS


def test_of_several_one_is_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    several = measured(served(monkeypatch, tmp_path))
    assert "group" not in several and several["several"] == f"fleet serves glm, {OSS}"
    with pytest.raises(InputError, match=f"fleet serves glm, {OSS}; name one, or what clients ask for with --model"):
        command._which(Settings(url=""), dict(several))
    assert command._which(Settings(url="http://h:1"), dict(several)).model is None, "whoever names a server may ask it"


def test_who_sleeps_is_not_measured_and_it_is_said_what_wakes_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inventory = served(monkeypatch, tmp_path)
    said = inventory / "group_vars" / "all" / "cluster.yml"
    said.write_text(said.read_text().replace("name: glm,", "name: glm, idle_minutes: 5,"))
    client.of(case.cluster(inventory)).asleep = ["glm"]  # type: ignore[attr-defined]
    told = measured(inventory, group="glm")
    with pytest.raises(InputError, match="glm is asleep; ask it something first, which wakes it"):
        command._which(Settings(url=""), dict(told))
    assert command._which(Settings(url="http://h:1"), dict(told)).model == "glm-5.3"


def test_a_group_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="glmm: the site has no such group"):
        measured(served(monkeypatch, tmp_path), group="glmm")


def test_the_request_s_model_is_the_group_s_unless_somebody_names_another() -> None:
    told = {"group": "glm", "asked_for": "glm-5.3"}
    assert command._which(Settings(url=""), dict(told)).model == "glm-5.3"
    assert command._which(Settings(url="", model="x"), dict(told)).model == "x"
    assert command._which(Settings(url=""), {"site": "one"}).model is None


def test_the_functions_are_those_of_the_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two groups on the same Sparks have other functions of each rail."""
    text = "serve:\n" + "".join(
        f"  - {{profile: {QWEN}, name: {name}, alias: {name}, fraction: 0.4, nodes: [spark1, spark3]}}\n"
        for name in ("one", "two")
    )
    inventory = served(monkeypatch, tmp_path, text, "one", "two", fabric=("vfs_per_rail: 2", "vfs_per_rail: 4"))
    rails = {name: measured(inventory, group=name)["rails"] for name in ("one", "two")}
    addresses = {name: told["ranks"]["0"]["addresses"] for name, told in rails.items()}
    assert addresses["one"] != addresses["two"]
    hcas = {name: {hca for rail in told["planned"].values() for hca in rail["hcas"]} for name, told in rails.items()}
    assert hcas["one"] != hcas["two"]


def test_a_site_with_one_profile_says_what_it_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inventory = inventories.serving(tmp_path, f"profile: {OSS}\n")
    cluster = FleetCluster(case.render(OSS, inventory, force=True).objects)
    cluster.core.list_node = lambda: type("Nodes", (), {"items": []})()
    installed(cluster, monkeypatch)
    told = measured(inventory)
    assert told["profile"] == OSS and not {"group", "sparks", "asked_for", "several"} & set(told)
    other = measured(inventory, profile="radixark--qwen3.8-27b-nvfp4")
    assert other["model"] == f"unknown, because fleet serves {OSS}, not radixark--qwen3.8-27b-nvfp4"


def test_the_table_says_which_group_it_is_of() -> None:
    data = {"levels": [], "problems": [], "provenance": {"group": "glm", "sparks": ["spark3", "spark2"]}}
    assert "of which group: glm, on spark3, spark2" in result.table(data)
    assert "of which group" not in result.table({**data, "provenance": {}})


def test_a_group_without_a_site_is_refused() -> None:
    with pytest.raises(InputError, match="of which site"):
        command.parse(["--url", "http://h:1", "--group", "glm"])


def test_the_guard_takes_no_other_group_s_level(tmp_path: Path) -> None:
    requests = [{"tokens_per_sec": 5.0, "output_tokens": 64, "finish_reason": "stop", "text": "a b c d", "prompt": "p"}]
    file = tmp_path / "bench.json"
    file.write_text(json.dumps({"levels": [{"per_request": requests}], "provenance": {"group": "glm"}}))
    assert guard.judge_batch_file(file)["group"] == "glm" == guard.judge_batch_file(file, "glm")["group"]
    with pytest.raises(InputError, match="was measured of glm; expected oss"):
        guard.judge_batch_file(file, "oss")
    file.write_text(json.dumps({"requests": requests}))
    assert "group" not in guard.judge_batch_file(file)
    with pytest.raises(InputError, match="does not say of which group"):
        guard.judge_batch_file(file, "oss")
