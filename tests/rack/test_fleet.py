"""Several models on one rack: four Sparks' model gives way to three groups, one more shares a Spark, people have keys.

One after the other, as a person would: each test begins where the one before it ended.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.base import names
from testbed.beds.rack import cluster, inventory
from testbed.trials import neighbours
from tests.rack.running import LATER, run

pytestmark = [pytest.mark.rack, pytest.mark.slow, *LATER]  # ten minutes; and its nodes' own device plugin pauses
ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
PAIR, OSS = "nvidia--glm-5.3-flash-nvfp4", "openai--gpt-oss-120b"
CHAT, MORE = "chankhavu--nemotron-cascade-2-30b-a3b-nvfp4", "nvidia--nemotron-3.5-lightning-30b-a3b-nvfp4"
LIST = f"""\
serve:
  - {{profile: {PAIR}, name: pair, alias: pair}}
  - {{profile: {OSS}, name: oss, alias: oss}}
  - {{profile: {CHAT}, name: chat, alias: chat, fraction: 0.42}}
"""
ONE_MORE = f"  - {{profile: {MORE}, name: more, alias: more, fraction: 0.38}}\n"
# Who may ask what. Nobody may ask everything.
PEOPLE = {"alice": "pair,oss", "bob": "chat,more", "carol": "oss"}
KILLS = int(os.environ.get("SPARKLOOM_KILLS", "3"))  # `make test-kills` does twenty
SITE = names.REPO / ".build" / f"fleet-{names.CLUSTER}"
GATEWAY = names.STATE / "gateway"


def write(text: str) -> None:
    file = SITE / "group_vars/all/cluster.yml"
    original = (inventory.path() / "group_vars/all/cluster.yml").read_text()
    file.write_text(re.sub(r"^profile: .*\n", lambda _: text, original, flags=re.M))


def play(*words: str) -> str:
    done = run("ansible-playbook", "-i", str(SITE), *words, ANSIBLE_NOCOLOR="1")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def pods() -> dict[str, str]:
    """The engines' pods that there are, by name; a pod that was made anew has another identity."""
    told = cluster.kubectl("-n", "sparkloom", "get", "pods", "-l", "app.kubernetes.io/component=engine", "-o", "json")
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in json.loads(told)["items"]}


def groups(found: dict[str, str]) -> dict[str, int]:
    ranks = [re.sub(r"-rank\d+-0$", "", name) for name in found]
    return {name: ranks.count(name) for name in sorted(set(ranks))}


@pytest.fixture(scope="module")
def shared_gpus() -> Iterator[None]:
    """The rack's nodes offer their GPU once, by a program of their own; for a list ours does, to several pods."""
    own = "systemctl {} --now sparkloom-gpu 2>/dev/null"
    for node in names.NODES.values():
        cluster.node_sh(node, own.format("disable"))
    until = time.monotonic() + 120
    while any(row["gpu"] != "0" for row in cluster.nodes().values()) and time.monotonic() < until:
        time.sleep(1)
    yield
    # Ours takes the socket along when it ends: theirs begins after it.
    gone = ("delete", "daemonset", "sparkloom-gpu", "--ignore-not-found", "--cascade=foreground")
    cluster.kubectl("-n", "kube-system", *gone)
    for node in names.NODES.values():
        cluster.node_sh(node, own.format("enable"))
    until = time.monotonic() + 120
    while any(row["gpu"] != "1" for row in cluster.nodes().values()) and time.monotonic() < until:
        time.sleep(1)


@pytest.fixture(scope="module")
def keys(shared_gpus: None) -> Iterator[dict[str, str]]:
    """Each person's key, from a rack on which one model has all Sparks and whose list is about to be written."""
    loaded = run(".venv/bin/python", "-m", "testbed", "engine", "load", ULTRA, PAIR, OSS, CHAT, MORE)
    assert loaded.returncode == 0, loaded.stderr[-3000:]
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(inventory.path(), SITE)
    (SITE / "group_vars/all/images.yml").unlink(missing_ok=True)
    write(f"profile: {ULTRA}\n")
    play("site.yml", "-e", "model_serving_replace=true")
    assert groups(pods()) == {ULTRA: 4}
    given = {}
    for person, models in PEOPLE.items():
        done = run("sparkloom", "keys", "add", person, "--models", models, "-i", str(SITE), "--json")
        assert done.returncode == 0, done.stderr
        given[person] = json.loads(done.stdout)["key"]
    yield given
    play("playbooks/teardown.yml", "-e", "teardown_serving=true")


@pytest.fixture(scope="module")
def endpoint(keys: dict[str, str]) -> neighbours.Endpoint:
    return neighbours.Endpoint(cluster.nodes()[names.NODES["spark1"]]["ip"], GATEWAY / "ca.pem")


def reached(endpoint: neighbours.Endpoint, keys: dict[str, str], *models: str) -> dict[str, set[str]]:
    return {person: {m for m in models if endpoint.once(m, key) == neighbours.WHOLE} for person, key in keys.items()}


def test_four_sparks_model_gives_way_to_three_groups(keys: dict[str, str], endpoint: neighbours.Endpoint) -> None:
    write(LIST)
    output = play("site.yml")
    assert groups(pods()) == {"chat": 1, "oss": 1, "pair": 2}
    assert "3 groups serve at https://" in [line for line in output.splitlines() if line.strip()][-1]
    allowed = {"alice": {"pair", "oss"}, "bob": {"chat"}, "carol": {"oss"}}
    assert reached(endpoint, keys, "pair", "oss", "chat") == allowed
    assert endpoint.once("oss", "sk-" + "x" * 40).startswith("401")
    assert endpoint.once("oss", keys["bob"]).startswith("404")


def test_a_second_run_changes_nothing(keys: dict[str, str]) -> None:
    before = pods()
    output = play("site.yml")
    changed = re.findall(r"^TASK \[(.+?)\] \*+\n(?:(?!TASK).*\n)*?changed: \[(\w+)", output, re.M)
    # A function that a pod gave back has lost what the host sets on it, until the fabric's part runs again.
    changed = [one for one in changed if one[0] != "roce_fabric : Keep several functions of one subnet apart"]
    assert not changed, re.findall(r"^TASK \[metrics : Apply.*\n(?:(?!TASK).*\n){0,80}", output, re.M)
    assert pods() == before


def test_one_more_shares_a_spark_and_stops_nobody(keys: dict[str, str], endpoint: neighbours.Endpoint) -> None:
    before = pods()
    write(LIST + ONE_MORE)
    play("site.yml")
    after = pods()
    assert groups(after) == {"chat": 1, "more": 1, "oss": 1, "pair": 2}
    assert {name: uid for name, uid in after.items() if name in before} == before
    assert reached(endpoint, keys, "pair", "oss", "chat", "more")["bob"] == {"chat", "more"}


def test_one_group_is_killed_again_and_again_and_the_others_lose_nothing(
    keys: dict[str, str], endpoint: neighbours.Endpoint
) -> None:
    people = {"oss": keys["carol"], "chat": keys["bob"], "more": keys["bob"], "pair": keys["alice"]}
    found = neighbours.perform("pair", endpoint, people, KILLS, at_once=1)
    assert len(found["kills"]) == KILLS and all(done.good for done in found["kills"]), found["kills"]
    lost = {model: one.answers for model, one in found["asked"].items() if model != "pair" and one.lost}
    assert not lost, lost
    killed = found["asked"]["pair"].answers
    assert "silence" not in killed, killed


def test_a_key_that_is_taken_away_opens_nothing_within_seconds(
    keys: dict[str, str], endpoint: neighbours.Endpoint
) -> None:
    before = pods()
    assert endpoint.once("oss", keys["carol"]) == neighbours.WHOLE
    begun = time.monotonic()
    done = run("sparkloom", "keys", "revoke", "carol", "-i", str(SITE), "--json")
    assert done.returncode == 0, done.stderr
    assert endpoint.once("oss", keys["carol"]).startswith("401")
    assert time.monotonic() - begun < 30
    assert endpoint.once("oss", keys["alice"]) == neighbours.WHOLE and pods() == before


def test_one_group_goes_back_alone(keys: dict[str, str], endpoint: neighbours.Endpoint) -> None:
    """A profile that crashes at its load, in the place of one that served."""
    before = pods()
    crash = ("fault", "all", "crash", "stage=load", "only=Lightning")
    assert run(".venv/bin/python", "-m", "testbed", "engine", *crash).returncode == 0
    words = ["-e", "group=oss", "-e", f"profile={MORE}", "-e", "serve_rollback=true"]
    try:
        done = run("ansible-playbook", "-i", str(SITE), "playbooks/switch.yml", *words, ANSIBLE_NOCOLOR="1")
    finally:
        run(".venv/bin/python", "-m", "testbed", "engine", "mend", "all")
    assert done.returncode != 0 and f"{OSS} is served again" in done.stdout, done.stdout[-3000:]
    after = pods()
    assert {name for name in before if after.get(name) != before[name]} == {"oss-rank0-0"}
    assert endpoint.once("oss", keys["alice"]) == neighbours.WHOLE


def test_what_was_used_is_told_by_person_and_model(keys: dict[str, str]) -> None:
    done = run("sparkloom", "usage", "-i", str(SITE), "--json")
    assert done.returncode == 0, done.stderr
    rows = {(row["person"], row["model"]): row for row in json.loads(done.stdout)["rows"]}
    assert rows["bob", "chat"]["requests"] > 0 and rows["bob", "chat"]["completion_tokens"] > 0
    assert ("carol", "pair") not in rows


def test_the_files_of_the_site_hold_no_key(keys: dict[str, str]) -> None:
    for file in [*SITE.rglob("*.yml"), *Path(names.REPO / "build" / "kind").rglob("*.json")]:
        assert not any(key in file.read_text() for key in keys.values()), file
