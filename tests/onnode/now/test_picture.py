"""The picture of a site: from objects as an API gives them, held against what a person should read there."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sparkloom.onnode.host_metrics import disks, main
from sparkloom.onnode.kube import Unreached
from sparkloom.onnode.now.gather import Gatherer
from sparkloom.onnode.now.labels import PROFILE
from sparkloom.onnode.now.seen import Seen
from tests import golden_files
from tests.onnode.now import recorded
from tests.onnode.now.recorded import AT, OSS, Recorded


@pytest.fixture
def site(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def group(shown: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in shown["groups"] if one["name"] == name)


def told(shown: dict[str, Any]) -> str:
    """Without hashes of all that was applied: they change with every word of a supervisor."""
    return re.sub(r'"config_hash": "[0-9a-f]{16}"', '"config_hash": "HASH"', json.dumps(shown, indent=1)) + "\n"


def test_a_site_that_serves(site: Recorded) -> None:
    times = iter([AT, AT + 5])
    gathers = site.gathers(lambda: next(times))
    first = gathers.look()
    assert first["serving"] and first["tokens_per_second"] is None, "one look makes no rate"
    site.made["glm"] += 500
    site.made[OSS] += 100
    golden_files.check("page", "serves.json", told(gathers.look()))


def test_two_groups_fail_and_the_third_is_told_as_before(site: Recorded) -> None:
    recorded.two_fail(site)
    shown = site.gathers().look()
    golden_files.check("page", "two-fail.json", told(shown))
    glm, oss, chat = (group(shown, name) for name in ("glm", OSS, "chat"))
    assert [one["state"] for one in (glm, oss, chat)] == ["starts", "serves", "failed"] and not shown["serving"]
    assert glm["doing"] == "engine: loading weights, shard 3 of 10, 38 s" and glm["restarts"] == 2
    assert glm["ended"]["why"].startswith("rank 1 on spark2: rail b") and glm["epochs"] == 5
    assert "its image" in chat["cause"] and "spark4" in chat["cause"]


def test_a_spark_tells_what_it_measures_now_and_what_it_does_not_is_left_out(site: Recorded) -> None:
    site.measure()
    first, second, third, fourth = (node["now"] for node in site.gathers().look()["nodes"])
    assert first == {"available_bytes": 23.4 * 2**30, "celsius": 61.0, "watts": 93.4}
    assert second == {"available_bytes": 23.4 * 2**30}, "never 0"
    assert third == {}, "what was written ten minutes ago is not of now"
    assert fourth["celsius"] == 64.0


def test_a_disk_that_fills_is_named_with_who_holds_most(site: Recorded) -> None:
    """Only Prometheus' alert knew: a person whose engine failed for it saw a group that starts again and again."""
    site.measure()
    gib = 2.0**30
    held = [("/var/lib/docker", 5.8), ("/var/lib/containerd", 31.25)]
    told = [
        (disks.FREE[0], {"folder": "/var/lib"}, 3.1 * gib), (disks.FREE[0], {"folder": "/home"}, 300 * gib),
        *((disks.HELD[0], {"folder": "/var/lib", "holder": name}, size * gib) for name, size in held),
        (main.WRITTEN.name, {}, AT),
    ]  # fmt: skip
    site.exported["hosts-1"] = main.page(told)
    shown = site.gathers().look()
    assert shown["problems"] == [
        "spark2: 3.1 GiB free on the file system of /var/lib; /var/lib/containerd holds most, 31.2 GiB"
    ]
    assert "disks" not in shown["nodes"][0]["now"]


def test_a_clock_that_is_off_is_named_and_nobody_is_away_for_it(site: Recorded) -> None:
    """Its Lease bears its own time: one clock three minutes ahead made every other Spark one that says nothing."""
    for node, own in (("spark1", 0), ("spark2", 3), ("spark3", 0), ("spark4", -61)):
        renewed = datetime(2026, 11, 26, 12, 3, 40, 500_000, timezone.utc) + timedelta(minutes=own)  # noqa: UP017
        fields = [{"manager": "kubelet", "time": "2026-11-26T11:00:00Z"}, {"time": "2026-11-26T12:03:40Z"}]
        site.leases.append({"metadata": {"name": node, "managedFields": fields},
                            "spec": {"renewTime": renewed.isoformat()}})  # fmt: skip
    shown = site.gathers().look()
    assert shown["serving"] and {rank["state"] for one in shown["groups"] for rank in one["ranks"]} == {"ready"}
    assert shown["problems"] == [
        "spark2: its clock is 180 s ahead of the cluster's; timedatectl set-ntp true on it",
        "spark4: its clock is 3,660 s behind the cluster's; timedatectl set-ntp true on it",
    ]
    site.leases[2]["metadata"]["managedFields"][1]["time"] = "2026-11-26T12:02:00Z"
    site.silent = {"glm-rank0-0"}
    assert "spark3 says nothing since 2026-11-26T12:02:00+00:00" in group(site.gathers().look(), OSS)["cause"]


def test_a_group_sleeps_another_wakes_and_neither_is_an_error(site: Recorded) -> None:
    recorded.one_sleeps(site)
    site.route(0)
    shown = site.gathers().look()
    glm, oss, chat = (group(shown, name) for name in ("glm", OSS, "chat"))
    assert [one["state"] for one in (glm, oss, chat)] == ["wakes", "serves", "asleep"]
    assert (chat["cause"], chat["ranks"], chat["held"]) == ("", [], None) and glm["cause"] == ""
    assert chat["on_demand"] == {
        "idle_minutes": 15, "turns": None, "nodes": ["spark4"], "seconds": None, "expected": None
    }  # fmt: skip
    assert (glm["on_demand"]["seconds"], glm["on_demand"]["expected"], glm["held"]) == (95, 611.0, 2)
    assert glm["doing"] == "engine: loading weights, shard 3 of 10, 38 s"
    assert oss["on_demand"]["idle_minutes"] == 60 and not shown["serving"], "one is not there yet"
    assert next(node for node in shown["nodes"] if node["name"] == "spark4")["groups"] == []


def test_a_site_whose_groups_sleep_is_as_it_should_be(site: Recorded) -> None:
    for name in ("glm", OSS, "chat"):
        site.demand(name, 15, 0)
    shown = site.gathers().look()
    assert shown["serving"] and {one["state"] for one in shown["groups"]} == {"asleep"}


def test_one_that_begins_to_wake_and_one_that_was_taken_away(site: Recorded) -> None:
    """Its sets want pods that are not there yet; without sets nobody wakes it."""
    for name in ("glm", "chat"):
        site.demand(name, 15, 0)
    site.demand("glm", 15, 1)
    site.sets = [one for one in site.sets if one["metadata"]["labels"][PROFILE] != "chat"]
    shown = site.gathers().look()
    assert [group(shown, name)["state"] for name in ("glm", "chat")] == ["wakes", "down"]
    site.pods = [pod for pod in Recorded(site.folder.parent / "again").pods if "rank1" not in pod["metadata"]["name"]]
    site.unready("glm-rank0-0")
    assert group(site.gathers().look(), "glm")["state"] == "wakes", "its other pod is on its way"


def test_a_group_on_demand_that_fails_has_failed(site: Recorded) -> None:
    recorded.one_sleeps(site)
    site.told["glm-rank0-0"] |= {"phase": "down", "cause": "stays down: failed 6 times"}
    glm = group(site.gathers().look(), "glm")
    assert glm["state"] == "failed" and "stays down" in glm["cause"]


def test_a_rank_that_misses_another_is_not_the_cause(site: Recorded) -> None:
    """Red before: `start` of a group whose second image was lost said that rank 1 had not come."""
    for name in ("glm-rank0-0", "glm-rank1-0"):
        site.unready(
            name, **({"waiting": {"reason": "ImagePullBackOff", "message": "no such host"}} if "1-" in name else {})
        )
    site.told["glm-rank0-0"] |= {"phase": "missing", "cause": "rank 1 on spark2 has not come", "serving": False}
    del site.told["glm-rank1-0"]
    site.pod("glm-rank1-0")["status"]["phase"] = "Pending"
    cause = group(site.gathers().look(), "glm")["cause"]
    assert cause.startswith("rank 1 on ") and "its image" in cause and "playbooks/serve.yml brings it" in cause


def test_supervisors_and_engines_that_do_not_answer_leave_the_rest(site: Recorded) -> None:
    site.silent = {pod["metadata"]["name"] for pod in site.pods if not pod["metadata"]["name"].startswith("chat")}
    shown = site.gathers().look()
    glm = group(shown, "glm")
    assert shown["serving"] and glm["ranks"][0]["supervisor"] is None and glm["tokens_per_second"] is None
    assert group(shown, "chat")["running"] == 0


def test_a_rank_without_a_pod_and_a_spark_that_is_off(site: Recorded) -> None:
    site.pods = [pod for pod in site.pods if pod["metadata"]["name"] != "glm-rank1-0"]
    site.nodes[1]["status"]["conditions"][0]["status"] = "Unknown"
    shown = site.gathers().look()
    glm = group(shown, "glm")
    assert glm["state"] == "incomplete" and [rank["state"] for rank in glm["ranks"]] == ["ready", "no pod"]
    assert [node["ready"] for node in shown["nodes"]] == [True, False, True, True]


def test_a_group_that_is_not_in_the_list_and_one_that_never_ran(site: Recorded) -> None:
    """The list knows no `glm` any more, and wants one that nobody started."""
    site.facts["groups"] = [{**one, "name": "new", "label": "new"} if one["name"] == "glm" else one
                            for one in site.facts["groups"]]  # fmt: skip
    shown = site.gathers().look()
    assert {one["name"]: (one["state"], one["listed"]) for one in shown["groups"]} == {
        "new": ("down", True), OSS: ("serves", True), "chat": ("serves", True), "glm": ("serves", False),
    }  # fmt: skip
    assert shown["nodes"][0]["groups"] == [{"group": "glm", "rank": 0, "gib": None}], "drawn where it is, size unknown"


def test_without_facts_of_the_site_the_groups_are_told_by_their_own_records(site: Recorded) -> None:
    shown = Gatherer(site, site.namespace, None, lambda: AT).look()
    assert [one["state"] for one in shown["groups"]] == ["serves"] * 3 and shown["nodes"] == []
    assert shown["problems"] == ["what the site should be is not known here; playbooks/gateway.yml writes it"]


def test_facts_come_out_of_the_cluster_where_nobody_brings_them(site: Recorded) -> None:
    meta = {"name": "page-site", "labels": {"app.kubernetes.io/part-of": "sparkloom"}}
    site.maps["page-site"] = {"metadata": meta, "data": {"site.json": json.dumps(site.facts)}}
    assert Gatherer(site, site.namespace, None, lambda: AT).look() == site.gathers().look()


def test_a_start_that_another_configuration_proved_is_no_proof_of_this_one(site: Recorded) -> None:
    served = json.loads(site.maps["glm-served"]["data"]["served.json"])
    site.maps["glm-served"]["data"]["served.json"] = json.dumps({**served, "config_hash": "another"})
    glm = group(site.gathers().look(), "glm")
    assert glm["serving"] and not glm["proved"] and glm["transport"] is None


def test_an_unchanged_map_is_read_once_and_programs_never(site: Recorded) -> None:
    """Each group's ConfigMaps hold its supervisor's program: megabytes, every few seconds, for nothing."""
    gathers = site.gathers()
    gathers.look()
    read = [path for path in site.asked if "/configmaps/" in path]
    assert sorted(path.rpartition("/")[2] for path in read) == sorted(set(site.maps) - {"page-journal", "stopped"})
    site.asked.clear()
    gathers.look()
    assert not [path for path in site.asked if "/configmaps/" in path]
    served = json.loads(site.maps["chat-served"]["data"]["served.json"])
    site.maps["chat-served"]["data"]["served.json"] = json.dumps({**served, "ready_seconds": 1.0})
    assert group(gathers.look(), "chat")["ready_seconds"] == 1.0


def test_an_engine_that_began_anew_has_no_rate_from_before(site: Recorded) -> None:
    times = iter([AT, AT + 5, AT + 10, AT + 400])
    gathers = site.gathers(lambda: next(times))
    gathers.look()
    site.made[OSS] = 10.0
    assert group(gathers.look(), OSS)["tokens_per_second"] is None
    site.made[OSS] = 110.0
    assert group(gathers.look(), OSS)["tokens_per_second"] == 20.0
    assert group(gathers.look(), OSS)["tokens_per_second"] is None, "over six minutes it is none of now"


def test_what_a_router_holds_back_waits_too(site: Recorded) -> None:
    assert group(site.gathers().look(), "glm")["held"] is None
    site.route(held=12)
    shown = site.gathers().look()
    assert group(shown, "glm")["held"] == 12 and shown["queued"] == 13.0 and len(shown["groups"]) == 3


def test_a_cluster_that_does_not_answer_gives_no_picture(site: Recorded) -> None:
    site.away = "the cluster's API does not answer: timed out"
    with pytest.raises(Unreached, match="timed out"):
        site.gathers().look()


def test_no_secret_and_no_argument_is_in_it(site: Recorded) -> None:
    text = json.dumps(site.gathers().look())
    assert "argv" not in text and "engine-own-key" not in text and "api-key" not in text


def test_the_api_spells_no_names_as_null(site: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """K3s 1.32 does, of a namespace in which nothing is served yet: `status` called its API one that gives no list."""
    asked = site.api
    monkeypatch.setattr(site, "api", lambda path, query, accept: {"items": asked(path, query, accept)["items"] or None})
    site.maps, site.pods, site.sets = {}, [], []
    assert {one["state"] for one in site.gathers().look()["groups"]} == {"down"}


def test_plain_objects_are_asked_like_the_clients_own() -> None:
    seen = Seen({"status": {"containerStatuses": [{"imageID": "i", "restartCount": 2}], "podIP": "10.0.0.1",
                            "conditions": [{"lastTransitionTime": "2026-11-25T04:00:00Z"}]},
                 "metadata": {"labels": {"a_b": "c"}}})  # fmt: skip
    assert seen.status.container_statuses[0].image_id == "i" and seen.status.container_statuses[0].restart_count == 2
    assert seen.status.pod_ip == "10.0.0.1" and seen.metadata.labels == {"a_b": "c"} and seen.spec is None
    assert seen.status.conditions[0].last_transition_time.timestamp() == AT
