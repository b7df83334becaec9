"""Who may have the page do something: a key that may administer, asked from the page itself, in a session."""

# A browser sends a key to nobody by itself, since no cookie has one. Origin and token are asked for all the same:
# neither another site's script nor a form can act, whatever a browser or a proxy adds to its requests.

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from sparkloom.base.errors import InputError
from sparkloom.onnode.key_table import Entry, NotChanged, digest
from sparkloom.onnode.kube import Unreached
from sparkloom.onnode.page.actions import ACTIONS, LOOKS
from sparkloom.onnode.page.site import Site

PATH = "/page/act/"
SESSION = "session"  # asked for first: whether the key may, and for a token
TOKEN = "X-Sparkloom-Token"
LONGEST = 4096  # bytes of a body


class Denied(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class Desk:
    """`secret`: of this process; its tokens and words are nobody's after it."""

    site: Site
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        """What came of it; or that nothing was done, and why."""
        try:
            return HTTPStatus.OK, self._done(path.removeprefix(PATH), headers, body)
        except Denied as denied:
            status, why = denied.status, str(denied)
        except (NotChanged, InputError) as refused:
            status, why = HTTPStatus.CONFLICT, str(refused)
        except Unreached as error:
            status, why = HTTPStatus.SERVICE_UNAVAILABLE, str(error)
        return status, {"error": {"message": why, "code": status.name.lower()}}

    def _done(self, name: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
        _from_the_page(headers)
        person = self._administrator(headers.get("Authorization", ""))
        given = _object(body)
        if name == SESSION:
            offered = [action for action, told in ACTIONS.items() if told.of_group]
            return {"token": self._token(secrets.token_hex(8), person), "person": person.name, "of_group": offered}
        token = headers.get(TOKEN, "")
        if not hmac.compare_digest(token.encode(), self._token(token.partition(".")[0], person).encode()):
            raise Denied(HTTPStatus.FORBIDDEN, "this is not from a session of this page; load it again")
        if name in LOOKS:
            return LOOKS[name](self.site, given)
        if name not in ACTIONS:
            raise Denied(HTTPStatus.NOT_FOUND, "the page does no such thing")
        return self._acted(name, given, person)

    def _acted(self, name: str, given: dict[str, Any], person: Entry) -> dict[str, Any]:
        """The first time what will happen, and a word; with that word, and while the same would happen, it is done."""
        confirm = str(given.pop("confirm", ""))
        will = ACTIONS[name].says(self.site, given)
        word = self._signed("confirm", person.hash, name, json.dumps(given, sort_keys=True), will)[:16]
        if not hmac.compare_digest(confirm.encode(), word.encode()):
            return {"will": will, "confirm": word}
        self.site.note(person.name, will)
        return ACTIONS[name].does(self.site, given, person.name)

    def _administrator(self, authorization: str) -> Entry:
        """The one place that asks for the right."""
        hashed, now = digest(authorization.partition(" ")[2].strip()), self.site.clock()
        found = next((one for one in self.site.read_keys() if one.hash == hashed and one.opens(now)), None)
        if found is None:
            raise Denied(HTTPStatus.UNAUTHORIZED, "no such key")
        if not found.administers(now):
            raise Denied(HTTPStatus.FORBIDDEN, f"{found.name} may not administer: `sparkloom keys add NAME --admin`")
        return found

    def _token(self, nonce: str, person: Entry) -> str:
        return f"{nonce}.{self._signed('token', nonce, person.hash)}"

    def _signed(self, *words: str) -> str:
        return hmac.new(self.secret, json.dumps(words).encode(), hashlib.sha256).hexdigest()


def _from_the_page(headers: Mapping[str, str]) -> None:
    """By what a browser says and no script can change; whoever says nothing of it shows no page."""
    mine = headers.get("Origin") in [f"{scheme}://{headers.get('Host')}" for scheme in ("https", "http")]
    if not mine or headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise Denied(HTTPStatus.FORBIDDEN, "this was not asked from the page itself")


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise Denied(HTTPStatus.BAD_REQUEST, "expected an object of JSON")
    return given
