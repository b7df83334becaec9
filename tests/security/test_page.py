"""What the page does, attacked through the real router: the key, the origin and the token, each alone and forged."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from sparkloom.inputs.client_keys import Key, hashed
from tests.onnode.now import recorded
from tests.onnode.now.recorded import ALICES, BOBS, Recorded
from tests.onnode.page import front
from tests.render.router.running import Answer, Router, running
from tests.until import until

pytestmark = pytest.mark.oracle
ACT = "/page/act/"
BOB = json.dumps({"name": "bob"})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory, site: Recorded) -> Iterator[Router]:
    people = [Key(name=name, hash=hashed(key), admin=admin) for key, name, admin in recorded.PEOPLE]
    with front.running(site) as page:
        where = {"page": f"127.0.0.1:{page.server_address[1]}"}
        with running(tmp_path_factory.mktemp("router"), {}, people, terms=where) as made:
            until(lambda: _there(made), 60)
            yield made


def _there(router: Router) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return router.get("/", "").status == 200
    return False


def post(router: Router, name: str, key: str = ALICES, body: str = "{}", **more: str) -> Answer:
    own = {"Origin": f"http://127.0.0.1:{router.terms.port}", "Sec-Fetch-Site": "same-origin"}
    told = {**own, **{header.replace("_", "-"): value for header, value in more.items()}}
    return router.ask("POST", ACT + name, key, body, {name: value for name, value in told.items() if value})


def token(router: Router, key: str = ALICES) -> str:
    answer = post(router, "session", key)
    assert answer.status == 200, answer.body
    return str(answer.json["token"])


def test_the_page_itself_may(router: Router, site: Recorded) -> None:
    """The client's own host comes through the router, or no page could act."""
    answer = post(router, "key-revoke", body=BOB, X_Sparkloom_Token=token(router))
    assert answer.status == 200 and answer.json["will"].startswith("revoke the key of bob") and site.changed == []


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"key": ""}, 401), ({"key": "sk-wrong"}, 401), ({"key": BOBS}, 403),
        ({"X_Sparkloom_Token": ""}, 403), ({"X_Sparkloom_Token": "a." + "0" * 64}, 403),
        ({"Origin": "https://evil.example.org"}, 403), ({"Origin": ""}, 403), ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403), ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Host": "evil.example.org"}, 403),
        ({"X_Forwarded_Host": "evil.example.org", "Origin": "https://evil.example.org"}, 403),
    ],
)  # fmt: skip
def test_what_lacks_one_of_them_changes_nothing(
    router: Router, site: Recorded, more: dict[str, str], status: int
) -> None:
    own: dict[str, Any] = {"X_Sparkloom_Token": token(router)}
    confirm = post(router, "key-revoke", body=BOB, **own).json["confirm"]
    body = json.dumps({"name": "bob", "confirm": confirm})
    answer = post(router, "key-revoke", body=body, **{**own, **more})
    assert answer.status == status and answer.json["error"]["message"], answer.body
    assert site.changed == [] and {one.taken for one in site.keys} == {""}


@pytest.mark.parametrize("name", ["stop", "start"])
@pytest.mark.parametrize(
    "more", [{"X_Sparkloom_Token": ""}, {"Origin": "https://evil.example.org"}, {"key": BOBS}, {"key": ""}]
)
def test_no_group_stops_or_starts_for_another(router: Router, site: Recorded, name: str, more: dict[str, str]) -> None:
    if name == "start":
        recorded.stop(site, "chat")
    own: dict[str, Any] = {"X_Sparkloom_Token": token(router)}
    group = "chat" if name == "start" else "glm"
    plan = post(router, name, body=json.dumps({"group": group}), **own)
    assert plan.status == 200 and plan.json["will"].startswith(name), plan.body
    body = json.dumps({"group": group, "confirm": plan.json["confirm"]})
    assert post(router, name, body=body, **{**own, **more}).status in (401, 403) and site.changed == []


def test_a_preflight_of_another_origin_is_answered_with_nothing(router: Router, site: Recorded) -> None:
    asked = {"Origin": "https://evil.example.org", "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "authorization,x-sparkloom-token"}  # fmt: skip
    answer = router.ask("OPTIONS", f"{ACT}key-revoke", "", headers=asked)
    assert answer.status in (401, 404) and not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("path", ["key-revoke/", "key-revoke/x", "KEY-REVOKE", "..%2fact%2fkey-revoke", "."])
def test_another_spelling_of_it_leads_nowhere(router: Router, site: Recorded, path: str) -> None:
    answer = post(router, path, body=BOB, X_Sparkloom_Token=token(router))
    assert answer.status in (307, 400, 404) and site.changed == []


def test_two_requests_in_one_are_one(router: Router, site: Recorded) -> None:
    """A second request in the body of the first is a body."""
    inside = f"POST {ACT}key-revoke HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}"
    assert post(router, "session", body=inside).status == 400 and site.changed == []
