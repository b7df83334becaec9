"""A site that serves several, told group by group: whole, half gone, stopped, not in its list, left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.site import logs, now, status
from tests import inventories
from tests.fleet_cluster import AT, FleetCluster, installed

GLM, OSS = "nvidia--glm-5.3-flash-nvfp4", "openai--gpt-oss-120b"
LIST = f"""\
serve:
  - {{profile: {GLM}, name: glm, alias: glm-5.3}}
  - {{profile: {OSS}, alias: oss}}
"""
GLM_HEAD, GLM_TAIL, OSS_POD = "glm-rank0-0", "glm-rank1-0", f"{OSS}-rank0-0"


class Site:
    """Both groups of LIST as its plan renders them, and proved; `lost` and `ill` as in FleetCluster."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = LIST, **trouble: Any) -> None:
        self.folder = inventories.serving(folder, text)
        self.glm = case.render_group("glm", inventories.serving(folder, LIST, name="was"), force=True).objects
        self.oss = case.render_group(OSS, folder / "was", force=True).objects
        for item in [*self.glm, *self.oss]:
            if "record.json" in item.get("data", {}):
                item["data"]["record.json"] = item["data"]["record.json"].replace('"was"', '"fleet"')
        self.cluster = FleetCluster([*self.glm, *self.oss], **trouble)
        self.cluster.prove("served", self.glm, transport="roce: every rank")
        self.cluster.prove(f"{OSS}-served", self.oss)
        installed(self.cluster, monkeypatch)
        monkeypatch.setattr(status, "_operation", lambda *_: None)

    def status(self, **asked: Any) -> dict[str, Any]:
        return status.status(self.folder, **asked)

    def groups(self, **asked: Any) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in self.status(**asked)["groups"]}


def test_all_groups_on_one_screen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch)
    now = site.status()
    assert now["serving"] and now["restarts"] == 0 and now["profile"] == f"{GLM}, {OSS}" and len(now["ranks"]) == 3
    glm, oss = now["groups"]
    assert (glm["name"], glm["alias"], glm["nodes"], glm["state"]) == ("glm", "glm-5.3", ["spark1", "spark2"], "serves")
    assert (oss["name"], oss["nodes"], oss["since"], oss["proved"], oss["current"]) == (OSS, ["spark3"], AT, True, True)
    assert glm["transport"] == "roce: every rank" and oss["transport"] == "" and glm["current"] is True
    text = status.text(now)
    assert text.splitlines()[0] == "fleet: all 2 groups serve"
    assert f"  glm ({GLM}) on spark1, spark2, asked for as glm-5.3" in text and f"serves since {AT}" in text


def test_one_group_of_several_is_told_as_a_site_with_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch)
    alone = site.status(group=OSS)
    assert alone["serving"] and alone["profile"] == OSS and [rank["rank"] for rank in alone["ranks"]] == ["0"]
    assert status.text(alone).startswith(f"fleet: {OSS} serves since {AT}, config ")
    assert site.status(group="oss")["group"] == OSS, "by what clients ask for"
    assert status.text(site.status(group="glm")).startswith(f"fleet: glm ({GLM}) serves")
    with pytest.raises(InputError, match=r"glmm: the site has no such group; did you mean 'glm'"):
        site.status(group="glmm")


def test_a_group_half_gone_names_its_rank_and_keeps_nobody_else_from_serving(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An event of another group's rank 1 says nothing of this one's."""
    site = Site(tmp_path, monkeypatch, lost=[GLM_TAIL])
    site.cluster.events = {f"{OSS}-rank1": "exceeded quota", "glm-rank1": "node(s) had no room"}
    now = site.status()
    glm, oss = now["groups"]
    assert not now["serving"] and glm["state"] == "incomplete" and oss["serving"]
    assert glm["cause"] == "rank 1 on spark2: node(s) had no room"
    assert "fleet: 1 of 2 groups serves" in status.text(now) and "lacks a rank" in status.text(now)


def test_a_rank_zero_that_is_gone_leaves_the_group_its_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rank 0 alone says which Secret it has, and so which record of a proof: without it both are looked at."""
    site = Site(tmp_path, monkeypatch, lost=[GLM_HEAD])
    assert site.groups()["glm"]["state"] == "incomplete" and site.groups()["glm"]["proved"]


def test_a_rank_that_is_not_ready_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch, ill=[OSS_POD])
    site.cluster.supervisors = {OSS_POD: {"phase": "loading", "cause": "", "rails": []}}
    oss = site.groups()[OSS]
    assert (oss["state"], oss["serving"], oss["ranks"][0]["state"]) == ("starts", False, "loading")


def test_a_site_on_which_no_group_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch)
    site.cluster.objects = []
    site.cluster.kept = {}
    now = site.status()
    assert not now["serving"] and [one["state"] for one in now["groups"]] == ["down", "down"]
    assert [one["nodes"] for one in now["groups"]] == [["spark1", "spark2"], ["spark3"]], "where the plan puts them"
    assert "fleet: 0 of 2 groups serve" in status.text(now) and "playbooks/serve.yml starts it" in status.text(now)
    down = site.status(group="glm")
    assert status.text(down) == "fleet: glm is not running; playbooks/serve.yml starts it"


DEMAND = LIST.replace("alias: glm-5.3}", "alias: glm-5.3, idle_minutes: 10}")


def test_a_group_that_sleeps_is_no_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch, text=DEMAND, asleep=["glm"])
    now = site.status()
    glm, oss = now["groups"]
    assert now["serving"] and status.good(now) and oss["state"] == "serves"
    assert (glm["state"], glm["serving"], glm["cause"], glm["ranks"]) == ("asleep", False, None, [])
    assert glm["nodes"] == ["spark1", "spark2"] and glm["profile"] == GLM and glm["proved"] and glm["current"] is True
    text = status.text(now)
    assert text.splitlines()[0] == "fleet: 1 of 2 groups serves, 1 asleep"
    assert "    is asleep, wakes with the next request\n" in text
    alone = site.status(group="glm")
    assert status.good(alone) and status.text(alone) == f"fleet: glm ({GLM}) is asleep, wakes with the next request"


def test_a_group_that_is_not_on_demand_does_not_sleep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Somebody scaled it down."""
    now = Site(tmp_path, monkeypatch, asleep=["glm"]).status()
    assert now["groups"][0]["state"] == "down" and not now["serving"] and not status.good(now)


def test_who_sleeps_has_no_log_and_it_is_said_what_wakes_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="glm is asleep and has no log; it wakes with the next request"):
        said(Site(tmp_path, monkeypatch, text=DEMAND, asleep=["glm"]), group="glm")


def test_a_list_with_nothing_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch, text="serve: []\n")
    site.cluster.objects = []
    now = site.status()
    assert not now["serving"] and now["groups"] == []
    assert status.text(now) == "fleet: nothing is served, and the inventory's list is empty"


def test_pods_of_a_group_that_is_not_in_the_list_are_told_as_such(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = Site(tmp_path, monkeypatch, text=f"serve: [{{profile: {GLM}, name: glm}}, radixark--qwen3.8-27b-nvfp4]\n")
    groups = site.groups()
    assert list(groups) == ["glm", "radixark--qwen3.8-27b-nvfp4", OSS]
    assert (groups[OSS]["listed"], groups[OSS]["state"]) == (False, "serves")
    text = status.text(site.status())
    assert "fleet: 1 of 2 groups serves" in text
    assert "is not in the inventory's list" in text and text.index("not in the inventory") < text.index(f"  {OSS}")


def test_a_record_whose_pods_are_gone_is_what_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch, text=f"serve: [{{profile: {GLM}, name: glm}}]\n", lost=[OSS_POD])
    now = site.status()
    assert now["profile"] == GLM and now["group"] == "glm" and now["serving"], "a site with one group, as ever"
    site = Site(tmp_path / "2", monkeypatch, text=LIST.replace(OSS, "radixark--qwen3.8-27b-nvfp4"), lost=[OSS_POD])
    left = site.groups()[OSS]
    assert (left["state"], left["listed"]) == ("gone", False)
    assert "what was applied is left" in status.text(site.status())


def test_pods_without_any_record_are_told_by_their_label(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch)
    site.cluster.objects = [item for item in site.cluster.objects if item["metadata"]["name"] != f"{OSS}-record"]
    assert site.groups()[OSS]["state"] == "serves" and site.groups()[OSS]["listed"]


def test_a_list_that_cannot_be_read_hides_nothing_that_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch, text="serve: [no-such-profile]\n")
    now = site.status()
    assert now["serving"] and set(site.groups()) == {"glm", OSS} and "no-such-profile" in now["list_problem"]
    assert "which groups there should be is not known" in status.text(now)


def test_a_list_that_does_not_pack_says_so_beside_what_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    more = "".join(f"  - {{profile: {OSS}, name: g{n}, alias: g{n}}}\n" for n in range(3))
    site = Site(tmp_path, monkeypatch, text=LIST + more)
    now = site.status()
    assert [one["state"] for one in now["groups"]] == ["serves", "serves", "down", "down", "down"]
    assert now["list_problem"].startswith("the list does not pack: ") and now["list_problem"] in status.text(now)
    assert "g0 (openai--gpt-oss-120b) on no Spark yet" in status.text(now)
    site = Site(tmp_path / "2", monkeypatch, text=LIST + more.replace("alias: g1", "alias: ''"))
    assert "alias" in site.status()["list_problem"]
    site = Site(tmp_path / "3", monkeypatch, text=LIST + more.replace(", alias: g1", "").replace(", alias: g2", ""))
    assert site.status()["list_problem"].startswith("the list cannot be had: ")


def test_one_profile_is_asked_about_among_several(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch, ill=[GLM_TAIL])
    assert site.status(profile=OSS)["serving"] and not site.status(profile=GLM)["serving"]
    other = site.status(profile="radixark--qwen3.8-27b-nvfp4")
    assert not other["serving"] and "no group has the profile radixark" in status.text(other)


def test_a_failed_start_is_told_with_its_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch)
    lost = {"profile": "new", "cause": "rank 0 crashed\nmore", "at": AT}
    site.cluster.prove(f"{OSS}-served", site.oss, failed=lost)
    assert site.groups()[OSS]["failed"] == lost
    assert f"last failure: new at {AT}: rank 0 crashed" in status.text(site.status())


def test_what_changed_in_the_inventory_is_told_of_the_group_it_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = Site(tmp_path, monkeypatch, text=LIST.replace("alias: oss", "alias: other"))
    groups = site.groups()
    assert groups["glm"]["current"] is True and groups[OSS]["current"] is False
    assert "playbooks/serve.yml would renew it" in status.text(site.status())


def test_a_group_that_was_switched_is_told_by_what_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch, text=f"serve: [{{profile: {OSS}, name: glm, alias: a}}, {OSS}]\n")
    glm = site.groups()["glm"]
    assert (glm["profile"], glm["current"], glm["serving"]) == (GLM, False, True)
    assert site.status(profile=GLM)["serving"]


def test_a_site_with_one_profile_has_every_key_and_word_that_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = case.render(OSS, force=True).objects
    cluster = FleetCluster(objects)
    cluster.prove("served", objects)
    installed(cluster, monkeypatch)
    monkeypatch.setattr(status, "_operation", lambda *_: None)
    now = status.status()
    assert list(now) == [
        "site", "serving", "asked", "profile", "model", "config_hash", "current", "proved", "since", "engine",
        "release", "image", "digest", "transport", "rails", "restarts", "ranks", "failed", "groups", "operation",
        "fabric", "problems",
    ]  # fmt: skip
    assert now["serving"] and now["current"] is True and [one["name"] for one in now["groups"]] == [OSS]
    assert status.text(now).splitlines()[0] == f"gb10: {OSS} serves since {AT}, config {now['config_hash']}"
    cluster.objects = [item for item in objects if item["kind"] != "StatefulSet"]
    gone = status.status()
    assert not gone["serving"] and [rank["state"] for rank in gone["ranks"]] == ["no pod"], (
        "what was proved, without pods"
    )
    assert gone["groups"][0]["state"] == "down"
    cluster.objects, cluster.kept = [], {}
    assert status.text(status.status()) == (
        "gb10: nothing is served; playbooks/serve.yml serves the inventory's profile"
    )


def test_two_profiles_at_a_site_without_a_list_are_both_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the old code: `a, b does not serve yet`."""
    objects = [item for name in (OSS, GLM) for item in case.render(name, force=True).objects]
    installed(FleetCluster(objects), monkeypatch)
    monkeypatch.setattr(status, "_operation", lambda *_: None)
    now = status.status()
    assert {one["name"] for one in now["groups"]} == {OSS, GLM} and now["serving"]
    assert "gb10: all 2 groups serve" in status.text(now) and "inventory's list" not in status.text(now)


def said(site: Site, **asked: Any) -> list[str]:
    options: dict[str, Any] = {"rank": None, "follow": False, "previous": False, **asked}
    return list(logs.logs(site.folder, options.pop("rank"), **options))


def test_the_logs_of_one_group_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch)
    with pytest.raises(InputError, match=f"2 groups run here: glm, {OSS}; name one, as `sparkloom logs glm`"):
        said(site)
    assert said(site, group="glm") == [f"[rank 0] {GLM_HEAD} speaks", f"[rank 1] {GLM_TAIL} speaks"]
    assert said(site, group="oss") == [f"{OSS_POD} speaks"]
    assert said(site, group="glm", rank=1) == [f"{GLM_TAIL} speaks"]
    with pytest.raises(InputError, match="found no pod of rank 7; there are: 0, 1"):
        said(site, group="glm", rank=7)
    with pytest.raises(InputError, match="follows one rank"):
        said(site, group="glm", follow=True)


def test_the_logs_of_what_does_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = Site(tmp_path, monkeypatch, lost=[OSS_POD])
    assert len(said(site)) == 2, "the only one that runs needs no name"
    with pytest.raises(InputError, match=f"{OSS} has no pod; these run: glm"):
        said(site, group=OSS)
    site.cluster.objects = []
    with pytest.raises(InputError, match="found no pod of any rank; nothing is served"):
        said(site)


def test_a_group_is_meant_by_its_profile_only_where_one_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = f"serve:\n  - {{profile: {OSS}, name: one, alias: a}}\n  - {{profile: {OSS}, name: two, alias: b}}\n"
    folder = inventories.serving(tmp_path, text)
    installed(FleetCluster([]), monkeypatch)
    there = now.read(folder)
    assert there.one("b").name == "two"
    with pytest.raises(InputError, match=r"is 2 groups \(one, two\)"):
        there.one(OSS)
