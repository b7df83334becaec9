"""`sparkloom import` and `export` as scripts call them: shapes, exit statuses, one screen, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests import public_models
from tests.cli.test_cli import data, run

RECIPE = """
recipe_version: "2"
model: nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4
runtime: vllm
container: vllm/vllm-openai:v0.19.0
max_nodes: 1
mods: [mods/some-fix]
defaults: {port: 8000, tensor_parallel: 1, max_model_len: 65536}
env: {VLLM_ALLOW_LONG_MAX_MODEL_LEN: "1"}
command: |
  vllm serve {model} --port {port} -tp {tensor_parallel} \\
    --max-model-len {max_model_len} --gpu-memory-utilization 0.8 --max-num-seqs 4
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


def test_the_contract(recipe: Path) -> None:
    taken = data("import", str(recipe))
    assert {"profile", "remainder", "verdict"} <= set(taken)
    assert {"parser", "findings", "fits"} <= set(taken["verdict"]) and taken["verdict"]["fits"] is True
    assert all(set(left) == {"what", "why"} for left in taken["remainder"])
    assert "mods: mods/some-fix" in {left["what"] for left in taken["remainder"]}
    assert taken["profile"]["launch"]["max_model_len"] == 65536


def test_findings_are_exit_status_one_and_the_unreadable_is_two(recipe: Path, tmp_path: Path) -> None:
    bad = RECIPE.replace("--gpu-memory-utilization 0.8", "--kv-cache-dtype fp9")
    assert run("import", "-", stdin=bad).returncode == 1
    for text in ("", "hello", "recipe_version: '2'\nmodel: [\n", "\x00\x01"):
        done = run("import", "-", stdin=text)
        assert done.returncode == 2 and done.stderr.startswith("-:"), done.stderr
    for name in (str(tmp_path), str(tmp_path / "missing.yaml")):
        assert run("import", name).returncode == 2
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    assert "save it as UTF-8" in run("import", str(tmp_path / "bytes")).stderr
    (tmp_path / "bytes").write_bytes(RECIPE.replace("\n", "\r\n").encode("utf-16"))  # as Windows redirects it
    assert run("import", str(tmp_path / "bytes")).returncode == 0
    assert "paste it into" in run("import", "https://example.org/recipe.yaml").stderr


def test_what_is_written_is_a_profile_that_plan_reads(recipe: Path, tmp_path: Path) -> None:
    written = tmp_path / "mine.yml"
    assert run("import", str(recipe), "-o", str(written)).returncode == 0
    assert data("plan", str(written))["fits"] is True
    assert run("import", str(recipe), "-o", "-").stdout == written.read_text()
    assert run("import", str(recipe), "-o", str(written)).stderr == f"wrote {written}\n"
    other = run("import", "-", "-o", str(written), stdin=RECIPE.replace("65536", "32768"))
    assert other.stderr == f"wrote {written}, in place of what it held\n"


def test_one_screen_says_what_will_not_start_and_why(recipe: Path) -> None:
    shown = run("import", "-", stdin=RECIPE.replace("--gpu", "--chat-template x.jinja --gpu"))
    assert "may not start: chat_template x.jinja is a file of the author's" in shown.stdout.split("\n")[0]
    assert shown.returncode == 0 and "file-of-the-author" in shown.stdout and len(shown.stdout.splitlines()) < 40
    assert "mods/some-fix" in shown.stdout and "its parser takes it" in shown.stdout


def test_of_an_engine_that_is_not_served_nothing_is_counted() -> None:
    text = "model: o/n\nruntime: atlas\ncontainer: a:1\ndefaults: {max_model_len: 4096}\n"
    shown = run("import", "-", stdin=text).stdout
    assert "\n  atlas; not judged" in shown and "memory unknown: atlas is" in shown
    uncertain = run("import", "-", stdin="vllm serve MiniMaxAI/MiniMax-M2.7 -tp 2").stdout
    assert "memory uncertain: by facts that are a guess, " in uncertain


STRANGER = """
recipe_version: "2"
model: stranger/Moonbeam-77B-A5B-NVFP4
runtime: vllm
container: ghcr.io/stranger/vllm-moon:nightly
defaults: {tensor_parallel: 3}
env: {VLLM_MOONBEAM: "1"}
command: vllm serve {model} -tp {tensor_parallel} --moonbeam-mode fast --moonbeam-depth 3
"""


def test_a_strangers_model_on_a_strangers_fork_is_named_word_by_word() -> None:
    """Of such a model nobody knows heads that a tensor group could share: once that was asked all the same."""
    shown = run("import", "-", stdin=STRANGER)
    first = shown.stdout.splitlines()[0]
    assert shown.returncode == 0 and shown.stderr == ""
    assert first == "stranger/Moonbeam-77B-A5B-NVFP4  may not start: no facts of it here"
    assert "its parser takes all but 2 flags" in shown.stdout
    unknown = data("import", "-", stdin=STRANGER)["verdict"]["unknown"]
    told = [one["what"] for one in unknown]
    assert told == [
        "model stranger/Moonbeam-77B-A5B-NVFP4", "image ghcr.io/stranger/vllm-moon:nightly", "release",
        "--moonbeam-mode fast", "--moonbeam-depth 3", "env VLLM_MOONBEAM",
    ]  # fmt: skip
    assert all(f"\n  ~ {one['what']}: {one['why']}; instead: " in shown.stdout for one in unknown)


def test_a_models_config_gives_its_facts(tmp_path: Path) -> None:
    """A config.json, its folder, or that file saved under another name; a wrong path asks no hub."""
    config = public_models.folder("openai--gpt-oss-120b") / "config.json"
    known = STRANGER.replace("parallel: 3", "parallel: 4")
    alone = tmp_path / "moonbeam.json"
    alone.write_bytes(config.read_bytes())
    for words in (["--config", str(config)], ["--config", str(config.parent)], ["--config", str(alone)]):
        verdict = data("import", "-", *words, stdin=known)["verdict"]
        assert verdict["plan"]["memory"] and not verdict["reason"].startswith("unknown")
    old = data("import", "-", "--facts", str(config.parent), stdin="vllm serve stranger/Moonbeam")
    assert old["verdict"]["facts"]["source"] == f"config.json in {config.parent}"
    wrong = run("import", "-", "--config", "org/name", stdin=STRANGER)
    assert wrong.returncode == 2 and "no config.json here" in wrong.stderr
    alone.write_text("{")
    assert run("import", "-", "--config", str(alone), stdin=STRANGER).stderr.startswith(f"{alone}:1:")


@pytest.mark.parametrize("form", ["sparkrun", "compose", "commands"])
def test_an_export_is_imported_again(form: str, tmp_path: Path) -> None:
    name = "nvidia--nemotron-3-super-120b-a12b-nvfp4--vllm-1node"
    path = tmp_path / "out"
    done = run("export", name, "--as", form, "-o", str(path))
    assert done.returncode == 0 and not done.stdout
    profile = data("import", str(path), code=0)["profile"]
    assert profile["summary"] == yaml.safe_load(Path(f"model_profiles/{name}.yml").read_text())["summary"]


def test_an_export_of_what_fails_is_refused_and_forced_by_name() -> None:
    words = (
        "export",
        "nvidia--nemotron-3-ultra-550b-a55b-nvfp4",
        "--as",
        "commands",
        "--set",
        "launch.moe_runner_backend=triton",
    )
    assert run(*words).returncode == 1
    forced = run(*words, "--force")
    assert forced.returncode == 0 and "forced past" in forced.stderr and "docker run" in forced.stdout


def test_an_unknown_form_is_refused() -> None:
    done = run("export", "nvidia--glm-4.7-nvfp4", "--as", "helm")
    assert done.returncode == 2 and "sparkrun" in done.stderr
