"""The command line as others' scripts call it: shapes, exit statuses, one line per problem, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
COMMAND = [str(Path(sys.executable).with_name("sparkloom"))]


def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *words], input=stdin, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done


def data(*words: str, code: int = 0, stdin: str = "") -> Any:
    done = run(*words, "--json", stdin=stdin)
    assert done.returncode == code, done.stderr or done.stdout
    return json.loads(done.stdout)


def test_profiles_lists_what_scripts_need() -> None:
    listing = data("profiles")
    keys = {"name", "model", "engine", "release", "image", "nodes", "tp", "ep", "status", "n1", "n4", "n8", "source"}
    assert len(listing) >= 25 and all(keys <= set(item) for item in listing)
    assert {item["status"] for item in listing} <= {"measured", "vendor", "inferred", "unvalidated"}


def test_every_shipped_profile_lints_clean() -> None:
    """But for consents, which the profiles' own test counts."""
    findings = [finding for finding in data("lint") if finding["severity"] != "info"]
    assert {finding["rule"] for finding in findings} == {"remote-code-by-consent"}


def test_lint_names_trap_place_and_fix() -> None:
    findings = data("lint", ULTRA, "--set", "launch.moe_runner_backend=triton", code=1)
    finding = next(f for f in findings if f["severity"] == "error")
    assert {"rule", "severity", "where", "message", "fix", "evidence"} <= set(finding)
    assert finding["fix"] and "moe_runner_backend" in finding["where"] + finding["message"]


def test_lint_for_another_release_speaks_its_dialect() -> None:
    assert run("lint", ULTRA, "--engine-version", "0.5.14").returncode == 0
    assert "--cuda-graph-max-bs-decode" in data("argv", ULTRA, "--rank", "0", "--engine-version", "0.5.23")


def test_plan_has_the_contract_shape() -> None:
    plan = data("plan", ULTRA)
    assert plan["fits"] is True
    assert {"weights_gib_per_rank", "kv_tokens"} <= set(plan["memory"])
    assert plan["limits"]["max_running_requests"] == 16
    assert set(plan["speed"]["predicted"]) >= {"1", "4", "8"} and plan["speed"]["bound_n1_tok_s"] > 0
    assert plan["launch"]["ranks"][3]["node"] == "spark4" and isinstance(plan["findings"], list)


def test_plan_that_does_not_fit_exits_with_1_and_names_a_change() -> None:
    plan = data("plan", ULTRA, "--set", "launch.mem_fraction_static=0.85", code=1)
    assert plan["fits"] is False and "mem_fraction_static" in json.dumps(plan["change"])


def test_argv_and_env_are_one_rank_s() -> None:
    argv = data("argv", ULTRA, "--rank", "2")
    assert argv[:3] == ["python3", "-m", "sglang.launch_server"] and argv[argv.index("--node-rank") + 1] == "2"
    env = data("env", ULTRA, "--rank", "2")
    assert env["NCCL_NET"] == "IB" and env["SGLANG_HOST_IP"] == "192.168.100.13"
    assert "NCCL_IB_GID_INDEX" not in env


def test_render_is_yaml_and_gated(tmp_path: Path) -> None:
    done = run("render", ULTRA, "-o", str(tmp_path))
    assert done.returncode == 0 and (tmp_path / f"{ULTRA}.yaml").read_text().count("kind: StatefulSet") == 4
    refused = run("render", ULTRA, "--set", "launch.attention_backend=triton", "-o", str(tmp_path / "x"))
    assert refused.returncode == 1 and not (tmp_path / "x").exists() and "--force" in refused.stderr
    forced = run("render", ULTRA, "--set", "launch.attention_backend=triton", "--force")
    assert forced.returncode == 0 and "forced past" in forced.stderr


def test_fabric_uses_both_halves() -> None:
    plan = data("fabric")
    ends = [end for node in plan["nodes"] for end in node["endpoints"]]
    assert {end["rail"] for end in ends} == {"a", "b"} and len({end["mac"] for end in ends}) == len(ends)


def test_evidence_commands() -> None:
    assert data("evidence", "best", "GLM-4.7")
    assert data("evidence", "find", ULTRA, "--limit", "3")
    score = data("evidence", "score", "scripts/sparkloom/judge/data/measured_rows.jsonl")
    assert {"rows", "tp", "fp", "fn", "tn", "unknown", "precision", "recall", "per_row"} <= set(score)
    assert {"id", "predicted", "rules"} <= set(score["per_row"][0])


def test_guard_reads_a_stream() -> None:
    sane = "".join(json.dumps({"content": f"word{n} "}) + "\n" for n in range(200))
    end = json.dumps({"usage": {"completion_tokens": 200}}) + "\n"
    assert data("guard", "-", stdin=sane + end)["verdict"] == "ok"
    garbage = "".join(json.dumps({"content": "!"}) + "\n" for _ in range(400))
    verdict = data("guard", "-", stdin=garbage + end, code=1)
    assert verdict["verdict"] == "garbage" and verdict["kind"] and verdict["at_chunk"] > 0


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "no-such-profile"),
        ("lint", "./nowhere.yml"),
        ("plan", ULTRA, "-i", "/nowhere"),
        ("argv", ULTRA, "--rank", "9"),
        ("argv", ULTRA),
        ("plan", ULTRA, "--set", "launch.parallel.ep=3"),
        ("plan", ULTRA, "--set", "launch.context_lenght=1"),
        ("plan", ULTRA, "--set", "nonsense"),
        ("render", ULTRA, "--engine-version", "not-a-version!"),
        ("guard", "/nowhere"),
        ("nccl-log", "/nowhere"),
        ("diagnose", "/nowhere"),
        ("evidence", "score", "/nowhere"),
        ("matrix", "/nowhere.yml", "report"),
        ("no-such-command",),
    ],
)
def test_unusable_input_exits_with_2_and_says_why(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.strip()


def test_misspelt_flag_gets_a_hint() -> None:
    assert "did you mean 'context_length'" in run("plan", ULTRA, "--set", "launch.context_lenght=1").stderr


@pytest.mark.parametrize("words", [("profiles",), ("plan", ULTRA, "--explain"), ("lint", "--json"), ("render", ULTRA)])
def test_a_reader_who_has_seen_enough_is_no_failure(words: tuple[str, ...]) -> None:
    script = '"$0" "$@" | head -1 >/dev/null; echo "${PIPESTATUS[0]}"'
    done = subprocess.run(["bash", "-c", script, *COMMAND, *words], capture_output=True, text=True, timeout=300)
    assert (done.stdout.strip(), done.stderr) == ("0", "")


@pytest.mark.parametrize(("target", "code", "said"), [("&-", 0, ""), ("/dev/full", 2, "No space left on device")])
def test_output_that_cannot_be_written_is_said_in_one_line(target: str, code: int, said: str) -> None:
    script = f'"$0" argv {ULTRA} --rank 0 >{target}'
    done = subprocess.run(["bash", "-c", script, *COMMAND], capture_output=True, text=True, timeout=300)
    assert done.returncode == code and said in done.stderr and done.stderr.count("\n") <= 1


def test_a_finding_is_one_line_for_grep() -> None:
    done = run("lint", ULTRA, "--set", "launch.moe_runner_backend=triton")
    assert any(" error " in line and "[nvfp4-ep-blockwise-moe]" in line for line in done.stdout.splitlines())


def test_names_that_no_file_system_takes_are_refused() -> None:
    for words in (("plan", "a" * 5000), ("fabric", "-i", "a" * 5000), ("evidence", "score", "a" * 5000)):
        assert run(*words).returncode == 2, words


def test_a_users_profile_may_live_anywhere_and_extend_a_shipped_one(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yml"
    mine.write_text(f"extends: {ULTRA}\nsummary: mine\nlaunch: {{context_length: 131072}}\n")
    words = data("argv", str(mine), "--rank", "0")
    assert words[words.index("--context-length") + 1] == "131072" and "--moe-runner-backend" in words


def test_a_cluster_that_does_not_answer_is_no_bug_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    from kubernetes.client import ApiException

    from sparkloom.cli import program

    assert program._unforeseen(ApiException(status=403, reason="Forbidden")) == 2
    told = capsys.readouterr().err
    assert told.startswith("sparkloom: the cluster's API answers 403 Forbidden") and told.count("\n") == 1
    assert program._unforeseen(KeyError("x")) == 70 and "a bug of ours" in capsys.readouterr().err
