"""What the role keeps of a run is named by the profile's name, however the profile was named to it."""

from __future__ import annotations

from pathlib import Path

from sparkloom import case
from sparkloom.inputs import profile
from sparkloom.site.groups.group import RenderedGroup

SHIPPED = "nvidia--nemotron-3-super-120b-a12b-nvfp4"


def test_a_profile_by_its_path_keeps_nothing_below_that_path(tmp_path: Path) -> None:
    """Its answer lay in build/SITE/home/me/mine.yml.answer.json; with ../mine.yml outside of build."""
    mine = tmp_path / "mine.yml"
    mine.write_text((profile.PROFILES / f"{SHIPPED}.yml").read_text())
    group = RenderedGroup.of({"profile": str(mine), "seat": {}}, case.cluster(None), "refuse", force=False)
    assert (group.name, group.profile) == ("mine", "mine")
