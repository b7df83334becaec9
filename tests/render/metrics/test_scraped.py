"""Prometheus itself over a site on loopback: all is taken, every panel has data, every alert can be told."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from sparkloom import case
from sparkloom.onnode.host import backup
from sparkloom.onnode.host_metrics import disks
from sparkloom.onnode.host_metrics import main as host_metrics
from sparkloom.onnode.rank import probes
from sparkloom.render.metrics import alerts, dashboards, prometheus, series
from tests.onnode.rank.ranks import Ranks, free_port
from tests.onnode.test_host_metrics import STAND_IN
from tests.prometheus import program
from tests.render.metrics import sites
from tests.until import until

CLUSTER = case.cluster(None)
FILLED = {"$group": ".*", "$node": ".*", "$person": ".*", "[$__rate_interval]": "[15s]", "[$__range]": "[1m]"}


class Prometheus:
    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, path: str, **words: str) -> Any:
        with urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(words)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expr: str) -> list[dict[str, Any]]:
        return list(self.ask("query", query=expr)["result"])


def config(targets: dict[str, list[str]]) -> dict[str, Any]:
    """The site's own, with addresses in the place of a cluster."""
    made = prometheus.config(CLUSTER)
    made["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    made["rule_files"] = ["rules.yml"]
    for one in made["scrape_configs"]:
        del one["kubernetes_sd_configs"], one["relabel_configs"]
        node = {"node": "spark1"} if one["job_name"] == series.HOSTS else {}
        one["static_configs"] = [{"targets": targets[one["job_name"]], "labels": node}]
    return made


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("site")
    with ExitStack() as site:
        ranks = Ranks(folder, 2)
        ranks.plan |= {
            "metrics": "/metrics",
            "requests": ["sglang:num_running_reqs"],
            "moves": ["sglang:generation_tokens_total"],
        }
        ranks.plan["limits"]["silence"] = 60.0
        counters = sites.growing(sites.ENGINE)
        (folder / "counters").write_text(counters())
        ranks.start()
        site.callback(ranks.end)
        ill = free_port()
        probes.start(sites.wounded(folder / "wounded"), "127.0.0.21", ill)
        router = site.enter_context(sites.page(sites.growing(sites.ROUTER)))
        waker = site.enter_context(sites.page(sites.growing(sites.WAKER)))
        exporter, listening = free_port(), free_port()
        _host_file(folder)
        places = (sites.procfs(folder / "proc"), sites.sysfs(folder / "sys"), folder / "textfiles")
        words = sites.exporter_words(exporter, *places)
        _running(site, folder, [program("prometheus-node-exporter"), *words])
        both = [f"127.0.0.{11 + n}:{ranks.plan['probe_port']}" for n in range(2)]
        targets = {
            series.RANKS: [*both, f"127.0.0.21:{ill}"], series.ENGINES: both[:1],
            series.ROUTER: [f"127.0.0.1:{router}"], series.HOSTS: [f"127.0.0.1:{exporter}"],
            series.WAKER: [f"127.0.0.1:{waker}"],
        }  # fmt: skip
        ranks.wait(ranks.serving)
        (folder / "prometheus.json").write_text(json.dumps(config(targets)))
        (folder / "rules.yml").write_text(alerts.text(alerts.of(CLUSTER)))
        storage = ["--storage.tsdb.path", str(folder / "history"), f"--web.listen-address=127.0.0.1:{listening}"]
        _running(site, folder, [program("prometheus"), "--config.file", str(folder / "prometheus.json"), *storage])
        made = Prometheus(listening)
        ended = threading.Event()
        site.callback(ended.set)
        threading.Thread(target=_grow, args=(folder, counters, ended), daemon=True).start()
        until(lambda: made.query("count(up == 1) == 7"), 60, despite=(OSError,))
        time.sleep(8)
        yield made


def _running(site: ExitStack, folder: Path, words: list[str]) -> None:
    log = site.enter_context((folder / f"{Path(words[0]).name}.log").open("wb"))
    process = site.enter_context(subprocess.Popen(words, stdout=log, stderr=log))
    site.callback(process.terminate)


def _host_file(folder: Path) -> None:
    """The writer's own code, with the rack's nvidia-smi and a guard."""
    made = (folder / "bin/nvidia-smi", folder / "guard.json", folder / "host.json")
    made[0].parent.mkdir()
    made[0].write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    made[0].chmod(0o755)
    made[1].write_text('{"floor_gib": 8}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{made[0].parent}:/usr/bin:/bin")
        patch.setattr(disks, "LITTLE", 1 << 62)  # any disk is one that fills
        settings = {"guard": str(made[1]), "disks": {str(folder): [f"{folder}/*"]}}
        text = host_metrics.page(host_metrics.samples(settings, {"endpoint": time.time() + 86400}, time.time()))
        # nothing holds this GPU back, and a panel shows what does
        held = 'sparkloom_gpu_held_back{gpu="0",reason="temperature"} '
        backup.write(folder / "textfiles" / host_metrics.FILE, text.replace(f"{held}0", f"{held}1"), 0o644)


def _grow(folder: Path, counters: Callable[[], str], ended: threading.Event) -> None:
    while not ended.wait(0.5):
        aside = folder / "counters.new"
        aside.write_text(counters())
        aside.replace(folder / "counters")


def test_everything_is_scraped_without_a_complaint(scraped: Prometheus) -> None:
    active = scraped.ask("targets")["activeTargets"]
    assert [(target["scrapeUrl"], target["lastError"]) for target in active if target["health"] != "up"] == []
    assert scraped.query("max(scrape_duration_seconds)")
    assert not scraped.query("sum(node_textfile_scrape_error) > 0")


PANELS = [
    (f"{one.name}: {panel.title}", expr)
    for one in dashboards.every()
    for panel in one.panels
    for expr, _ in panel.exprs
]


@pytest.mark.parametrize(("title", "expr"), PANELS)
def test_every_panel_has_data(title: str, expr: str, scraped: Prometheus) -> None:
    for word, real in FILLED.items():
        expr = expr.replace(word, real)
    assert scraped.query(expr), (title, expr)


def test_blocks_of_16_mib_and_more_are_counted(scraped: Prometheus) -> None:
    """On the old code those of 4 MiB alone, though a GB10's go up to 32: an idle Spark looked like one in crumbs."""
    (expr,) = (expr for title, expr in PANELS if "blocks" in title)
    (row,) = scraped.query(expr)
    assert float(row["value"][1]) == 7 * (16 << 20) + 7 * (32 << 20)


def test_a_group_s_labels_are_on_its_engine_too(scraped: Prometheus) -> None:
    (row,) = scraped.query("sglang:num_running_reqs")
    assert {"group": "p", "rank": "0", "node": "spark1", "job": series.ENGINES}.items() <= row["metric"].items()
    assert "exported_group" not in row["metric"]


def test_every_rule_is_evaluated_and_its_words_are_whole(scraped: Prometheus) -> None:
    rules = [rule for group in scraped.ask("rules")["groups"] for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {alert["alert"] for alert in alerts.of(CLUSTER)}
    assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []
    told = {one["labels"]["alertname"]: one for one in scraped.ask("alerts")["alerts"]}
    assert {"SparkloomStaysDown", "SparkloomWeightsDrift"} <= {n for n, one in told.items() if one["state"] == "firing"}
    pending = {
        "SparkloomTransportFellBack",
        "SparkloomRailBroken",
        "SparkloomRestartBudget",
        "SparkloomCertificateEnds",
    }
    assert pending <= set(told)
    for one in told.values():
        assert "<" not in one["annotations"]["summary"] and "no value" not in one["annotations"]["summary"]
    assert "wounded" in told["SparkloomStaysDown"]["annotations"]["summary"]
    assert "{{" not in told["SparkloomCertificateEnds"]["annotations"]["summary"]
    assert not {n for n, one in told.items() if one["labels"].get("group") == "p"}, "who is well is not cried over"


def test_a_scrape_of_a_supervisor_costs_little(scraped: Prometheus) -> None:
    """By its own clock, on a busy machine: 5 ms of processor are held in tests/onnode/rank."""
    (row,) = scraped.query(f'min(scrape_duration_seconds{{job="{series.RANKS}"}})')
    assert float(row["value"][1]) < 0.25
