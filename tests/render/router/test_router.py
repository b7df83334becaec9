"""The router as it runs: Envoy with our files, three people's keys, models of stand-in engines."""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from sparkloom.inputs.client_keys import Key, hashed
from testbed.standins.pacing.process import Engine
from tests.render.router.running import (
    ALICE,
    BOB,
    CAROL,
    CHAT,
    DAVE,
    OLD,
    PEOPLE,
    Answer,
    Router,
    asked,
    bearer,
    running,
)  # fmt: skip
from tests.until import until

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, Engine]]:
    made = {
        "alpha": Engine("alpha", "ttft=0.05", "rate=60"),
        "beta": Engine("beta", "ttft=0.05", "rate=100", "keep_alive=2"),
        "narrow": Engine("narrow", "ttft=3"),
        "closing": Engine("closing", "ttft=0", "keep_alive=0"),
    }
    yield made
    for engine in made.values():
        engine.down()


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory, engines: dict[str, Engine]) -> Iterator[Router]:
    facts = {"max_model_len": 4096}
    more: dict[str, dict[str, Any]] = {
        "alpha": {"aliases": ("fast",), "model": "org/alpha-8b", "facts": facts},
        "narrow": {"at_once": 2, "waiting": 2},
        "closing": {"at_once": 4, "waiting": 256},
    }
    with running(tmp_path_factory.mktemp("router"), engines, **more) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_asked_yet(engines: dict[str, Engine], router: Router) -> None:
    for engine in engines.values():
        engine.truth()


def reached(engines: dict[str, Engine]) -> dict[str, int]:
    return {name: count for name, engine in engines.items() if (count := len(engine.truth()))}


def test_the_body_s_model_is_reached_with_its_own_key(router: Router, engines: dict[str, Engine]) -> None:
    for model in ("alpha", "beta"):
        answer = router.post(model, tokens=3)
        assert answer.status == 200 and answer.body.count(b'"content": "') == 4 and b"[DONE]" in answer.body
        assert reached(engines) == {model: 1}


def test_an_engine_hears_its_own_name_of_the_model(router: Router) -> None:
    for name in ("alpha", "fast"):
        answer = router.post(name, tokens=1, stream=False)
        assert answer.status == 200 and answer.json["model"] == "org/alpha-8b"


@pytest.mark.parametrize("key", ["", "sk-wrong", ALICE[:-1], ALICE + "x", "x" * 600])
def test_a_wrong_key_opens_nothing(router: Router, engines: dict[str, Engine], key: str) -> None:
    for answer in (router.post("alpha", key), router.get("/v1/models", key), router.post("nobody", key)):
        assert answer.status == 401 and answer.code == "invalid_api_key"
    assert reached(engines) == {}


@pytest.mark.parametrize(
    "headers",
    [{"Authorization": f"bearer {ALICE}"}, {"Authorization": f"BEARER  {ALICE}"}, {"X-Api-Key": ALICE}],
    ids=["bearer", "BEARER", "x-api-key"],
)
def test_a_key_is_taken_as_clients_bring_it(router: Router, headers: dict[str, str]) -> None:
    """A scheme is in any case (RFC 9110, 11.1), and Anthropic's clients have a header of their own."""
    assert router.ask("GET", "/v1/models", "", headers=headers).status == 200


def test_a_key_opens_no_more_once_it_has_ended(router: Router) -> None:
    answer = router.post("alpha", OLD)
    assert answer.status == 401 and "the key of old has ended" in answer.json["error"]["message"]


def test_a_key_opens_its_models_alone(router: Router, engines: dict[str, Engine]) -> None:
    assert router.post("alpha", BOB).status == router.post("fast", BOB).status == 200
    refused = router.post("beta", BOB)
    assert refused.status == 404 and refused.code == "model_not_found"
    assert "beta" not in refused.json["error"]["message"].partition(";")[2]
    assert reached(engines) == {"alpha": 2}


def test_one_list_of_what_a_key_opens(router: Router) -> None:
    everything = router.get("/v1/models").json["data"]
    assert [model["id"] for model in everything] == ["alpha", "beta", "closing", "fast", "narrow"]
    assert everything[0]["max_model_len"] == 4096 and everything[3]["root"] == "alpha"
    assert {model["state"] for model in everything} == {"up"}, "as its own health checks say"
    assert [model["id"] for model in router.get("/v1/models", BOB).json["data"]] == ["alpha", "fast"]
    assert router.get("/v1/models/beta").json["id"] == "beta"
    assert router.get("/v1/models/beta", BOB).status == router.get("/v1/models/nobody").status == 404


def test_an_unknown_model_is_answered_with_the_list(router: Router, engines: dict[str, Engine]) -> None:
    answer = router.post("nobody")
    assert answer.status == 404 and "served here: alpha, beta, closing, fast, narrow" in answer.json["error"]["message"]
    assert reached(engines) == {}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'"model"', b'{"model": 1}', b'{"model": null}', b'{"messages": []}',
        b'{"model": "alpha", "model": "beta"}', b'{"model": "alpha"', b'{"model" "alpha"}', b'{"model": "alpha",}x',
        b'{"a": {"model": "alpha"}}', b'{"a": "\\", \\"model\\": \\"alpha\\""}', b'{"mod\\u0065l": "alpha"}',
        b'{"model": "\\u0061lpha"}', b"\xff\xfe{}", b'{"model": "alpha\xff"}',
    ],
)  # fmt: skip
def test_a_body_that_names_no_model_reaches_nobody(router: Router, engines: dict[str, Engine], body: bytes) -> None:
    answer = router.ask("POST", CHAT, body=body)
    assert answer.status in (400, 404) and answer.code in ("no_model", "model_not_found")
    assert reached(engines) == {}


@pytest.mark.parametrize("seed", range(20))
def test_the_model_is_found_wherever_it_stands(router: Router, engines: dict[str, Engine], seed: int) -> None:
    """Objects at random, as two libraries would write them; what looks like a model in them is none."""
    dice = random.Random(seed)
    noise = ['"', "\\", "{", "}", "[", "]", ",", ":", '"model": "beta"', "\n", "ü", "\u2028", " ", "a"]

    def value(depth: int) -> Any:
        kind = dice.randrange(6 if depth else 4)
        if kind == 4:
            return {"".join(dice.choices(noise, k=3)): value(depth - 1) for _ in range(dice.randrange(4))}
        if kind == 5:
            return [value(depth - 1) for _ in range(dice.randrange(4))]
        return [
            "".join(dice.choices(noise, k=dice.randrange(20))),
            dice.random() * 1e9,
            None,
            dice.choice([True, False]),
        ][kind]

    items = [(f"key{number}", value(3)) for number in range(6)]
    items += [("model", "alpha"), ("max_tokens", 1), ("messages", [{"role": "user", "content": value(0)}])]
    dice.shuffle(items)
    style: dict[str, Any] = dice.choice([{}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False}])
    answer = router.ask("POST", CHAT, body=json.dumps(dict(items), **style).encode())
    assert answer.status == 200, answer.body
    assert reached(engines) == {"alpha": 1}


def test_a_request_s_limit_says_when_to_come_again(router: Router) -> None:
    answers = [router.post("alpha", CAROL) for _ in range(5)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
    assert answers[4].code == "rate_limit_exceeded" and "3 requests a minute" in answers[4].json["error"]["message"]
    assert 1 <= int(answers[4].headers["retry-after"]) <= 20


def test_tokens_are_counted_as_the_engine_counts_them(router: Router) -> None:
    """A prompt of one word is 9 there; 9 + 25 are more than 30 a minute."""
    assert router.post("alpha", DAVE, tokens=25).status == 200
    refused = router.post("alpha", DAVE)
    assert refused.status == 429 and "30 tokens a minute" in refused.json["error"]["message"]
    assert 1 <= int(refused.headers["retry-after"]) <= 15


def test_usage_by_person_and_model(router: Router) -> None:
    def used() -> tuple[float, float, float]:
        labels = '{person="bob",model="alpha"}'
        series = router.series()
        asked_for = series.get('sparkloom_router_requests_total{person="bob",model="alpha",status="200"}', 0)
        tokens = [series.get(f"sparkloom_router_{kind}_tokens_total{labels}", 0) for kind in ("prompt", "completion")]
        return asked_for, tokens[0], tokens[1]

    before = used()
    for more in ({}, {"stream": False}, {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}):
        assert router.post("alpha", BOB, tokens=7, **more).status == 200
    after = used()
    assert tuple(b - a for a, b in zip(before, after, strict=True)) == (3, 27, 21)


def test_a_stream_has_its_usage_only_where_the_client_asks_for_it(router: Router) -> None:
    """The router asks every engine, and counts; `event.choices[0]` of an event without choices ends a client."""

    def events(**more: Any) -> list[dict[str, Any]]:
        said = router.post("alpha", tokens=4, **more).body.decode()
        assert said.endswith("data: [DONE]\n\n")
        return [json.loads(line[6:]) for line in said.splitlines() if line.startswith("data: {")]

    assert [event for event in events() if not event["choices"] or event.get("usage")] == []
    asked_for = [event for event in events(stream_options={"include_usage": True}) if not event["choices"]]
    assert [event["usage"]["completion_tokens"] for event in asked_for] == [4]


def test_the_log_has_a_line_for_it_and_no_key(router: Router) -> None:
    router.post("beta", tokens=5)
    limit = time.monotonic() + 15  # it is flushed every 10 s
    while time.monotonic() < limit:
        lines = [json.loads(line) for line in router.said().splitlines() if line.startswith("{")]
        mine = [line for line in lines if line["model"] == "beta" and line["completion_tokens"] == 5]
        if mine:
            break
        time.sleep(0.2)
    assert mine and mine[-1]["person"] == "alice" and mine[-1]["prompt_tokens"] == 9 and mine[-1]["status"] == 200
    assert not any(key in router.said() for key in (ALICE, BOB, CAROL, DAVE, OLD)) and "sk-own" not in router.said()


def test_a_stream_passes_as_it_comes(router: Router, engines: dict[str, Engine]) -> None:
    connection = router.connect()
    connection.request("POST", CHAT, json.dumps(asked("alpha", 60)), bearer(ALICE))
    answer, stamps = connection.getresponse(), []
    while chunk := answer.read1(65536):
        stamps += [time.monotonic()] * chunk.count(b'"content": "')
    connection.close()
    (truth,) = engines["alpha"].truth()
    assert len(stamps) == 61 and len(truth["sent"]) == 60
    assert stamps[10] < truth["sent"][-1], "the first are here while more is to come"


def test_a_client_that_leaves_ends_its_request(router: Router, engines: dict[str, Engine]) -> None:
    for model, wait in (("alpha", 0.5), ("narrow", 0.2)):  # in the answer, and before its first word
        connection = router.connect()
        connection.request("POST", CHAT, json.dumps(asked(model, 4000)), bearer(ALICE))
        time.sleep(wait)
        assert connection.sock
        connection.sock.close()
        connection.close()
        time.sleep(1)
        (truth,) = engines[model].truth()
        assert truth["why"] == "client left"


def test_what_a_client_had_before_it_left_is_counted(router: Router, engines: dict[str, Engine]) -> None:
    name = 'sparkloom_router_completion_tokens_total{person="alice",model="alpha"}'
    before = router.series().get(name, 0)
    connection = router.connect()
    connection.request("POST", CHAT, json.dumps(asked("alpha", 4000)), bearer(ALICE))
    connection.getresponse().read(4000)
    connection.close()
    time.sleep(1)
    sent = sum(engines["alpha"].truth()[0]["tokens"])
    assert 5 < router.series()[name] - before <= sent


def test_megabytes_pass_and_more_than_is_granted_does_not(router: Router, engines: dict[str, Engine]) -> None:
    text = 'a "long" text \\ with {braces} ' * 100_000
    answer = router.ask("POST", CHAT, body=json.dumps(asked("beta", 1, text)))
    assert answer.status == 200
    (truth,) = engines["beta"].truth()
    assert hashlib.sha256(truth["prompt"].encode()).digest() == hashlib.sha256(text.encode()).digest()
    too_long = router.ask("POST", CHAT, body=json.dumps(asked("beta", 1, text * 2)))
    assert too_long.status == 413 and reached(engines) == {}


def test_a_connection_that_the_engine_closed_costs_no_request(router: Router) -> None:
    """beta closes what idles for 0.2 s: the next request comes about then."""
    for number in range(30):
        time.sleep(0.17 + 0.003 * number)
        assert router.post("beta").status == 200


def test_as_many_wait_as_may_and_the_next_is_told_so(router: Router, engines: dict[str, Engine]) -> None:
    answers: list[Answer] = []
    asking = [threading.Thread(target=lambda: answers.append(router.post("narrow"))) for _ in range(4)]
    # two have its engine before the others come: to Envoy, who waits for a connection to be made waits too
    for thread, at_work in zip(asking[:2], (1, 2), strict=True):
        thread.start()
        until(partial(has, router, at_work), 10)
    for thread in asking[2:]:
        thread.start()
    limit = time.monotonic() + 10
    while waiting(router, "narrow") < 2 and time.monotonic() < limit:
        time.sleep(0.02)
    for _ in range(3):
        full = router.post("narrow")
        assert full.status == 503 and full.code == "queue_full" and full.headers["retry-after"] == "5"
        assert "narrow" in full.json["error"]["message"]
    for thread in asking:
        thread.join(30)
    assert [answer.status for answer in answers] == [200] * 4
    assert reached(engines) == {"narrow": 4}


def waiting(router: Router, model: str) -> float:
    return gauge(router, model, "upstream_rq_pending_active")


def has(router: Router, requests: int) -> bool:
    return gauge(router, "narrow", "upstream_rq_active") >= requests


def gauge(router: Router, model: str, what: str) -> float:
    page = router.ask("GET", "/stats/prometheus", port=router.terms.metrics_port).body.decode()
    name = f'envoy_cluster_{what}{{envoy_cluster_name="{model}"}} '
    return float(page.partition(name)[2].partition("\n")[0] or 0)


@pytest.mark.parametrize(
    "path",
    ["/health", "/metrics", "/stats/prometheus", "/v1x", "/v1/", "/v1/../health", "/v1/models/../../health",
     "/v1/..%2fhealth", "/v1/models/..%2f..%2fhealth", "//health", "/V1/models", "/v1/chat/completions/"],
)  # fmt: skip
def test_other_paths_are_closed(router: Router, engines: dict[str, Engine], path: str) -> None:
    for method in ("GET", "POST"):
        body = json.dumps(asked("alpha", 1)) if method == "POST" else None
        assert router.ask(method, path, body=body).status in (307, 400, 404), path
    assert reached(engines) == {}


def test_a_method_that_a_path_has_not(router: Router, engines: dict[str, Engine]) -> None:
    assert router.ask("POST", "/v1/models", body=json.dumps(asked("alpha", 1))).status == 405
    assert router.get(CHAT).status == 405
    assert router.ask("DELETE", CHAT).status == router.ask("HEAD", CHAT).status == 404
    assert reached(engines) == {}


def test_nobody_chooses_a_group_by_himself(router: Router, engines: dict[str, Engine]) -> None:
    for key, wanted in ((BOB, 404), ("", 401)):
        body = json.dumps(asked("beta", 1))
        headers = {"x-sparkloom-group": "beta", "X-Sparkloom-Group": "beta"}
        assert router.ask("POST", CHAT, key, body, headers).status == wanted
    assert reached(engines) == {}


def test_envoy_s_own_series_are_at_the_port_for_metrics(router: Router) -> None:
    page = router.ask("GET", "/stats/prometheus", port=router.terms.metrics_port).body
    assert b'envoy_cluster_upstream_rq_total{envoy_cluster_name="alpha"}' in page
    assert router.ask("POST", "/quitquitquit", port=router.terms.metrics_port).status == 404


def test_one_engine_dies_alone_and_comes_back(router: Router, engines: dict[str, Engine]) -> None:
    engines["beta"].down()
    try:
        assert router.post("beta").status == 503
        time.sleep(11)
        begun = time.monotonic()
        answer = router.post("beta")
        assert answer.status == 503 and answer.code == "model_not_up" and answer.headers["retry-after"] == "15"
        states = {model["id"]: model["state"] for model in router.get("/v1/models").json["data"]}
        assert states == {"alpha": "up", "beta": "down", "closing": "up", "fast": "up", "narrow": "up"}
        assert time.monotonic() - begun < 1 and router.post("alpha").status == 200
    finally:
        engines["beta"].up()
    limit = time.monotonic() + 15
    while router.post("beta").status != 200 and time.monotonic() < limit:
        time.sleep(0.3)
    assert router.post("beta").status == 200


def empty_the_bucket(router: Router) -> None:
    """Carol's, to the last bit: 20 s until the next one, which is longer than what follows takes."""
    while (answer := router.post("alpha", CAROL)).status == 200 or int(answer.headers["retry-after"]) < 18:
        if answer.status == 429:
            time.sleep(int(answer.headers["retry-after"]))


def test_keys_change_while_streams_go_on(router: Router, engines: dict[str, Engine]) -> None:
    """A new key opens within seconds, one that was taken away opens no more, and what is counted goes on."""
    key = "sk-erin-of-this-test-0123456789"
    assert router.post("alpha", key).status == 401
    empty_the_bucket(router)
    connection = router.connect()
    connection.request("POST", CHAT, json.dumps(asked("alpha", 300)), bearer(ALICE))
    answer = connection.getresponse()
    answer.read(100)
    before = router.series()
    router.give([*(one for one in PEOPLE if one.name != "bob"), Key(name="erin", hash=hashed(key))])
    begun = time.monotonic()
    while router.post("alpha", key).status != 200:
        assert time.monotonic() - begun < 5, router.said()[-2000:]
        time.sleep(0.02)
    assert router.post("alpha", BOB).status == 401
    assert router.post("alpha", CAROL).status == 429, "her bucket is as empty as it was"
    assert b"[DONE]" in answer.read()
    connection.close()
    after = router.series()
    assert all(after[name] >= value for name, value in before.items() if "_total" in name)
    router.give(PEOPLE)
    while router.post("alpha", BOB).status != 200:
        assert time.monotonic() - begun < 20
        time.sleep(0.05)


def test_a_body_that_is_sent_in_chunks(router: Router, engines: dict[str, Engine]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", router.terms.port, timeout=20)
    pieces = [
        json.dumps(asked("alpha", 1))[start::1][:7].encode()
        for start in range(0, len(json.dumps(asked("alpha", 1))), 7)
    ]
    connection.request("POST", CHAT, iter(pieces), bearer(ALICE), encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()
    assert reached(engines) == {"alpha": 1}


def test_a_crowd_before_an_engine_that_closes_its_connections_is_answered(router: Router) -> None:
    """Of 200 at once at llama.cpp 8 to 37 were told that the queue is full: a kept connection closed under the next
    request, and more than three were to be asked again."""
    with ThreadPoolExecutor(100) as crowd:
        answers = list(crowd.map(lambda _: router.post("closing", tokens=2), range(200)))
    assert Counter(answer.status for answer in answers) == {200: 200}, {answer.body for answer in answers}
