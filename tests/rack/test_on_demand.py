"""Two models that take turns on one Spark, each asleep while nobody asks for it, beside one that always serves."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import NamedTuple

import pytest

from testbed.base import names
from testbed.beds.rack import cluster
from testbed.trials import neighbours
from tests.later import LATER
from tests.rack.listed import BY_TAG, SITE, begin, endpoint, groups, key_of, play, pods, shared_gpus, write
from tests.rack.running import by_tag, run

pytestmark = [pytest.mark.rack, pytest.mark.slow, *LATER]  # ten minutes, and most of them waiting for idleness
PAIR = "nvidia--glm-5.3-flash-nvfp4"
DAY, NIGHT = "openai--gpt-oss-120b", by_tag("radixark--qwen3.8-27b-nvfp4", BY_TAG)
IDLE = 60.0  # seconds; a list counts minutes
PATIENT = 600.0  # seconds without a word, as OpenAI's SDK: nothing comes while a group starts
LIST = f"""\
serve:
  - {{profile: {PAIR}, name: pair, alias: pair}}
  - {{profile: {DAY}, name: day, alias: day, idle_minutes: 1, turns: desk}}
  - {{profile: {NIGHT}, name: night, alias: night, idle_minutes: 1, turns: desk}}
"""


class Heard(NamedTuple):
    """One answer: `seconds` is until the first token."""

    status: int
    text: str
    again: int
    seconds: float

    @property
    def whole(self) -> bool:
        return self.status == 200 and ("data: [DONE]" in self.text or '"finish_reason"' in self.text)


class Site(NamedTuple):
    at: neighbours.Endpoint
    key: str

    def ask(self, model: str, *, stream: bool = True) -> Heard:
        body = {"model": model, "messages": [{"role": "user", "content": "Good morning?"}], "max_tokens": 24,
                "stream": stream}  # fmt: skip
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        begun, first, text = time.monotonic(), 0.0, ""
        with closing(self.at.connect()) as connection:
            connection.timeout = PATIENT
            connection.request("POST", neighbours.CHAT, json.dumps(body), headers)
            answer = connection.getresponse()
            for line in answer:
                text += line.decode()
                if not first and ("data:" in text or not stream):
                    first = time.monotonic() - begun
        return Heard(answer.status, text, int(answer.headers.get("Retry-After") or 0), first)

    def states(self) -> dict[str, str]:
        with closing(self.at.connect()) as connection:
            connection.timeout = PATIENT
            connection.request("GET", "/v1/models", headers={"Authorization": f"Bearer {self.key}"})
            return {one["id"]: one["state"] for one in json.loads(connection.getresponse().read())["data"]}

    def until(self, **wanted: str) -> None:
        """The router's health checks find out within ten seconds who went or came."""
        limit = time.monotonic() + 20
        while (found := self.states()) != wanted | {"pair": "up"}:
            assert time.monotonic() < limit, found
            time.sleep(1)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with shared_gpus():
        begin(PAIR, DAY, NIGHT)
        write(LIST)
        key = key_of("alice", "pair,day,night")
        output = play("site.yml")
        assert "asleep" in output
        yield Site(endpoint(), key)
        play("playbooks/teardown.yml", "-e", "teardown_serving=true")


@contextmanager
def pair_asked(site: Site) -> Iterator[None]:
    """Whatever the others do, who always serves loses nothing."""
    asked = neighbours.Asked("pair", site.key)
    before = {name: uid for name, uid in pods().items() if name.startswith("pair")}
    with neighbours.asking(site.at, [asked], 1):
        yield
    assert asked.answers.total() > 5 and not asked.lost, asked.answers
    assert {name: uid for name, uid in pods().items() if name.startswith("pair")} == before


def asleep(group: str, seconds: float) -> float:
    """Until it has no pod; how long that took."""
    begun = time.monotonic()
    while group in groups(pods()):
        assert time.monotonic() - begun < seconds, f"{group} is still awake"
        time.sleep(1)
    return time.monotonic() - begun


def test_both_are_proved_and_one_of_them_is_awake(site: Site) -> None:
    assert groups(pods()) == {"night": 1, "pair": 2}
    site.until(night="up", day="sleeps")


def test_who_is_in_use_is_not_ended_for_another(site: Site) -> None:
    before = pods()
    with pair_asked(site):
        until = time.monotonic() + IDLE * 1.2  # longer than it may be idle: each answer counts anew
        while time.monotonic() < until:
            assert site.ask("night").whole
            for stream in (True, False):
                refused = site.ask("day", stream=stream)
                assert refused.status == 503 and "model_in_turn" in refused.text and "night" in refused.text, refused
                assert 1 <= refused.again <= 60
            time.sleep(5)
    assert pods() == before


def test_who_is_idle_falls_asleep_and_status_calls_that_no_trouble(site: Site) -> None:
    with pair_asked(site):
        assert asleep("night", IDLE + 60) > IDLE / 2
    site.until(night="sleeps", day="sleeps")
    told = run("sparkloom", "status", "-i", str(SITE), "--json")
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout.count('"asleep"') >= 2
    shown = run("sparkloom", "status", "-i", str(SITE))
    assert "asleep, wakes with the next request" in shown.stdout
    doctored = run("sparkloom", "doctor", "-i", str(SITE), "--json")
    errors = [one for one in json.loads(doctored.stdout)["findings"] if one["severity"] == "error"]
    assert not [one for one in errors if one["area"] in ("serving", "cluster")], errors


def test_a_playbook_wakes_nobody_and_changes_nothing(site: Site) -> None:
    before = pods()
    for playbook in ("playbooks/serve.yml", "playbooks/gateway.yml"):
        output = play(playbook)
        changed = re.findall(r"^TASK \[(.+?)\] \*+\n(?:(?!TASK).*\n)*?changed: \[(\w+)", output, re.M)
        changed = [one for one in changed if one[0] != "roce_fabric : Keep several functions of one subnet apart"]
        assert not changed, changed
    assert pods() == before


def test_a_stream_wakes_it_and_waits(site: Site) -> None:
    """A load of a minute and more, without a word through router and Traefik."""
    engine = (".venv/bin/python", "-m", "testbed", "engine")
    assert run(*engine, "fault", "spark3", "slow", "seconds=60").returncode == 0
    try:
        with pair_asked(site):
            heard = site.ask("day")
    finally:
        run(*engine, "mend", "all")
    print(f"day: first token {heard.seconds:.1f} s after it was asked for asleep")
    assert heard.whole and heard.seconds > 60, heard
    assert site.ask("day").seconds < 30, "awake it is reached without the waker"


def test_without_a_stream_it_is_told_when_to_come_again(site: Site) -> None:
    with pair_asked(site):
        asleep("day", IDLE + 60)
        codes = []
        until = time.monotonic() + 180
        while not (heard := site.ask("night", stream=False)).whole:
            codes.append(heard.status)
            assert heard.status == 503 and "model_wakes" in heard.text and 1 <= heard.again <= 60, heard
            assert time.monotonic() < until
            time.sleep(min(heard.again, 10))
    assert codes, "it was asleep"


def test_a_waker_made_anew_knows_all_from_the_cluster(site: Site) -> None:
    assert site.ask("night").whole
    before = pods()
    cluster.kubectl("-n", "sparkloom", "delete", "pod", "-l", "app.kubernetes.io/name=waker")
    cluster.kubectl("-n", "sparkloom", "rollout", "status", "deployment/waker", "--timeout=120s")
    site.until(night="up", day="sleeps")
    refused = site.ask("day")
    assert refused.status == 503 and "model_in_turn" in refused.text, "idle time is counted anew"
    assert pods() == before
    with pair_asked(site):
        asleep("night", IDLE + 90)
        assert site.ask("day").whole


def test_requests_across_the_moment_of_falling_asleep_lose_nothing(site: Site) -> None:
    """One asks again just when the minute is over, a few seconds to each side: whole, or told to come again."""
    what = []
    with pair_asked(site):
        assert site.ask("day").whole
        for early in (4.0, 2.0, 0.0, -2.0, -4.0, -6.0):
            time.sleep(IDLE - early)
            heard = site.ask("day")
            what.append((early, "whole" if heard.whole else f"{heard.status} {heard.text[:120]}"))
            if not heard.whole:
                assert heard.status == 503 and heard.again, what
                time.sleep(heard.again)
                assert site.ask("day").whole, what
    print(what)


def test_who_is_stopped_stays_so_until_somebody_starts_it(site: Site) -> None:
    """A stream that runs is whole; a request wakes nobody; serve.yml and a restarted node start nothing."""
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(site.ask, "pair")
        time.sleep(0.5)
        stopped = run("sparkloom", "stop", "all", "-i", str(SITE))
        assert stopped.returncode == 0, stopped.stdout + stopped.stderr
        assert heard.result().whole, heard.result()
    assert pods() == {}
    who = re.findall(r"pair is stopped by (.+?),", stopped.stdout)[0]
    time.sleep(5)  # a look of the waker
    told = site.ask("day")
    assert told.status == 503 and "model_stopped" in told.text and who in told.text and told.again, told
    assert run("docker", "restart", names.NODES["spark4"]).returncode == 0
    up = run("python", "-m", "testbed", "rack", "up")
    assert up.returncode == 0, up.stdout[-3000:] + up.stderr[-2000:]
    assert f"pair on spark1, spark2 stays stopped (by {who}, " in play("playbooks/serve.yml")
    play("playbooks/gateway.yml")
    assert pods() == {}
    shown = run("sparkloom", "status", "-i", str(SITE))
    assert shown.returncode == 1 and shown.stdout.count(f"is stopped by {who}, ") == 3, shown.stdout
    started = run("sparkloom", "start", "all", "-i", str(SITE))
    assert started.returncode == 0 and "pair serves" in started.stdout, started.stdout + started.stderr
    assert groups(pods()) == {"pair": 2}, "on demand they sleep"
    until = time.monotonic() + 15  # the router looks for who serves every 5 s, and says when to come again
    while not (heard_again := site.ask("pair")).whole:
        assert heard_again.again and time.monotonic() < until, heard_again
        time.sleep(1)
    assert site.ask("night").whole
