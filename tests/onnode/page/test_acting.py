"""What the page does, and for whom: each way past the key, the origin and the token is refused and changes nothing."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sparkloom.inputs.client_keys import hashed
from sparkloom.onnode.page import acting, actions, groups
from sparkloom.onnode.page.server import Server
from tests.onnode.now import recorded
from tests.onnode.now.recorded import ALICES, AT, BOBS, BY, OSS, OWNERS, Recorded
from tests.onnode.page import front
from tests.until import until

HOST = "spark1.example.org"
ADD = {"name": "carol", "models": ["glm"], "days": 90}


@pytest.fixture
def server(site: Recorded) -> Iterator[Server]:
    with front.running(site) as running:
        yield running


def headers(key: str = ALICES, **more: str) -> dict[str, str]:
    told = {
        "host": HOST,
        "origin": f"https://{HOST}",
        "sec-fetch-site": "same-origin",
        "content-type": "application/json",
    }
    return {**told, **({"authorization": f"Bearer {key}"} if key else {}), **more}


def post(server: Server, name: str, given: Any, told: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """As Envoy sends it: names of headers in small letters, the client's own host."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    connection.putrequest("POST", f"{acting.PATH}{name}", skip_host=True, skip_accept_encoding=True)
    for header, value in {"content-length": str(len(body)), **told}.items():
        if value:
            connection.putheader(header, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text.startswith(b"{") else {"text": text.decode()}


def session(server: Server, key: str = ALICES) -> dict[str, str]:
    status, told = post(server, "session", {}, headers(key))
    assert status == 200, told
    return headers(key, **{"x-sparkloom-token": told["token"]})


def done(server: Server, name: str, given: dict[str, Any], key: str = ALICES) -> tuple[int, dict[str, Any]]:
    told = session(server, key)
    status, plan = post(server, name, given, told)
    assert status == 200 and set(plan) == {"will", "confirm"}, plan
    return post(server, name, {**given, "confirm": plan["confirm"]}, told)


def test_a_key_is_made_after_its_words_were_seen_and_shown_once(server: Server, site: Recorded) -> None:
    told = session(server)
    status, plan = post(server, "key-add", ADD, told)
    assert status == 200 and plan["will"].startswith("make a key of carol for glm, until 20") and site.changed == []
    status, made = post(server, "key-add", {**ADD, "confirm": plan["confirm"]}, told)
    assert status == 200 and made["key"].startswith("sk-") and "carol" in made["said"]
    (carol,) = [one for one in site.keys if one.name == "carol"]
    assert f"sha256:{carol.hash}" == hashed(made["key"])
    assert (carol.models, carol.by, carol.admin) == ("glm", "alice", 0) and carol.opens(carol.ends - 1)
    assert not carol.opens(carol.ends) and carol.ends % 86400 == 0
    (line,) = site.journal
    assert line.endswith(f" alice: {plan['will']}") and made["key"] not in json.dumps(site.maps)
    status, refused = post(server, "key-add", ADD, told)
    assert status == 409 and "'carol' has a key already" in refused["error"]["message"]


def test_a_key_that_may_administer_is_said_to(server: Server, site: Recorded) -> None:
    _, plan = post(server, "key-add", {"name": "dora", "admin": True}, session(server))
    assert plan["will"] == "make a key of dora for all models, without an end; it may administer this site"
    key = done(server, "key-add", {"name": "dora", "admin": True})[1]["key"]
    assert post(server, "session", {}, headers(key))[1]["person"] == "dora"


def test_one_is_revoked_and_who_made_it_there_or_wrote_it_in_the_file_differ(server: Server, site: Recorded) -> None:
    done(server, "key-add", ADD)
    assert done(server, "key-revoke", {"name": "carol"})[0] == 200
    assert "carol" not in {one.name for one in site.keys}
    _, plan = post(server, "key-revoke", {"name": "bob"}, session(server))
    assert "keys.yml has it, marked" in plan["will"]
    assert done(server, "key-revoke", {"name": "bob"})[0] == 200
    assert {one.name: one.taken for one in site.keys} == {"owner": "", "alice": "", "bob": "alice"}
    assert post(server, "session", {}, headers(BOBS))[0] == 401, "it opens nothing"
    for name, why in (("bob", "no key is called 'bob'"), ("nobody", "no key"), ("owner", "the site's own key")):
        status, told = post(server, "key-revoke", {"name": name}, session(server))
        assert status == 409 and why in told["error"]["message"]


@pytest.mark.parametrize(
    ("more", "status", "why"),
    [
        ({"authorization": ""}, 401, "no such key"),
        ({"authorization": "Bearer sk-wrong"}, 401, "no such key"),
        ({"authorization": f"Bearer {BOBS}"}, 403, "bob may not administer: `sparkloom keys add NAME --admin`"),
        ({"x-sparkloom-token": ""}, 403, "not from a session of this page"),
        ({"x-sparkloom-token": "0123456789abcdef." + "0" * 64}, 403, "not from a session of this page"),
        ({"x-sparkloom-token": "\xff"}, 403, "not from a session of this page"),
        ({"origin": "https://evil.example.org"}, 403, "not asked from the page itself"),
        ({"origin": f"https://{HOST}.evil.example.org"}, 403, "not asked from the page itself"),
        ({"origin": f"https://{HOST}:8443"}, 403, "not asked from the page itself"),
        ({"origin": "null"}, 403, "not asked from the page itself"),
        ({"origin": ""}, 403, "not asked from the page itself"),
        ({"sec-fetch-site": "cross-site"}, 403, "not asked from the page itself"),
        ({"sec-fetch-site": "same-site"}, 403, "not asked from the page itself"),
        ({"sec-fetch-site": "none"}, 403, "not asked from the page itself"),
    ],
)
def test_who_is_not_the_page_with_a_key_that_may_changes_nothing(
    server: Server, site: Recorded, more: dict[str, str], status: int, why: str
) -> None:
    told = session(server)
    _, plan = post(server, "key-add", ADD, told)
    before = json.dumps([site.secret, site.maps])
    for name in ("key-add", "key-revoke", "log", "usage", "keys", "stop", "start"):
        found, refused = post(server, name, {**ADD, "confirm": plan["confirm"], "group": "glm"}, {**told, **more})
        assert found == status and why in refused["error"]["message"], name
    assert json.dumps([site.secret, site.maps]) == before and site.changed == []


def test_a_token_is_of_one_key_and_of_one_process(server: Server, site: Recorded) -> None:
    owners = session(server, OWNERS)
    stolen = {**session(server), "x-sparkloom-token": owners["x-sparkloom-token"]}
    assert post(server, "keys", {}, owners)[0] == 200 and post(server, "keys", {}, stolen)[0] == 403
    with front.running(site) as other:
        assert post(other, "keys", {}, owners)[0] == 403


def test_a_word_confirms_only_what_was_shown(server: Server, site: Recorded) -> None:
    told = session(server)
    word = post(server, "key-add", ADD, told)[1]["confirm"]
    for other in ({**ADD, "admin": True}, {**ADD, "models": []}, {**ADD, "name": "mallory"}):
        assert "will" in post(server, "key-add", {**other, "confirm": word}, told)[1]
    assert "will" in post(server, "key-add", {**ADD, "confirm": word}, session(server, OWNERS))[1]
    assert "will" in post(server, "key-revoke", {"name": "bob", "confirm": word}, told)[1]
    assert site.changed == []


def test_an_action_says_what_it_will_do_now(server: Server, site: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is true of one that stops or starts a group: the plan of the second request is the plan that was seen."""
    ran: list[str] = []
    state = ["stops glm on spark1"]

    def does(where: Any, given: Any, person: str) -> dict[str, Any]:
        ran.append(f"{person} {given['group']}")
        return {"said": "stopped"}

    monkeypatch.setitem(actions.ACTIONS, "stop", actions.Action(lambda where, given: state[0], does, of_group=True))
    assert post(server, "session", {}, headers())[1]["of_group"] == ["stop", "start"]
    told = session(server)
    word = post(server, "stop", {"group": "glm"}, told)[1]["confirm"]
    state[0] = "stops glm on spark1 and spark2"
    status, again = post(server, "stop", {"group": "glm", "confirm": word}, told)
    assert status == 200 and again["will"] == state[0] and ran == []
    assert post(server, "stop", {"group": "glm", "confirm": again["confirm"]}, told)[1] == {"said": "stopped"}
    assert ran == ["alice glm"] and site.journal[-1].endswith("alice: stops glm on spark1 and spark2")


def scaled(site: Recorded) -> dict[str, int]:
    return {one["metadata"]["name"]: one["spec"]["replicas"] for one in site.sets}


def pods(site: Recorded) -> set[str]:
    return {pod["metadata"]["name"] for pod in site.pods}


def test_a_group_is_stopped_and_started_as_a_command_line_does(server: Server, site: Recorded) -> None:
    """By the rights that the page has: none to change what a set is made of."""
    _, plan = post(server, "stop", {"group": "glm"}, session(server))
    assert plan["will"].startswith("stop glm on spark1, spark2 (98.35 GiB of each): requests that run have 40 s to end")
    assert "hears 503 until somebody starts it" in plan["will"] and site.changed == []
    assert done(server, "stop", {"group": "glm"})[0] == 200
    assert scaled(site) == {"glm-rank0": 0, "glm-rank1": 0, f"{OSS}-rank0": 1, "chat-rank0": 1}
    by = site.maps["stopped"]["data"]["glm"]
    assert by.startswith("alice on the page, ") and site.journal[-1].endswith(f" alice: {plan['will']}")
    until(lambda: not [pod for pod in site.pods if pod["metadata"]["name"].startswith("glm")], 30)
    status, refused = post(server, "stop", {"group": "glm"}, session(server))
    assert status == 409 and refused["error"]["message"] == f"glm is stopped already, by {by}"
    _, plan = post(server, "start", {"group": "glm"}, session(server))
    assert plan["will"] == "start glm on spark1, spark2 (98.35 GiB of each)"
    assert done(server, "start", {"group": "glm"})[0] == 200
    assert set(scaled(site).values()) == {1} and site.maps["stopped"]["data"] == {"glm": ""}
    api = "/api/v1/namespaces/sparkloom/configmaps"
    sets = [f"/apis/apps/v1/namespaces/sparkloom/statefulsets/glm-rank{rank}/scale" for rank in (0, 1)]
    assert site.changed == [f"{api}/page-journal", f"{api}/stopped", *sets] * 2


def test_one_on_demand_sleeps_when_it_is_started(server: Server, site: Recorded) -> None:
    recorded.one_is_stopped(site)
    _, plan = post(server, "start", {"group": "chat"}, session(server))
    assert plan["will"] == "start chat: it sleeps until a request wakes it"
    done(server, "start", {"group": "chat"})
    assert scaled(site)["chat-rank0"] == 0 and site.maps["stopped"]["data"] == {"chat": ""}


def test_one_starts_in_anothers_place_when_that_is_gone(
    server: Server, site: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never both on one Spark: each engine reads what is free there when it begins."""
    monkeypatch.setattr(groups, "EVERY", 0.05)
    recorded.one_place(site)
    _, plan = post(server, "start", {"group": "chat"}, session(server))
    assert plan["will"].startswith(f"stop {OSS}, as spark4 does not hold both: requests that run have 40 s to end")
    assert plan["will"].endswith("; then start chat on spark4 (51.07 GiB)")
    assert done(server, "start", {"group": "chat"})[1]["said"] == f"chat starts once {OSS} is gone."
    assert (scaled(site)[f"{OSS}-rank0"], scaled(site)["chat-rank0"]) == (0, 0)
    until(lambda: scaled(site)["chat-rank0"] == 1 and "chat-rank0-0" in pods(site), 30)
    assert f"{OSS}-rank0-0" not in pods(site)
    assert site.maps["stopped"]["data"]["chat"] == "" and site.maps["stopped"]["data"][OSS].startswith("alice on the")


def test_what_does_not_end_is_said_in_the_journal(
    server: Server, site: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "EVERY", 0.01)
    monkeypatch.setattr(groups, "TRIES", 3)
    recorded.one_place(site)
    site.ends = 60
    done(server, "start", {"group": "chat"})
    until(lambda: site.journal[-1].endswith("alice: chat was not started: what is in its place did not end"), 30)
    assert scaled(site)["chat-rank0"] == 0


def test_what_cannot_be_stopped_or_started_says_why(server: Server, site: Recorded) -> None:
    recorded.stop(site, "chat")

    def refused(name: str, group: Any) -> str:
        status, told = post(server, name, {"group": group}, session(server))
        assert status == 409 and site.changed == []
        return str(told["error"]["message"])

    for group in ("router", "", 7, None, ["glm"]):
        assert "no group is set up here as" in refused("stop", group)
    assert refused("stop", "chat") == f"chat is stopped already, by {BY}" and "glm is not stopped" in refused(
        "start", "glm"
    )
    site.nodes[3]["status"]["conditions"][0]["status"] = "False"
    assert refused("start", "chat").startswith("chat cannot start: its node spark4 is not Ready")
    notes = {"sparkloom/state": "runs", "sparkloom/command": "ansible-playbook site.yml"}
    site.leases = [
        {"metadata": {"name": "sparkloom-fleet", "annotations": notes}, "spec": {"holderIdentity": "bob@desk"}}
    ]
    for name in ("stop", "start"):
        assert "one operation at a time: ansible-playbook site.yml of bob@desk" in refused(name, "glm")


def test_what_cannot_be_written_down_is_not_done(server: Server, site: Recorded) -> None:
    told = session(server)
    word = post(server, "key-add", ADD, told)[1]["confirm"]
    del site.maps["page-journal"]["metadata"]
    site.change = lambda *words, **more: (_ for _ in ()).throw(  # type: ignore[method-assign]
        recorded.Refused(409, "the cluster's API answered 409 Conflict")
    )
    status, refused = post(server, "key-add", {**ADD, "confirm": word}, told)
    assert status == 503 and "409 Conflict" in refused["error"]["message"]
    assert "carol" not in {one.name for one in site.keys}


@pytest.mark.parametrize(
    "given",
    [
        {"name": "Carol"}, {"name": "carol\n"}, {"name": "a b"}, {"name": "carol\nffff name=mallory admin=1"},
        {"name": 7}, {"name": ""}, {}, {"name": "carol", "models": "glm"}, {"name": "carol", "models": ["a b"]},
        {"name": "carol", "models": ["glm\n"]}, {"name": "carol", "models": [7, "x=1 admin=1"]},
        {"name": "carol", "days": -1}, {"name": "carol", "days": 99999}, {"name": "carol", "days": "90"},
    ],
)  # fmt: skip
def test_a_key_that_cannot_be_is_refused_in_words(server: Server, site: Recorded, given: dict[str, Any]) -> None:
    status, told = post(server, "key-add", given, session(server))
    assert (
        status == 409 and told["error"]["message"].split(" ")[1] in ("name", "are", "expected") and site.changed == []
    )


@pytest.mark.parametrize("body", [b"", b"[]", b"[" * 4096, b"7", b"{", b"\xff", b'"x"', b"name=carol&admin=true"])
def test_a_body_that_is_no_object_is_refused(server: Server, site: Recorded, body: bytes) -> None:
    assert post(server, "key-add", body, session(server))[0] == 400 and site.changed == []


def test_a_body_that_is_too_long_or_of_no_length_is_not_read(server: Server) -> None:
    assert post(server, "key-add", b"x" * 4097, session(server))[0] == 413
    assert post(server, "key-add", b"", {**session(server), "content-length": ""})[0] == 413
    assert post(server, "key-add", b"", {**session(server), "transfer-encoding": "chunked"})[0] == 413


def test_a_log_is_text_without_what_a_terminal_obeys_and_of_a_rank_alone(server: Server, site: Recorded) -> None:
    site.logs = {"glm-rank0-0": "\x1b[32mINFO\x1b[0m ready\n\n\x1b]0;taken\x07<img src=x>\x00\u202e\n"}
    status, told = post(server, "log", {"pod": "glm-rank0-0"}, session(server))
    assert (status, told["lines"]) == (200, ["INFO ready", "<img src=x>\\u0000\\u202e"])
    site.route(0)
    for other in ("router-1", "../secrets/x", "", 7, None):
        status, told = post(server, "log", {"pod": other}, session(server))
        assert status == 409 and "no rank's pod is called" in told["error"]["message"]


USED = """\
sparkloom_router_requests_total{person="bob",model="glm",status="200"} 9
sparkloom_router_completion_tokens_total{person="bob",model="glm"} 140
"""


def test_usage_is_what_was_noted_and_what_came_since(server: Server, site: Recorded) -> None:
    site.route(0)
    site.used = USED
    seen = {"containerd://1": {'sparkloom_router_requests_total{person="bob",model="glm",status="200"}': 4}}
    row = {"requests": 4, "refused": 1, "prompt_tokens": 30, "completion_tokens": 50}
    kept = {"days": {"2020-01-01": {"bob glm": row}, "2099-01-01": {"bob glm": row}}, "seen": seen}
    meta = {"name": "router-usage", "labels": {}}
    site.maps["router-usage"] = {"metadata": meta, "data": {"usage.json": json.dumps(kept)}}
    _, told = post(server, "usage", {}, session(server))
    assert told["rows"] == [{"person": "bob", "model": "glm", "requests": 9, "refused": 1, "prompt_tokens": 30,
                             "completion_tokens": 190}]  # fmt: skip
    assert site.changed == [], "the controller notes"


def test_keys_are_listed_without_their_hashes(server: Server, site: Recorded) -> None:
    _, told = post(server, "keys", {}, session(server))
    assert [one["name"] for one in told["keys"]] == ["alice", "bob", "owner"] and told["journal"] == []
    assert not any(one.hash in json.dumps(told) for one in site.keys)


def test_a_key_that_ended_may_nothing(server: Server, site: Recorded) -> None:
    site.keys = [one._replace(ends=int(AT) - 1) if one.name == "alice" else one for one in site.keys]
    assert post(server, "session", {}, headers())[0] == 401


def test_a_cluster_that_does_not_answer_is_said(server: Server, site: Recorded) -> None:
    site.away = "the cluster's API does not answer: timed out"
    status, told = post(server, "session", {}, headers())
    assert (status, told["error"]["message"]) == (503, site.away)
