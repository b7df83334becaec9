"""Output is never executed: what others said reaches a terminal, a log, Markdown and HTML spelled, whoever printed it.

Ten of 18 cases were red on 00336b1 (main before this), where the bytes went through as they came: both of diagnose,
its file, nccl-log, the models of bench, status, the report of a matrix, Ansible, a hello, the line of an engine;
checked by running this file in a checkout of that commit. Those of lint and plan and the failing requests of bench
were clean there and hold that. They run the real programs: the CLI as a process, ansible-playbook, a group of ranks.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom.base.visible import but_colours, visible
from sparkloom.measure.matrix import report
from sparkloom.onnode.rank import status_log
from tests import inventories
from tests.measure.matrix.test_matrix import SPEC, cells_of, put
from tests.onnode.rank.ranks import Ranks
from tests.places import REPO
from tests.plugins.test_output import run as play

CLIPBOARD = "\x1b]52;c;Y3VybCB4fHNo\x07"  # puts a command where the person pastes from
TITLE = "\x1b]0;owned\x1b\\"
BACK = "\x1b[2J\x1b[1;1H\x9b31m\x7f\x08"  # clears the screen, and what C1 calls the same
TURNED = "\u202egnp.\u202c\u2066"
HOSTILE = CLIPBOARD + TITLE + BACK + TURNED
FOREIGN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def sparkloom(*words: str, stdin: str = "", **env: str) -> tuple[int, str]:
    """Exit status, and all that it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "sparkloom.cli", *words], input=stdin.encode(), env={**os.environ, **env}, timeout=60,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=REPO,
    )  # fmt: skip
    return done.returncode, done.stdout.decode()


def spelled(said: str) -> None:
    """Nothing in it that a terminal obeys, and no bug of ours on the way."""
    assert not FOREIGN.search(said), ascii(said)
    assert "a bug of ours" not in said and "Traceback" not in said, said


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_diagnose(json_too: tuple[str, ...]) -> None:
    """OSC 52 that ends with ST, and C1, reached the terminal from the log's most telling line."""
    code, said = sparkloom("diagnose", "-", *json_too, stdin=f"RuntimeError: {TITLE}{BACK}{TURNED} failed\n")
    assert code == 0 and "\\u009b31m" in said
    spelled(said)
    if json_too:  # spelled as JSON spells it: the same text for whoever reads it
        assert "\x9b31m" in json.loads(said)["lines"][0]


def test_diagnose_with_a_name_of_a_file() -> None:
    code, said = sparkloom("diagnose", f"/nowhere/{HOSTILE}.log")
    assert code == 2 and "\\u001b]52" in said
    spelled(said)


def test_nccl_log() -> None:
    """Words of a log were read as rich's markup too: `[/x]` ended the program with status 70."""
    line = f"spark1:1:1 [0] NCCL WARN {BACK} [/x] [link=http://x]here Call to ibv_reg_mr failed {TURNED}\n"
    lines = [line, "spark1:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"]
    lines.append("spark1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n")
    code, said = sparkloom("nccl-log", "-", stdin="".join(lines))
    assert code == 1, said
    spelled(said)


PROFILE = (REPO / "model_profiles" / "qwen--qwen3.6-27b-fp8.yml").read_text()


@pytest.mark.parametrize("command", ["lint", "plan"])
@pytest.mark.parametrize("where", ["summary", "image", "flag"])
def test_a_profile_of_others(tmp_path: Path, command: str, where: str) -> None:
    data = yaml.safe_load(PROFILE)
    if where == "summary":
        data["summary"] = HOSTILE
        data["model"]["id"] = f"org/{HOSTILE}"
    elif where == "image":
        data["engine"]["image"] = f"evil/{HOSTILE}[/red]:latest"
    else:
        data["launch"][f"nonsense{HOSTILE}"] = HOSTILE
    path = tmp_path / "hostile.yml"
    path.write_text(yaml.safe_dump(data, allow_unicode=False))
    code, said = sparkloom(command, str(path))
    assert code in (0, 1, 2), said
    spelled(said)


Answer = Callable[[str], tuple[int, bytes]]


@contextmanager
def server(answer: Answer) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = answer(self.path)
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{made.server_address[1]}"
    finally:
        made.shutdown()
        made.server_close()


def models(*names: str) -> bytes:
    return json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()


def test_bench_against_a_hostile_server() -> None:
    """Two names of models, to be chosen from: both were printed as they came."""
    with server(lambda path: (200, models(f"a{HOSTILE}", f"b{HOSTILE}"))) as url:
        code, said = sparkloom("bench", "--url", url, "--concurrency", "1")
    assert code == 2 and "\\u001b]52" in said, said
    spelled(said)


def test_bench_whose_requests_fail() -> None:
    def answer(path: str) -> tuple[int, bytes]:
        return (200, models(f"a{HOSTILE}")) if path == "/v1/models" else (500, f"no {HOSTILE}".encode())

    with server(answer) as url:
        _, said = sparkloom("bench", "--url", url, "--concurrency", "1")
    spelled(said)


def pods() -> dict[str, Any]:
    labels = {
        "sparkloom.io/profile": "x", "app.kubernetes.io/component": "engine", "sparkloom.io/rank": "0",
        "sparkloom/profile": "x", "sparkloom/rank": "0",
    }  # fmt: skip
    waiting = {"reason": f"Bad{HOSTILE}", "message": f"the registry said {HOSTILE}"}
    state: dict[str, Any] = {"name": "engine", "ready": False, "restartCount": 0, "image": "i", "imageID": ""}
    state["state"] = {"waiting": waiting}
    pod = {
        "metadata": {"name": f"x-rank0-0{HOSTILE}", "uid": "u", "labels": labels, "annotations": {}},
        "spec": {"nodeName": f"spark1{HOSTILE}", "containers": [{"name": "engine", "image": "i"}]},
        "status": {"phase": "Pending", "containerStatuses": [state], "conditions": []},
    }
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod]}


def test_status_of_hostile_pods(tmp_path: Path) -> None:
    """A registry's answer stands in a pod's message, which anybody who may make pods writes as well. A pod without our
    annotation, where no start was proved, ended the program with status 70."""

    def answer(path: str) -> tuple[int, bytes]:
        if path.partition("?")[0].endswith("/pods"):
            return 200, json.dumps(pods()).encode()
        kept = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"}
        one = re.search(r"/(configmaps|leases|secrets)/[^/]+$", path.partition("?")[0])
        return (404, json.dumps(kept).encode()) if one else (200, b'{"kind":"List","metadata":{},"items":[]}')

    with server(answer) as url:
        access = {
            "apiVersion": "v1", "kind": "Config", "current-context": "a", "users": [{"name": "a", "user": {}}],
            "clusters": [{"name": "a", "cluster": {"server": url}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        }  # fmt: skip
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(access))
        site = inventories.own(tmp_path, "site")
        told = site / "group_vars" / "all" / "cluster.yml"
        data = yaml.safe_load(told.read_text())
        data["cluster"]["kubernetes"] = {"provider": "existing", "kubeconfig": str(tmp_path / "kubeconfig")}
        told.write_text(yaml.safe_dump(data))
        code, said = sparkloom("status", "-i", str(site))
    assert code == 1 and "\\u001b]52" in said, said
    spelled(said)


def test_reports_of_a_matrix(tmp_path: Path) -> None:
    """`<script>` stood in the Markdown as it came, an image to be fetched and a link that runs, and OSC 52 in both."""
    spec = tmp_path / "grid.yml"
    spec.write_text(SPEC)
    evil = f"<script>alert(1)</script> ![x](http://spy/) [go](javascript:x) {HOSTILE}\n```\n<img src=x>"
    cells = [cell for cell in cells_of(spec) if not cell.skipped]
    known = {"model": evil, "transport": {"verdict": "roce", "why": evil}}
    for cell, status in zip(cells, ("startup_crash", "skipped", "ok", "hang"), strict=False):
        put(tmp_path / "grid", cell, status, trace_tail=evil, note=evil, matched_rules=[evil], provenance=known)
    text, page = (Path(file).read_text(encoding="utf-8") for file in report.write(spec)["files"])
    for shown in (text, page):
        assert not FOREIGN.search(shown), ascii(shown)
    prose = re.sub(r"^```$.*?^```$", "", text, flags=re.M | re.S)  # a block of code shows what it holds
    assert "<script" not in prose and "<img" not in prose and "![" not in prose and "](" not in prose
    assert "&lt;script>" in prose and "<script" not in page.replace("&lt;", "")


SHOWS = """
- name: Says
  ansible.builtin.debug:
    msg: "{{ evil }}"
- name: Warns and fails
  ansible.builtin.fail:
    msg: "{{ evil }}"
"""


def test_what_ansible_shows(tmp_path: Path) -> None:
    """Words of nodes, pods and engines come through a play's results."""
    (tmp_path / "evil.json").write_text(json.dumps({"evil": HOSTILE}))
    code, said = play(tmp_path, SHOWS, "-e", f"@{tmp_path / 'evil.json'}")
    assert code == 2 and "\\u001b]52" in said
    spelled(said.replace("\r", ""))


def test_a_strangers_hello_in_the_log_of_a_rank(tmp_path: Path) -> None:
    """Anybody who reached the control port chose what `kubectl logs` of rank 0 made a terminal do: not heard now."""
    group = Ranks(tmp_path, 2)
    try:
        group.start(0)
        port = group.plan["control_port"]
        said = _hello(port, group)
    finally:
        group.end()
    assert "was not heard at the control port" in said and "configuration" not in said
    assert not FOREIGN.search(said), ascii(said)


def _hello(port: int, group: Ranks) -> str:
    message = json.dumps({"kind": "hello", "rank": 1, "config": HOSTILE, "build": HOSTILE}, ensure_ascii=False)
    until = time.monotonic() + 20
    while time.monotonic() < until and "was not heard" not in group.log(0):
        try:
            with socket.create_connection(("127.0.0.11", port), timeout=2) as wire:
                wire.sendall(message.encode() + b"\n")
                wire.settimeout(1)
                wire.recv(4096)
        except OSError:  # it does not listen yet, or has closed
            pass
        time.sleep(0.2)
    return group.log(0)


class Told:
    run, words, secret = "/nonexistent", "/nonexistent/words", ""


def test_an_engines_line_keeps_its_colours_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """An API's client writes into it: engines log requests. Colours are the engine's own and change only looks."""
    log = status_log.StatusLog(Told(), 0)  # type: ignore[arg-type]
    log.engine(f"\x1b[32mINFO\x1b[0m prompt: {HOSTILE}")
    said = capsys.readouterr().out
    assert "\x1b[32mINFO\x1b[0m" in said
    assert not FOREIGN.search(said.replace("\x1b[32m", "").replace("\x1b[0m", "")), ascii(said)


def test_clean_text_is_the_same_text() -> None:
    """Every page and log of this repository's own."""
    for path in [*(REPO / "docs").rglob("*.md"), *(REPO / "tests" / "golden").rglob("*.txt")]:
        text = path.read_text(encoding="utf-8")
        assert visible(text) == text == but_colours(text), path
