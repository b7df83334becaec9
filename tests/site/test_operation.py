"""The Lease held by a real run of Ansible: taken, kept by its keeper, noted by the callback, let go at the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.site import ansible, holding
from sparkloom.site.tasks import operation
from tests.places import REPO
from tests.plugins.loading import context
from tests.until import until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Server(ThreadingHTTPServer):
    """A stand-in for the API server, as far as one Lease goes."""

    kept: dict[str, Any] | None = None
    seen: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self, status: int, body: Any = None) -> None:
        data = json.dumps(body or {"kind": "Status", "code": status}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.answer(200 if self.server.kept else 404, self.server.kept)

    def do_DELETE(self) -> None:
        self.server.kept = None
        self.answer(200)

    def write(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body["metadata"]["resourceVersion"] = str(len(self.server.seen) + 1)
        self.server.kept = body
        self.server.seen.append(body)
        self.answer(200, body)

    do_POST = do_PUT = write

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def run(folder: Path, api: Server, last: dict[str, Any], **more: Any) -> subprocess.CompletedProcess[str]:
    """Two plays of this machine: the role, then something that the callback notes."""
    user = {"name": "u", "user": {}}
    place = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{api.server_port}"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    (folder / "kubeconfig").write_text(yaml.safe_dump(
        {"clusters": [place], "users": [user], "contexts": [context], "current-context": "x"}))  # fmt: skip
    cluster = yaml.safe_load((REPO / "inventories/gb10/group_vars/all/cluster.yml").read_text())["cluster"]
    cluster["kubernetes"] = {**cluster["kubernetes"], "kubeconfig": str(folder / "kubeconfig")}
    settings = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "cluster": cluster,
                "example": False, "operation_limit": "part", **more}  # fmt: skip
    plays = [
        {
            "name": "Begin",
            "hosts": "sparks",
            "vars": settings,
            "roles": ["operation"],
            "tasks": [{"name": "Serve", "ansible.builtin.debug": {"msg": "did it for all"}}],
        },
        {"name": "Work", "hosts": "sparks", "vars": settings, "tasks": [last]},
    ]
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    command = [program, "-i", "inventories/gb10", "-l", "spark1", str(folder / "play.yml")]
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_ROLES_PATH": str(REPO / "roles")}
    return subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True, timeout=600, check=False)


def notes(api: Server) -> dict[str, str]:
    assert api.kept
    return dict(api.kept["metadata"]["annotations"])


@pytest.mark.slow
def test_a_run_holds_the_site_and_lets_go_or_leaves_word(tmp_path: Path, api: Server) -> None:
    """On the old code nothing was asked: two runs worked on one site at once."""
    done = run(tmp_path, api, {"ansible.builtin.fail": {"msg": "half way"}})
    assert done.returncode == 2 and "half way" in done.stdout, done.stdout + done.stderr
    until(lambda: api.kept and notes(api)["sparkloom/state"] == "did not end", 40)
    assert notes(api)["sparkloom/stage"] == "Work" and "play.yml" in notes(api)["sparkloom/command"]
    again = run(tmp_path, api, {"ansible.builtin.debug": {"msg": "all of it"}})
    assert again.returncode == 0, again.stdout + again.stderr
    assert "did not end: it stopped at 'Work'" in " ".join(again.stdout.split()).replace("''", "'")  # YAML's own quotes
    until(lambda: api.kept is None, 40)


@pytest.mark.parametrize("dry", [False, True])
def test_a_playbook_for_all_refuses_a_run_for_some_also_a_dry_one(monkeypatch: pytest.MonkeyPatch, dry: bool) -> None:
    monkeypatch.setattr(ansible, "cluster", lambda _: case.cluster())
    monkeypatch.setattr(holding, "held", lambda *_: {"msg": "held"})
    held: dict[str, Any] = {} if dry else {"msg": "held"}

    def hold(hosts: list[str], limit: Any, *, leave_out: bool = False) -> dict[str, Any]:
        return operation.hold(context({"ansible_play_hosts_all": hosts}, dry=dry), 0, "", limit, leave_out)

    assert "leaves out spark1, spark3, spark4;" in hold(["spark2"], "whole")["msg"]
    assert hold(["spark2"], "part") == hold(["spark2"], "whole", leave_out=True) == held
    assert hold(["spark1", "spark2", "spark3", "spark4", "box1"], "whole") == held


@pytest.mark.slow
def test_a_limit_that_leaves_out_who_would_be_changed_too_is_refused_with_the_command(
    tmp_path: Path, api: Server
) -> None:
    """On the old code `teardown.yml --limit spark1` ended the group on all four, and took K3s off all of them."""
    work: dict[str, Any] = {"ansible.builtin.debug": {"msg": "went on"}}
    refused = run(tmp_path, api, work, operation_limit="whole")
    said = " ".join(refused.stdout.split())
    assert refused.returncode == 2 and "leaves out spark2, spark3, spark4" in said and "went on" not in said
    assert f"ansible-playbook -i inventories/gb10 {tmp_path}/play.yml" in said and api.kept is None
    passed = run(tmp_path, api, work, operation_limit="whole", operation_limit_ends=True)
    said = " ".join(passed.stdout.split())
    assert passed.returncode == 0 and "did it for all" not in said, passed.stdout + passed.stderr
    assert "went on" in said, "the next part has a limit of its own"
    assert said.endswith(f"had no part in it; for all: ansible-playbook -i inventories/gb10 {tmp_path}/play.yml")
    meant = run(tmp_path, api, work, operation_limit="whole", operation_leave_out="true")
    assert meant.returncode == 0 and "did it for all" in meant.stdout, meant.stdout + meant.stderr
