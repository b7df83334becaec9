"""What a router does, each asked of the running program: yes, no, or how far."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
import urllib.request
from collections.abc import Callable

from router_rig import BOB, CAROL, CHAT, DAVE, ERIN, Rig, asked
from router_speed import TEXT

Probe = Callable[[Rig], str]
YES, NO = "yes", "no"


def verdict(good: bool, why: object = "") -> str:
    return YES if good else f"{NO}: {why}" if why != "" else NO


def _reached(rig: Rig, model: str) -> int:
    return len(rig.engines[model].truth())


def _clear(rig: Rig) -> None:
    for engine in rig.engines.values():
        with contextlib.suppress(OSError):
            engine.truth()


def routes_by_body(rig: Rig) -> str:
    _clear(rig)
    statuses = []
    for model in ("alpha", "beta"):
        connection = http.client.HTTPConnection("127.0.0.1", rig.site.port, timeout=20)
        head = {name: value for name, value in rig.head("").items() if name != "X-Model"}
        connection.request("POST", CHAT, asked(model, 1), head)
        answer = connection.getresponse()
        statuses.append(answer.status)
        answer.read()
        connection.close()
    counts = (_reached(rig, "alpha"), _reached(rig, "beta"))
    return verdict(counts == (1, 1), f"{statuses}, reached {counts}")


def megabytes(rig: Rig) -> str:
    """The model's name behind the text; the largest that passes of 1 and 8 MiB."""
    passed = 0
    for size in (1, 8):
        text = 'word "and" \\ ' * (size * (1 << 20) // 13)
        begun = time.monotonic()
        with contextlib.suppress(OSError, http.client.HTTPException):
            status, _, body = rig.ask("beta", body=asked("beta", 1, text, last=True))
            if status == 200 and b"[DONE]" in body:
                passed, took = size, time.monotonic() - begun
    return f"{YES}: {passed} MiB, {1000 * (took - 0.2):.0f} ms" if passed else NO


def streams(rig: Rig) -> str:
    """The first text is here while most is still to come, and never more than a few tokens at a time."""
    connection, answer = rig.open("alpha", tokens=40)
    stamps, begun = [], time.monotonic()
    while chunk := answer.read1(65536):
        stamps += [time.monotonic() - begun] * len(TEXT.findall(chunk))
    connection.close()
    spread = stamps[-1] - stamps[0] if len(stamps) == 40 else 0
    return verdict(len(stamps) == 40 and spread > 0.5, f"{len(stamps)} events within {spread:.2f} s")


def client_leaves(rig: Rig) -> str:
    """How long until the engine knows, in a stream and while it has said nothing yet."""
    _clear(rig)
    took = []
    for model, wait in (("alpha", 0.4), ("narrow", 0.3)):
        connection = http.client.HTTPConnection("127.0.0.1", rig.site.port, timeout=20)
        connection.request("POST", CHAT, asked(model, 2000), rig.head(model))
        time.sleep(wait)
        left = time.monotonic()
        assert connection.sock
        connection.sock.close()
        connection.close()
        time.sleep(0.6)
        told = [one for one in rig.engines[model].truth() if one.get("why") == "client left"]
        took.append(told[0]["end"] - left if told else None)
    return verdict(None not in took, f"{took}") if None in took else f"{YES}: {max(took) * 1000:.0f} ms"  # type: ignore[type-var,operator]


def health_by_model(rig: Rig) -> str:
    """One model's engine dies: told at once with Retry-After, the other one serves; it comes back and is found."""
    engine = rig.engines["beta"]
    engine.down()
    try:
        time.sleep(0.2)
        first = _timed(rig, "beta")
        time.sleep(12)
        later, other = _timed(rig, "beta"), rig.ask("alpha", tokens=1)[0]
    finally:
        engine.up()
    begun = time.monotonic()
    back = rig.ready("beta", 30)
    told = (
        f"{first[0]} in {first[1]:.1f} s, then {later[0]} in {later[1]:.2f} s, {'' if later[2] else 'no '}Retry-After"
    )
    good = later[0] in (429, 503) and later[1] < 2 and bool(later[2]) and other == 200 and back
    return f"{verdict(good)} ({told}; {'back' if back else 'not back'} after {time.monotonic() - begun:.0f} s)"


def _timed(rig: Rig, model: str) -> tuple[int, float, str]:
    begun = time.monotonic()
    try:
        status, headers, _ = rig.ask(model, tokens=1)
    except (OSError, http.client.HTTPException):
        status, headers = 0, {}
    return status, time.monotonic() - begun, headers.get("retry-after", "")


def again_before_the_first_byte(rig: Rig) -> str:
    """A connection that the engine closed meanwhile costs no request; what broke in its answer is not asked twice."""
    failed = 0
    for number in range(24):
        time.sleep(0.17 + 0.004 * number)  # beta closes what idles for 0.2 s
        status, _, body = rig.ask("beta", tokens=1)
        failed += status != 200 or b"[DONE]" not in body
    _clear(rig)
    with contextlib.suppress(OSError, http.client.HTTPException):
        rig.ask("fragile", tokens=9)
    time.sleep(0.5)
    asked_for = _reached(rig, "fragile")
    return verdict(
        not failed and asked_for == 1, f"{failed} of 24 failed, a broken answer was asked for {asked_for} times"
    )


def bounded_queue(rig: Rig) -> str:
    """Two at the engine, two wait, the others are told so at once, and when to come again."""
    rig.ask("narrow", tokens=1)
    said: list[tuple[int, float, str]] = []
    asking = [threading.Thread(target=lambda: said.append(_timed(rig, "narrow"))) for _ in range(8)]
    for thread in asking:
        thread.start()
        time.sleep(0.02)
    for thread in asking:
        thread.join(30)
    good = sum(status == 200 for status, _, _ in said)
    told = [one for one in said if one[0] in (429, 503)]
    fine = good == 4 and len(told) == 4 and all(seconds < 2 for _, seconds, _ in told)
    word = "with" if told and all(wait for _, _, wait in told) else "without"
    return (
        f"{verdict(fine, sorted(status for status, _, _ in said))}, {word} Retry-After"
        if told
        else verdict(False, "all pass")
    )


def prometheus(rig: Rig) -> str:
    try:
        page = urllib.request.urlopen(rig.candidate.metrics(rig.site), timeout=10).read().decode()
    except OSError as error:
        return verdict(False, error)
    families = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    return verdict(bool(families), "no family") if not families else f"{YES}: {len(families)} families"


def keys_open(rig: Rig) -> str:
    """No key, a wrong one, one for another model."""
    wrong = (rig.get("/v1/models", None)[0], rig.ask("alpha", ERIN, 1)[0])
    right, other = rig.ask("alpha", BOB, 1)[0], rig.ask("beta", BOB, 1)[0]
    return verdict(wrong == (401, 401) and right == 200 and other in (403, 404), f"{wrong}, {right}, {other}")


def requests_a_minute(rig: Rig) -> str:
    said = [rig.ask("alpha", CAROL, 1) for _ in range(5)]
    statuses = [status for status, _, _ in said]
    wait = said[-1][1].get("retry-after")
    return verdict(statuses == [200, 200, 200, 429, 429] and bool(wait), f"{statuses}, Retry-After {wait}")


def tokens_a_minute(rig: Rig) -> str:
    statuses = [rig.ask("alpha", DAVE, 12)[0] for _ in range(3)]
    return verdict(statuses == [200, 429, 429], statuses)


def a_new_key(rig: Rig) -> str:
    """Seconds until it opens, while a stream of another person goes on."""
    if not rig.candidate.people:
        return NO
    connection, answer = rig.open("alpha", tokens=300)
    rig.people(ERIN)
    begun = time.monotonic()
    while rig.ask("alpha", ERIN, 1)[0] != 200 and time.monotonic() - begun < 15:
        time.sleep(0.05)
    took = time.monotonic() - begun
    whole = b"[DONE]" in answer.read()
    connection.close()
    return (
        verdict(took < 15 and whole, f"{took:.1f} s, stream {'whole' if whole else 'cut'}")
        if not whole or took >= 15
        else f"{YES}: {took:.1f} s"
    )


def own_keys(rig: Rig) -> str:
    """The engines here take no key but their own."""
    good = all(rig.ask(model, tokens=1)[0] == 200 for model in ("alpha", "beta"))
    return verdict(good) + (", where clients bring none" if good and rig.candidate.passes else "")


def usage(rig: Rig) -> str:
    """A series that says who used how many tokens of which model."""
    try:
        page = urllib.request.urlopen(rig.candidate.metrics(rig.site), timeout=10).read().decode()
    except OSError:
        return NO
    lines = [line for line in page.splitlines() if "token" in line and "alpha" in line and not line.startswith("#")]
    return verdict(any("alice" in line for line in lines), "no person" if lines else "no tokens")


def one_list(rig: Rig) -> str:
    status, body = rig.get("/v1/models")
    with contextlib.suppress(ValueError, KeyError, TypeError):
        names = {model["id"] for model in json.loads(body)["data"]}
        return verdict(status == 200 and {"alpha", "beta"} <= names, names)
    return verdict(False, status)


def unknown_model(rig: Rig) -> str:
    status, _, body = rig.ask("nobody", tokens=1)
    return verdict(status == 404, status) + (", with the list" if b"alpha" in body else "")


PROBES: dict[str, Probe] = {
    "routed by the body's model": routes_by_body,
    "model behind a long text": megabytes,
    "streams": streams,
    "client leaves, engine knows": client_leaves,
    "again before the first byte only": again_before_the_first_byte,
    "queue with a bound": bounded_queue,
    "one list of models": one_list,
    "unknown model": unknown_model,
    "engines' own keys": own_keys,
    "people's keys, by hash": keys_open,
    "requests a minute": requests_a_minute,
    "tokens a minute": tokens_a_minute,
    "a new key, no restart": a_new_key,
    "Prometheus": prometheus,
    "tokens per person and model": usage,
    "health by model": health_by_model,
}
NEEDS_PEOPLE = (keys_open, requests_a_minute, tokens_a_minute, a_new_key)


def all_of(rig: Rig) -> dict[str, str]:
    found = {}
    for name, probe in PROBES.items():
        if probe in NEEDS_PEOPLE and not rig.candidate.auth:
            found[name] = NO
            continue
        try:
            found[name] = probe(rig)
        except Exception as error:
            found[name] = f"{NO}: {type(error).__name__} {str(error)[:80]}"
    return found
