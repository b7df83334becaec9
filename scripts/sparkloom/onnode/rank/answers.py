"""Does the engine really answer? One streamed token, or for an engine that has it the path that needs one."""

from __future__ import annotations

import os
import socket
from http.client import HTTPConnection
from pathlib import Path

from sparkloom.onnode import kube, smoke
from sparkloom.onnode.rank.plan import GroupPlan

KEY_FILE = "SPARKLOOM_KEY_FILE"  # another place of that file

PROMPT = "Say one word."
PAGE_SECONDS = 10.0
CONNECT = 5.0


def key() -> str | None:
    """The engine's own key: a file of a Secret in rank 0's pod. No client has it."""
    try:
        return Path(os.environ.get(KEY_FILE, "/sparkloom/key/key")).read_text().strip() or None
    except OSError:
        return None


def streamed(plan: GroupPlan) -> str:
    """Empty when a token came, else what came instead."""

    def connect() -> HTTPConnection:
        return HTTPConnection("127.0.0.1", plan.port, timeout=plan.limits.token)

    try:
        smoke.ask(connect, lambda text: None, prompt=PROMPT, max_tokens=4, key=key())
    except (smoke.NoAnswer, ValueError, KeyError, IndexError, TypeError) as problem:
        return str(problem) or type(problem).__name__
    return ""


def again(plan: GroupPlan) -> str:
    """A later check: under load a request of ours may queue for minutes, so the engine's own word counts if it has one.

    SGLang's /health_generate is satisfied by any token of its scheduler; the other engines have nothing like it.
    """
    if not plan.generates:
        return streamed(plan)
    try:
        kube.asked("127.0.0.1", plan.port, plan.generates, f"GET {plan.generates}", plan.limits.token)
    except kube.Unreached as problem:
        return str(problem)
    return ""


def page(plan: GroupPlan) -> str | None:
    """The engine's own counters; None when it gives none now."""
    told = key()  # llama.cpp asks for it here too
    headers = {"Authorization": f"Bearer {told}"} if told else {}
    seconds = min(PAGE_SECONDS, plan.limits.token)
    try:
        return kube.asked("127.0.0.1", plan.port, plan.metrics, "the engine", seconds, headers).decode(errors="replace")
    except kube.Unreached:
        return None


def listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=CONNECT).close()
    except OSError:
        return False
    return True
