"""What the role keeps of a run is named by the profile's name, however the profile was named to it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sparkloom import case
from sparkloom.inputs import profile
from tests.places import REPO
from tests.plugins import loading

SHIPPED = "nvidia--nemotron-3-super-120b-a12b-nvfp4"


def test_a_profile_by_its_path_keeps_nothing_below_that_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer lay in build/SITE/home/me/mine.yml.answer.json; with ../mine.yml outside of build."""
    mine = tmp_path / "mine.yml"
    mine.write_text((profile.PROFILES / f"{SHIPPED}.yml").read_text())
    module = loading.action("sparkloom_render")
    action = module.ActionModule.__new__(module.ActionModule)
    monkeypatch.setattr(module.ansible, "cluster", lambda task_vars: case.cluster(None))
    monkeypatch.setattr(module.client, "kubeconfig", lambda cluster: "")
    asked = {"what": "serving", "profile": str(mine), "force": False, "transport": "refuse"}
    assert action.work(asked, {})["name"] == "mine"
    tasks = REPO / "roles/model_serving/tasks"
    (keeps,) = [task for task in yaml.safe_load((tasks / "prove.yml").read_text()) if "sparkloom_files" in task]
    for file in keeps["sparkloom_files"]["files"]:
        assert file["path"].startswith("{{ __model_serving_plan.build }}/{{ __model_serving_plan.name }}."), file[
            "path"
        ]
    assert "/logs/{{ __model_serving_plan.name }}" in (tasks / "failed.yml").read_text()
