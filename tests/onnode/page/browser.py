"""A real headless Chromium, driven over its own pipe: no driver, no port, no library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SIZES = {"desktop": (1280, 800, False), "phone": (360, 780, True)}
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-default-apps",
    "--remote-debugging-pipe", "--hide-scrollbars", "--mute-audio", "--no-proxy-server",
)  # fmt: skip


class Browser:
    def __init__(self, folder: Path) -> None:
        asks, answers = os.pipe(), os.pipe()  # it reads at 3 and writes at 4
        assert PROGRAM
        command = [PROGRAM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        shell = ["bash", "-c", f'exec "$@" 3<&{asks[0]} 4>&{answers[1]}', "bash", *command]
        self._process = subprocess.Popen(
            shell, pass_fds=(asks[0], answers[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(asks[0])
        os.close(answers[1])
        self._to, self._from, self._rest, self._number = asks[1], answers[0], b"", 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {
            "id": self._number,
            "method": method,
            "params": params,
            **({"sessionId": session} if session else {}),
        }
        os.write(self._to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            answer = self._next(until - time.monotonic())
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            if "method" in answer:
                self.events.append(answer)
        raise AssertionError(f"{method}: no answer")

    def _next(self, seconds: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._from], [], [], max(0.1, seconds))[0], "the browser says nothing"
            piece = os.read(self._from, 1 << 20)
            assert piece, "the browser has gone"
            self._rest += piece
        one, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(one))

    def page(self, size: str = "desktop", scheme: str = "light") -> Page:
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, context, size, scheme)


class Page:
    """One tab of its own profile. `errors`: all that its console complained about."""

    def __init__(self, browser: Browser, session: str, context: str, size: str, scheme: str) -> None:
        self.browser, self.session, self.context = browser, session, context
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")
        width, height, mobile = SIZES[size]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && !!document.getElementById('main')")

    def js(self, expression: str) -> Any:
        told = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, expression: str, seconds: float = 30) -> None:
        limit = time.monotonic() + seconds
        while not self.js(expression):
            assert time.monotonic() < limit, f"never: {expression}\n{self.js('document.body.innerText')}"
            time.sleep(0.05)

    def text(self, name: str) -> str:
        return str(self.js(f"document.getElementById('{name}').innerText"))

    def shot(self, file: Path, whole: bool = True) -> None:
        """A PNG, or by its name a JPEG."""
        form = {"format": "jpeg", "quality": 80} if file.suffix == ".jpg" else {"format": "png"}
        clip = {"clip": self._whole()} if whole else {}
        told = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **form, **clip)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(told["data"]))

    def _whole(self) -> dict[str, Any]:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    @property
    def errors(self) -> list[str]:
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            what, told = event["method"], event["params"]
            if what == "Runtime.exceptionThrown":
                found.append(json.dumps(told["exceptionDetails"])[:400])
            elif what == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(told["args"])[:400])
            elif what == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                found.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        return found

    @property
    def hosts(self) -> set[str]:
        """Whom it asked for anything."""
        mine = [event for event in self.browser.events if event.get("sessionId") == self.session]
        asked = [e["params"]["request"]["url"] for e in mine if e["method"] == "Network.requestWillBeSent"]
        return {url.split("/")[2] for url in asked if url.startswith("http")}
