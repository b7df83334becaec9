"""Open WebUI as a person uses it: its page in a real Chromium, from the first account to an answer."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from testbed.standins.pacing.process import free_ports
from tests.onnode.page.browser import Browser, Page
from tests.rack import clients

WHO, WORD = "ann@example.com", "correct horse battery"
PATIENCE = 300.0  # seconds; its first start makes a database in 80 steps
BUTTON = "[...document.querySelectorAll('button')].find(one => one.innerText.trim() === %s)"
SAID = "document.querySelector('#response-content-container')?.innerText ?? ''"


def asked(home: Path, question: str) -> clients.Outcome:
    """What its page shows to somebody who made an account, logs in elsewhere, picks the model and asks."""
    with _served(home) as url, closing(Browser(home / "chromium")) as browser:
        first = browser.page()
        first.call("Page.navigate", url=url)
        _press(first, "Get started")
        _fill(first, name="Ann", email=WHO, password=WORD)
        _press(first, "Create Admin Account")
        first.until("!!document.getElementById('chat-input')", PATIENCE)
        page = browser.page()
        page.call("Page.bringToFront")  # a page behind another takes no letters
        page.call("Page.navigate", url=f"{url}/auth")
        _fill(page, email=WHO, password=WORD)
        _press(page, "Sign in")
        _pick(page, clients.connect_lines("open-webui")["model"])
        _fill(page, **{"chat-input": question})
        page.until("!!document.getElementById('send-message-button')")
        page.js("document.getElementById('send-message-button').click()")
        page.until("document.body.innerText.includes('Response complete')", PATIENCE)
        assert page.hosts == {url.removeprefix("http://")}, page.hosts
        return clients.Outcome("open-webui", "its page", bool(said := page.js(SAID).strip()), said or "nothing at all")


@contextmanager
def _served(home: Path) -> Iterator[str]:
    """Where the line that `connect` ends with serves it, until this ends."""
    (port,), log = free_ports(1), home / "open-webui.log"
    url, typed = f"http://127.0.0.1:{port}", clients.connect_lines("open-webui")["run"]
    started = clients.typed("open-webui", home, f"{typed} --port {port} >{log} 2>&1")
    try:
        until = time.monotonic() + PATIENCE
        while not _healthy(url):
            assert started.poll() is None and time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(1)
        yield url
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def _healthy(url: str) -> bool:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{url}/health", timeout=10) as answer:
            return bool(json.load(answer)["status"])
    except OSError:
        return False


def _press(page: Page, button: str) -> None:
    page.until(f"!!{BUTTON % json.dumps(button)}", PATIENCE)
    page.js(f"{BUTTON % json.dumps(button)}.click()")


def _fill(page: Page, **fields: str) -> None:
    for field, text in fields.items():
        page.until(f"!!document.getElementById('{field}')", PATIENCE)
        page.js(f"document.getElementById('{field}').focus()")
        page.call("Input.insertText", text=text)


def _pick(page: Page, model: str) -> None:
    page.until("!!document.getElementById('model-selector-model-button')", PATIENCE)
    page.js("document.getElementById('model-selector-model-button').click()")
    option = f"document.querySelector('[role=option][data-value={json.dumps(model)}]')"
    page.until(f"!!{option}", PATIENCE)
    page.js(f"{option}.click()")
    page.until(f"document.getElementById('model-selector-model-button').innerText.includes({json.dumps(model)})")
