"""Does the engine really answer? One streamed token, or for an engine that has it the path that needs one."""

from __future__ import annotations

import os
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from sparkloom.onnode import smoke
from sparkloom.onnode.rank.order import Order

KEY_FILE = "SPARKLOOM_KEY_FILE"  # another place of that file

PROMPT = "Say one word."
PAGE_SECONDS = 10.0
LONGEST_PAGE = 8 << 20  # bytes: of an engine that somebody took over, too


def key() -> str | None:
    """The engine's own key: a file of a Secret in rank 0's pod. No client has it."""
    try:
        return Path(os.environ.get(KEY_FILE, "/sparkloom/key/key")).read_text().strip() or None
    except OSError:
        return None


def streamed(order: Order) -> str:
    """Empty when a token came, else what came instead."""

    def connect() -> HTTPConnection:
        return HTTPConnection("127.0.0.1", order.port, timeout=order.budgets.token)

    try:
        smoke.ask(connect, lambda text: None, prompt=PROMPT, max_tokens=4, key=key())
    except (smoke.NoAnswer, ValueError, KeyError, IndexError, TypeError) as problem:
        return str(problem) or type(problem).__name__
    return ""


def again(order: Order) -> str:
    """A later check: under load a request of ours may queue for minutes, so the engine's own word counts if it has one.

    SGLang's /health_generate is satisfied by any token of its scheduler; the other engines have nothing like it.
    """
    if not order.generates:
        return streamed(order)
    connection = HTTPConnection("127.0.0.1", order.port, timeout=order.budgets.token)
    try:
        connection.request("GET", order.generates)
        status = connection.getresponse().status
    except (OSError, HTTPException) as problem:
        return f"GET {order.generates}: {problem or type(problem).__name__}"
    finally:
        connection.close()
    return "" if status == 200 else f"GET {order.generates} answered {status}"


def page(order: Order) -> str | None:
    """The engine's own counters; None when it gives none now."""
    connection = HTTPConnection("127.0.0.1", order.port, timeout=min(PAGE_SECONDS, order.budgets.token))
    try:
        told = key()  # llama.cpp asks for it here too
        connection.request("GET", order.metrics, headers={"Authorization": f"Bearer {told}"} if told else {})
        response = connection.getresponse()
        body = response.read(LONGEST_PAGE)
        whole = response.status == 200 and len(body) < LONGEST_PAGE
        return body.decode(errors="replace") if whole else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def listens(order: Order) -> bool:
    try:
        connection = HTTPConnection("127.0.0.1", order.port, timeout=5)
        connection.connect()
        connection.close()
    except OSError:
        return False
    return True
