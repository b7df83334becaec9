"""One copy each: no second reader of pods, no second HTTP server, no second way in which code travels."""

from __future__ import annotations

import ast
import re

import pytest

from sparkloom.render import pack
from tests.places import REPO

PACKAGE = REPO / "scripts/sparkloom"
# What does a thing, as its lines show it -> the only files that may.
ALONE = {
    "lists pods": (r"list_namespaced_pod\b|list_pod_for_all|\{namespace\}/pods\"", {"onnode/now/seen.py"}),
    # A node that builds an image may have no cluster's API yet: its own containerd says what serves there.
    "asks a container runtime for pods": (r'"pods", "--state"', {"onnode/images/runtime.py"}),
    "is an HTTP server": (r"BaseHTTPRequestHandler|start_server\(|HTTP/1\.1 [\d{]", {"onnode/http_server.py"}),
    "serves connections by threads": (r"Threading\w*Server|ThreadingMixIn|HTTPServer\(", {"onnode/listening.py"}),
    "reads an HTTP answer by its bytes, as it comes": (
        r"startswith\(self\._buffer|\bsplit\(\"\\r\\n\"\)",
        {"measure/bench/http1.py"},
    ),
    "reads or writes Prometheus' text": (r"# TYPE \{name\}|END_OF_NAME", {"onnode/prometheus.py"}),
    "lets the engine's own lines of it pass": (r"# TYPE \{begins\}", {"onnode/rank/exposition.py"}),
    "packs code": (r"zipfile|zipapp|getsource|marshal", {"render/pack.py"}),
    "starts a packed program from memory": (r"memfd_create|runpy", {"site/store/remote.py"}),
    # A driver that hangs, and a pod's network: each is another process of a packed program, by a text in it.
    "gives Python a program as a word": (
        r"sys\.executable.*\"-c\"|python3? .*-c ",
        {"onnode/host/gpu.py", "onnode/host/strangers.py", "site/store/remote.py"},
    ),
}


@pytest.mark.parametrize("what", ALONE)
def test_one_place(what: str) -> None:
    pattern, places = ALONE[what]
    sources = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}
    sources |= {f"plugins/{path.name}": path.read_text() for path in (REPO / "plugins").rglob("*.py")}
    assert {name for name, text in sources.items() if re.search(pattern, text)} == places


def test_roles_read_no_pods_and_carry_no_code() -> None:
    for path in [*REPO.glob("roles/**/*.yml"), *REPO.glob("playbooks/*.yml")]:
        text = path.read_text()
        assert not re.search(r"kind: Pod$|get pods?\b|python3? -c|ansible\.builtin\.script", text, re.M), path


def test_every_program_that_is_sent_somewhere_is_one_that_is_packed() -> None:
    asked = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "program":
                asked |= {word.value for word in node.args if isinstance(word, ast.Constant)}
    assert {"patch_image", "tasks"} <= asked <= set(pack.PROGRAMS)
