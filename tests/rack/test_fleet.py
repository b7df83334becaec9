"""Several models on one rack: four Sparks' model gives way to three groups, one more shares a Spark, people have keys.

One after the other, as a person would: each test begins where the one before it ended.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from sparkloom.render.metrics import dashboards
from testbed.base import names
from testbed.base.steps import perform
from testbed.beds.rack import cluster, faults, load
from testbed.make import nodeimage, prometheus
from testbed.trials import neighbours
from tests.later import LATER
from tests.onnode.page.browser import PROGRAM, SIZES, Browser
from tests.rack import listed, real
from tests.rack.bare_cluster import patiently
from tests.rack.listed import BY_TAG, SITE, begin, groups, key_of, play, pods, shared_gpus, write
from tests.rack.running import by_tag, run

pytestmark = [pytest.mark.rack, pytest.mark.slow, *LATER]  # ten minutes; and its nodes' own device plugin pauses
ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
PAIR, OSS = "nvidia--glm-5.3-flash-nvfp4", "openai--gpt-oss-120b"
CHAT = by_tag("radixark--qwen3.8-27b-nvfp4", BY_TAG)
MORE = "nvidia--nemotron-3.5-lightning-30b-a3b-nvfp4"
LIST = f"""\
serve:
  - {{profile: {PAIR}, name: pair, alias: pair}}
  - {{profile: {OSS}, name: oss, alias: oss}}
  - {{profile: {CHAT}, name: chat, alias: chat, fraction: 0.42}}
"""
ONE_MORE = f"  - {{profile: {MORE}, name: more, alias: more, fraction: 0.38}}\n"
# Who may ask what. Nobody may ask everything.
PEOPLE = {"alice": "pair,oss", "bob": "chat,more", "carol": "oss"}
PORT = "jsonpath={.spec.containers[0].ports[0].containerPort}"
RUNNING = "vllm:num_requests_running"
NOT_HERE = ("sparkloom_waker_", "sparkloom_host_disk_held_bytes")  # no group is on demand; no disk need fill
LOSE = """\
digest=$(ctr -n k8s.io images ls | awk '$1 == "{name}" {{print $3}}')
ctr -n k8s.io images ls | awk '$3 == "'$digest'" {{print $1}}' | xargs ctr -n k8s.io images rm --sync
"""  # an image under all its names
KILLS = int(os.environ.get("SPARKLOOM_KILLS", "3"))  # `make test-kills` does twenty


@pytest.fixture(scope="module")
def keys() -> Iterator[dict[str, str]]:
    """Each person's key, from a rack on which one model has all Sparks and whose list is about to be written."""
    with shared_gpus():
        begin(ULTRA, PAIR, OSS, CHAT, MORE)
        write(f"profile: {ULTRA}\n")
        play("site.yml", "-e", "model_serving_replace=true")
        assert groups(pods()) == {ULTRA: 4}
        yield {person: key_of(person, models) for person, models in PEOPLE.items()}
        play("playbooks/teardown.yml", "-e", "teardown_serving=true")


@pytest.fixture(scope="module")
def endpoint(keys: dict[str, str]) -> neighbours.Endpoint:
    return listed.endpoint()


def reached(endpoint: neighbours.Endpoint, keys: dict[str, str], *models: str) -> dict[str, set[str]]:
    return {person: {m for m in models if endpoint.once(m, key) == neighbours.WHOLE} for person, key in keys.items()}


FILLED = {"$group": ".*", "$node": ".*", "$person": ".*", "[$__rate_interval]": "[1m]", "[$__range]": "[1h]"}


HISTORY = "prometheus-history"  # the claim that the playbook makes
VOLUME = {
    "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": HISTORY},
    "spec": {
        "capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "standard",
        "local": {"path": "/var/lib/prometheus-history"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [names.NODES["spark2"]]},
        ]}]}},
    },
}  # fmt: skip


def prometheus_there() -> None:
    """What a rack gets when somebody asks for a Prometheus: its image, and a volume, which K3s makes by itself."""
    perform(prometheus.image_steps())
    load.load(prometheus.SCRAPER.archive())
    cluster.node_sh(names.NODES["spark2"], "install -d -m 777 /var/lib/prometheus-history")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(VOLUME))


@contextmanager
def prometheus_asked() -> Iterator[Callable[..., Any]]:
    """Its API, by a port of this machine."""
    tool = [nodeimage.kubectl(), "--kubeconfig", names.KUBECONFIG, "-n", "sparkloom", "port-forward"]
    with subprocess.Popen([*tool, "deployment/prometheus", ":9090"], stdout=subprocess.PIPE, text=True) as tunnel:
        assert tunnel.stdout
        port = re.search(r"127\.0\.0\.1:(\d+)", tunnel.stdout.readline())
        assert port

        def ask(path: str, **words: str) -> Any:
            with urlopen(f"http://127.0.0.1:{port[1]}/api/v1/{path}?{urlencode(words)}", timeout=30) as answer:
                return json.load(answer)["data"]

        try:
            yield ask
        finally:
            tunnel.terminate()


@contextmanager
def failing(endpoint: neighbours.Endpoint, key: str, down: dict[str, str]) -> Iterator[None]:
    """Groups, by the Spark of their rank 0, whose engine crashes at each load; they serve again when it is over."""
    engine = (".venv/bin/python", "-m", "testbed", "engine")
    try:
        for group, node in down.items():
            assert run(*engine, "fault", node, "crash", "stage=load").returncode == 0
            cluster.kubectl("-n", "sparkloom", "delete", "pod", f"{group}-rank0-0", "--wait=false")
        yield
    finally:
        run(*engine, "mend", "all")
        for group in down:
            cluster.kubectl("-n", "sparkloom", "delete", "pod", "-l", f"sparkloom/profile={group}", "--wait=false")
    until = time.monotonic() + 180
    for group in down:
        while endpoint.once(group, key) != neighbours.WHOLE:
            assert time.monotonic() < until
            time.sleep(2)


@contextmanager
def hot(node: str) -> Iterator[None]:
    faults.break_(node, "hot-gpu", ("a", "b"))
    try:
        yield
    finally:
        faults.mend(node, "hot-gpu", ("a", "b"))


def unanswered(expressions: dict[str, str]) -> dict[str, str]:
    """What had no data yet; each sweep by a tunnel of its own, as one may stop to answer."""
    with prometheus_asked() as ask, suppress(OSError):
        return {expr: told for expr, told in expressions.items() if not ask("query", query=filled(expr))["result"]}
    return expressions


def filled(expr: str) -> str:
    for word, value in FILLED.items():
        expr = expr.replace(word, value)
    return expr


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


def test_every_query_of_the_dashboards_has_data(keys: dict[str, str], endpoint: neighbours.Endpoint) -> None:
    """Asked of a Prometheus that the playbook brings, while one group fails, one GPU is hot and the others answer."""
    cluster.kubectl("-n", "sparkloom", "delete", "pvc", HISTORY, "--ignore-not-found")
    cluster.kubectl("delete", "pv", HISTORY, "--ignore-not-found")
    short = ("playbooks/metrics.yml", "-e", "metrics_prometheus=install", "-e", "metrics_wait_seconds=15")
    refused = run("ansible-playbook", "-i", str(SITE), *short, ANSIBLE_NOCOLOR="1")
    assert refused.returncode != 0 and "prometheus: 0 of 1 ready" in refused.stdout, refused.stdout[-3000:]
    prometheus_there()
    play("playbooks/metrics.yml", "-e", "metrics_prometheus=install")
    people = {"oss": keys["carol"], "chat": keys["bob"], "more": keys["bob"], "pair": keys["alice"]}
    asked = [neighbours.Asked(model, key) for model, key in people.items()]
    expressions = {
        expr: f"{one.name}: {panel.title}"
        for one in dashboards.every() for panel in one.panels for expr, _ in panel.exprs
        if not any(name in expr for name in NOT_HERE)
    }  # fmt: skip
    until = time.monotonic() + 300
    troubles = (failing(endpoint, keys["alice"], {"oss": "spark3"}), hot("spark4"))
    with neighbours.asking(endpoint, asked, 1), troubles[0], troubles[1]:
        # A cause is there while an engine is down and gone when it loads again: once is enough for each.
        while expressions := unanswered(expressions):
            assert time.monotonic() < until, sorted(expressions.values())
            time.sleep(5)
        with prometheus_asked() as ask:
            targets = ask("targets")["activeTargets"]
    # A target is known by its pod: what group it is of stands in its page, and one that loads has none.
    silent = [one for one in targets if one["health"] != "up" and not one["labels"]["pod"].startswith("oss-")]
    assert [(one["scrapeUrl"], one["lastError"]) for one in silent] == []


def test_the_page_tells_of_two_groups_that_fail(
    keys: dict[str, str], endpoint: neighbours.Endpoint, tmp_path: Path
) -> None:
    """In a browser, through TLS, on a large and a small screen; the others go on."""
    assert PROGRAM, "no chromium here; make test installs it"
    browser, url = Browser(tmp_path / "chromium"), f"https://{endpoint.address}/"
    try:
        with failing(endpoint, keys["alice"], {"pair": "spark1", "oss": "spark3"}):
            for size, (width, _, _) in SIZES.items():
                page = browser.page(size)
                page.call("Security.setIgnoreCertificateErrors", ignore=True)
                page.go(url)
                page.js(f"document.getElementById('key').value = '{keys['alice']}'")
                page.js("document.getElementById('enter').requestSubmit()")
                page.until("document.getElementById('headline').innerText === '2 of 4 models serve'", 120)
                page.until("(document.getElementById('groups').innerText.match(/failed/g) || []).length >= 2", 240)
                assert page.js("document.documentElement.scrollWidth") == width
                assert page.errors == [] and page.hosts == {endpoint.address}
                page.shot(Path(os.environ.get("SPARKLOOM_SHOTS") or tmp_path) / f"rack-two-fail-{size}.png")
            assert endpoint.once("chat", keys["bob"]) == neighbours.WHOLE
    finally:
        browser.close()


def ends(endpoint: neighbours.Endpoint, group: str, key: str, told: dict[str, float]) -> None:
    """A long answer: when it began and when its last byte came."""
    body = {"model": group, "messages": [{"role": "user", "content": "Tell it all."}], "max_tokens": 20000,
            "stream": True, "ignore_eos": True}  # fmt: skip
    with closing(endpoint.connect()) as connection, suppress(OSError, HTTPException):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        connection.request("POST", neighbours.CHAT, json.dumps(body), headers)
        answer = connection.getresponse()
        while answer.status == 200 and answer.read(20):
            told.setdefault("begun", time.monotonic())
            if told.get("leave"):
                return
    told["ended"] = time.monotonic()


@contextmanager
def reading(endpoint: neighbours.Endpoint, group: str, *some: str) -> Iterator[list[dict[str, float]]]:
    told: list[dict[str, float]] = [{} for _ in some]
    readers = [Thread(target=ends, args=(endpoint, group, key, one)) for key, one in zip(some, told, strict=True)]
    for reader in readers:
        reader.start()
    try:
        patiently(lambda: all("begun" in one for one in told), 30, "the streams to begin")
        yield told
    finally:
        for one, reader in zip(told, readers, strict=True):
            one["leave"] = 1
            reader.join(60)


def at_engine(group: str) -> float:
    """Requests that its engine computes, by its own figure."""
    pod = f"{group}-rank0-0"
    port = cluster.kubectl("-n", "sparkloom", "get", "pod", pod, "-o", PORT)
    page = cluster.kubectl("-n", "sparkloom", "exec", pod, "--", "python3", "-c", real.PAGE % (int(port), "/metrics"))
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(RUNNING))


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


@pytest.mark.parametrize("group", ["pair", "oss"])
def test_a_stream_ends_with_its_key_and_another_goes_on(
    keys: dict[str, str], endpoint: neighbours.Endpoint, group: str
) -> None:
    """So does the work at the engine: the ranks of `pair` are privileged, the one of `oss` is not."""
    with reading(endpoint, group, key_of("dora", group), keys["alice"]) as (hers, another):
        patiently(lambda: at_engine(group) == 2, 10, "both at the engine")
        done = run("sparkloom", "keys", "revoke", "dora", "-i", str(SITE), "--json")
        known = time.monotonic()
        assert done.returncode == 0, done.stderr
        patiently(lambda: "ended" in hers and at_engine(group) == 1, 10, "one to be left there")
        print(f"its stream ended {hers['ended'] - known:.1f} s after the command")
        assert hers["ended"] - known < 5 and "ended" not in another


def test_who_starts_without_its_image_is_told_so_and_serves_when_it_is_there(
    keys: dict[str, str], endpoint: neighbours.Endpoint
) -> None:
    """Collected from a full disk, or lost with one. No registry has it: it comes as a file, and serve.yml names it."""
    where = ("get", "pod", "pair-rank1-0", "-o", "jsonpath={.spec.nodeName} {.spec.containers[0].image}")
    node, image = cluster.kubectl("-n", "sparkloom", *where).split()
    spark = next(name for name, container in names.NODES.items() if container == node)
    assert run("sparkloom", "stop", "pair", "-i", str(SITE)).returncode == 0
    cluster.node_sh(node, LOSE.format(name=image.partition("@")[0]))
    for _ in range(2):  # the second finds it started, and not serving
        refused = run("sparkloom", "start", "pair", "-i", str(SITE))
        assert refused.returncode == 1 and image in refused.stderr and f"on {spark}: its image" in refused.stderr, (
            refused
        )
    assert run("python", "-m", "testbed", "engine", "load", PAIR).returncode == 0
    play("playbooks/serve.yml")
    patiently(lambda: endpoint.once("pair", keys["alice"]) == neighbours.WHOLE, 600, "serving with its image")


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


def test_each_command_takes_one_group(keys: dict[str, str], endpoint: neighbours.Endpoint) -> None:
    """Measured, asked for its logs, doctored and taken away alone; where a name is wanted, all are named."""
    told = run(
        "sparkloom", "bench", "-i", str(SITE), "--group", "chat", "-n", "1", "--max-tokens", "24", "-q", "--json"
    )
    result = json.loads(told.stdout)
    assert told.returncode in (0, 1) and result["levels"][0]["requests"] == 1, told.stderr
    unnamed = run("sparkloom", "logs", "-i", str(SITE))
    assert unnamed.returncode == 2 and all(group in unnamed.stderr for group in ("chat", "more", "oss", "pair"))
    spoken = run("sparkloom", "logs", "pair", "-i", str(SITE))
    assert spoken.returncode == 0 and "rank 1" in spoken.stdout, spoken.stderr
    doctored = run("sparkloom", "doctor", "-i", str(SITE), "--group", "chat", "--json")
    serving = [one for one in json.loads(doctored.stdout)["findings"] if one["area"] in ("serving", "weights")]
    assert not [one for one in serving if one["severity"] == "error"], serving
    before = pods()
    play("playbooks/teardown.yml", "-e", "teardown_group=more")
    assert pods() == {name: uid for name, uid in before.items() if not name.startswith("more-")}
    assert endpoint.once("chat", keys["bob"]) == neighbours.WHOLE


def test_the_files_of_the_site_hold_no_key(keys: dict[str, str]) -> None:
    for file in [*SITE.rglob("*.yml"), *Path(names.REPO / "build" / "kind").rglob("*.json")]:
        assert not any(key in file.read_text() for key in keys.values()), file
