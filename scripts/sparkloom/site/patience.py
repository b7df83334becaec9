"""The cluster's API, asked again where the answer is of the moment, and what it said at last in one line.

A server that has just started answers 403 until its own rules are read, or refuses the connection; both pass within
seconds. By these rules whoever logs in may ask whether it is ready: 403 to that too is a server that starts, and no
kubeconfig's fault. What was sent and lost on the way is asked again only where asking twice does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from sparkloom.base.errors import InputError

SECONDS = 12.0  # a person who waits for `status` should not wait longer to hear that the cluster is away
STARTS = 60.0  # of a server that has not read its own rules yet
RESTARTS = 180.0  # for a run that is under way: its server restarts, or its disk is busy with weights
CONNECTS, ANSWERS = 4.0, 30.0  # for a machine that is off, and for a server that says nothing
FIRST, LONGEST = 0.5, 3.0  # pauses
PASSING = frozenset({403, 429, 500, 502, 503, 504})  # 403: of a server whose rules are not read yet
HARMLESS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"})  # ours apply or merge: twice is once

Answer = TypeVar("Answer")
Say = Callable[[str], object]


def api_client(kubeconfig: str, seconds: float = SECONDS, say: Say | None = None) -> Any:
    """A client of the Kubernetes library that asks with patience; `configuration.retries = False` takes it away."""
    from kubernetes import client, config

    class Patient(client.ApiClient):  # type: ignore[misc]
        def request(self, method: str, url: str, *words: Any, **options: Any) -> Any:
            once = super().request
            follows = ("follow", True) in (options.get("query_params") or ())  # a log, which may say nothing for hours
            options["_request_timeout"] = _bounds(options.get("_request_timeout"), None if follows else ANSWERS)
            if self.configuration.retries is False:
                return once(method, url, *words, **options)
            asked = {"headers": options.get("headers"), "_request_timeout": (CONNECTS, CONNECTS)}
            ready = partial(once, "GET", f"{self.configuration.host}/readyz", **asked)
            return patiently(
                lambda: once(method, url, *words, **options), method, seconds=seconds, ready=ready, say=say
            )

    configuration = type.__call__(client.Configuration)
    configuration.retries = 0  # who asks again is `patiently`
    config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
    return Patient(configuration=configuration)


def _bounds(given: Any, usual: float | None) -> Any:
    """To connect and to read: the library waits without end for seconds that are no whole number."""
    return given if isinstance(given, tuple) else (min(CONNECTS, given or CONNECTS), given or usual)


def patiently(
    ask: Callable[[], Answer],
    method: str = "GET",
    *,
    seconds: float = SECONDS,
    ready: Callable[[], object] | None = None,
    say: Say | None = None,
) -> Answer:
    """The answer, or the last refusal once it has been the same for so long; `ready` is refused by one that starts.
    Who waits for longer than usual is told why."""
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    began, pause = time.monotonic(), FIRST
    while True:
        try:
            return ask()
        except (ApiException, HTTPError) as error:
            starting = ready is not None and _refused(error) and _refused(_error(ready))
            limit = max(STARTS, seconds) if starting else min(SECONDS, seconds) if _refused(error) else seconds
            if time.monotonic() + pause > began + limit or not passing(error, method):
                raise (ApiException(503, NOT_YET) if starting else error) from None
            if say and time.monotonic() + pause > began + SECONDS:
                say(f"{trouble(error)} (asked again for {limit:.0f} s)")
                say = None
        time.sleep(pause)
        pause = min(pause * 2, LONGEST)


def _error(ask: Callable[[], object]) -> Exception | None:
    try:
        ask()
    except Exception as error:  # whatever it is
        return error
    return None


def _refused(error: Exception | None) -> bool:
    return getattr(error, "status", 0) == 403


def until_gone(what: str, left: Callable[[], Sequence[str]], say: Say, seconds: float) -> None:
    """Until nothing is left; a line for every change."""
    until, last = time.monotonic() + seconds, ""
    while rest := left():
        if (now := f"{what}: {', '.join(rest)}") != last:
            say(f"waiting for the end of {now}")
            last = now
        if time.monotonic() > until:
            found = f"found {', '.join(rest)} after {seconds:.0f} s, expected none"
            cure = "kubectl describe says what holds it. Do not delete it by force"
            harm = "its virtual functions would stay in a dead namespace"
            raise InputError.single(what, f"{found}; {cure}, {harm}", rule="still-there")
        time.sleep(1)


def passing(error: Exception, method: str) -> bool:
    """Whether the same question may get another answer, and may be asked twice."""
    from kubernetes.client import ApiException
    from urllib3.exceptions import MaxRetryError, NewConnectionError

    if isinstance(error, ApiException):
        return error.status in PASSING and (error.status in (403, 429, 503) or method in HARMLESS)
    cause = error.reason if isinstance(error, MaxRetryError) else error
    return method in HARMLESS or isinstance(cause, NewConnectionError)


def here() -> str:
    return f"it is {datetime.now(UTC):%Y-%m-%d %H:%M} UTC here"


def trouble(error: BaseException) -> str:
    """What the cluster's API said, in one line, with what to look at; empty when the error is none of the API's."""
    import sys

    if "kubernetes" not in sys.modules:  # nobody asked a cluster
        return ""
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    if isinstance(error, ApiException):
        said = f"the cluster's API answers {error.status} {error.reason}"
        if error.status == 401:
            return f"{said}: the kubeconfig's credentials are not this cluster's; {COPY}"
        if error.status == 403:
            return f"{said}: {_why(error)}; the kubeconfig must be an administrator's ({COPY})"
        return f"{said}: {_why(error)}"
    if isinstance(error, HTTPError):
        reason = getattr(error, "reason", None) or error
        words = str(reason).split(">: ")[-1].split("Error('")[-1].removesuffix("')") or type(error).__name__
        cure = "is its first server up, and its address in the kubeconfig right?"
        if getattr(next(iter(reason.args), None), "verify_code", 0) in OUT_OF_TIME:
            cure = f"{here()}: is that so, and on its server (`timedatectl`)? {RENEWS}"
        return f"the cluster's API cannot be reached: {' '.join(words.split())}; {cure}"
    return ""


OUT_OF_TIME = (9, 10)  # OpenSSL's codes: X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
RENEWS = "K3s renews certificates as it starts (`systemctl restart k3s` on its server)"
NOT_YET = f"(it has started, and has not read its own rules in {STARTS:.0f} s; the log of its server says why)"
COPY = (
    "playbooks/cluster.yml writes it anew for a K3s of ours; cluster.kubernetes.kubeconfig in cluster.yml names another"
)


def _why(error: Any) -> str:
    """The message of a Status object; the headers and the body around it help nobody."""
    import json

    try:
        return str(json.loads(error.body)["message"]) if error.body else "no more is said"
    except (ValueError, KeyError, TypeError):
        return " ".join(str(error.body).split())[:200]
