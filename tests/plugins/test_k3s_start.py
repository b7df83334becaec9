"""A start that is given up in time with its cause and its cure; a node is judged by its cluster, not by its unit.

The lines are K3s' own, of public threads (tests/data, judge/data), or what the real v1.32.0 said here.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkloom.site.k3s import steps
from tests.plugins.loading import module, on_node

node = module("k3s_node", "host")
start = module("k3s_start")
CAUSES = steps.causes()

WAITING = (
    'time="2026-11-22T10:00:0{}Z" level=info msg="Waiting to retrieve agent configuration; server is not ready: {}"'
)
PASSWORD = (
    "Node password rejected, duplicate hostname or contents of '/etc/rancher/node/password' may not match server "
    "node-passwd entry, try enabling a unique node name with the --with-node-id flag"
)
INTERFACE = "unable to find interface enP7s8: route ip+net: no such network interface"
TOKEN = "failed to retrieve configuration from server: not authorized"
ERROR = 'time="2026-11-22T10:00:00Z" level=error msg="Failed to connect to proxy. Empty dialer response"'
KLOG = 'E1122 10:00:03.346550 1448143 kubelet_node_status.go:701] "Failed to set some node status fields"'


def said(reason: str, times: int = 3) -> list[str]:
    return [WAITING.format(second, reason) for second in range(times)]


@pytest.mark.parametrize(
    ("reason", "cause", "cure"),
    [
        (PASSWORD, "reinstalled", "kubectl delete node spark2"),
        (INTERFACE, "does not exist", "management_interface in cluster.yml"),
        (TOKEN, "does not know this machine", "without --limit"),
    ],
)
def test_what_k3s_calls_an_information_is_named_with_its_cure(reason: str, cause: str, cure: str) -> None:
    """Only lines of level error were shown once there was one, and none of these was known as hopeless."""
    lines = [ERROR, *said(reason), KLOG]
    (named, times, _), *_ = node.named(lines, CAUSES)
    assert times == 3 and named["forever"] and cause in named["why"]
    assert cure in named["fix"].replace("NAME", "spark2")
    shown = node.last_words(lines, CAUSES)
    assert shown == [said(reason)[-1], ERROR, KLOG], "each once, whatever its level and time"


def test_a_server_that_does_not_answer_yet_is_named_and_waited_for() -> None:
    lines = said('failed to get CA certs: Get "https://127.0.0.1:6444/cacerts": connection refused', 9)
    (named, times, _), *_ = node.named(lines, CAUSES)
    assert times == 9 and not named["forever"] and "6443" in named["fix"]


def test_a_log_that_names_no_cause_is_shown_by_its_errors_else_by_its_end() -> None:
    assert node.last_words([ERROR, "level=info msg=hello"], CAUSES) == [ERROR]
    assert node.last_words([f"level=info msg={n}" for n in range(20)], CAUSES) == [
        f"level=info msg={n}" for n in range(8, 20)
    ]


def test_a_lease_of_before_the_start_does_not_count() -> None:
    assert node.moment("2026-11-21T21:00:00.250000Z") == pytest.approx(1795294800.25)
    assert node.moment("2026-11-21T21:00:00Z") == 1795294800


def test_tokens_are_taken_out_of_what_k3s_said() -> None:
    line = f"token K10{'a' * 64}::server:abcdef is wrong, passphrase {'b' * 64}"
    assert node.TOKENS.sub("(secret)", line) == "token (secret) is wrong, passphrase (secret)"


# --- on a machine whose programs are three scripts ---------------------------------------------------------------


SYSTEMCTL = """#!/bin/sh
echo "$*" >>{folder}/asked
case "$*" in
*NRestarts*) echo 0 ;;
*Monotonic*) echo 1000000 ;;
*ActiveState*) printf 'ActiveState=active\\nUnitFileState=enabled\\nFragmentPath=\\n' ;;
restart*) test ! -e {folder}/after || mv {folder}/after {folder}/answers ;;
esac
"""
K3S = """#!/bin/sh
case "$*" in
*lease*) cat {folder}/answers/lease ;;
*readyz*) echo ok ;;
*get*) cat {folder}/answers/node ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run the module on it: how its node answers before and after a restart, and its journal, are files."""
    programs = {"systemctl": SYSTEMCTL, "k3s": K3S, "journalctl": "#!/bin/sh\ncat {folder}/journal\n"}
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text.replace("{folder}", str(tmp_path)))
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "journal").write_text("")
    shutil.rmtree(tmp_path / "answers", ignore_errors=True)

    def run(name: str, **args: Any) -> dict[str, Any]:
        return on_node(name, env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}, **args)

    return run


def answers(folder: Path, status: str, ago: float = 0.0) -> None:
    folder.mkdir(exist_ok=True)
    renewed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5 - ago))
    (folder / "lease").write_text(json.dumps({"spec": {"renewTime": renewed}}))
    ready = {"type": "Ready", "status": status, "message": "kubelet stopped posting"}
    (folder / "node").write_text(json.dumps({"status": {"conditions": [ready]}}))


def begin(tmp_path: Path, **more: Any) -> dict[str, Any]:
    binary = {"binary": str(tmp_path / "bin/k3s"), "kubeconfig": "/none"}
    return {"service": "k3s-agent", "node": "spark2", **binary, "reasons": ["x"], "causes": CAUSES, **more}


def test_it_is_given_up_long_before_its_time_with_the_cure(tmp_path: Path, machine: Callable[..., Any]) -> None:
    (tmp_path / "journal").write_text("\n".join([ERROR, *said(PASSWORD)]))
    done = machine("k3s_start", **begin(tmp_path, seconds=300))
    assert done["failed"] and "kubectl delete node spark2" in done["msg"] and "Node password rejected" in done["msg"]
    assert int(done["msg"].split("after ")[1].split()[0]) < 100


def test_a_node_that_comes_back_by_itself_is_not_restarted(tmp_path: Path, machine: Callable[..., Any]) -> None:
    answers(tmp_path / "answers", "True")
    done = machine("k3s_start", **begin(tmp_path, as_planned=True))
    assert done["changed"] is False and "restart" not in (tmp_path / "asked").read_text()


def test_one_that_runs_as_planned_and_is_refused_is_restarted_at_once(
    tmp_path: Path, machine: Callable[..., Any]
) -> None:
    (tmp_path / "journal").write_text("\n".join(said(INTERFACE)))
    answers(tmp_path / "answers", "Unknown")
    answers(tmp_path / "after", "True")
    done = machine("k3s_start", **begin(tmp_path, as_planned=True, seconds=30))
    assert "restart --no-block k3s-agent.service" in (tmp_path / "asked").read_text()
    # its journal still says what it said before: the scripts know no time
    assert done["failed"] and "management_interface" in done["msg"]


def test_a_node_that_is_ready_is_well_whatever_its_log_says(tmp_path: Path, machine: Callable[..., Any]) -> None:
    (tmp_path / "journal").write_text("\n".join(said(PASSWORD)))
    answers(tmp_path / "after", "True", ago=-60)
    done = machine("k3s_start", **begin(tmp_path))
    assert done["changed"] is True, done


@pytest.mark.parametrize(
    ("status", "ago", "waits"),
    [
        ("True", 0, ""),
        ("Unknown", 0, "the node to be Ready (kubelet stopped posting)"),
        ("True", 120, "a fresh sign of life of its kubelet"),
    ],
)
def test_a_machine_says_whether_its_node_lives(
    tmp_path: Path, machine: Callable[..., Any], status: str, ago: float, waits: str
) -> None:
    answers(tmp_path / "answers", status, ago)
    places = {**steps.PLACES, "binary": str(tmp_path / "bin/k3s")}
    read = machine("k3s_state", paths=places, service="k3s-agent", node="spark2")
    assert read["units"]["k3s-agent"]["active"] and read["waits"] == waits
    assert "127.0.0.1" in read["addresses"].get("lo", ["127.0.0.1"])


def test_a_runtime_of_the_gpu_operator_is_found_where_k3s_looks(tmp_path: Path, machine: Callable[..., Any]) -> None:
    """K3s searches its own PATH, which our unit gives it; the folder of NVIDIA's GPU operator was not in it."""
    program = tmp_path / "toolkit/nvidia-container-runtime"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    search = steps.PLACES["search"]
    assert search.split(":")[0] == "/usr/local/nvidia/toolkit"
    places = {**steps.PLACES, "search": search.replace("/usr/local/nvidia/toolkit", str(program.parent))}
    assert machine("k3s_state", paths=places, service="k3s-agent", node="x")["nvidia"] == str(program)
