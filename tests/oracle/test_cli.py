"""The oracle's command line refuses in one sentence, and its exit status says which kind of refusal it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.oracle import fetch, refresh
from tests.places import REPO

ROOT = REPO
ENVIRON = "class EnvField: ...\nclass Envs: ...\n"
SERVER_ARGS = """
class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", required=True)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with one made-up release, and its small dependencies taken for installed."""
    folder = tmp_path / "sglang-9.9.9" / "sglang" / "srt"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    (folder / "server_args.py").write_text(SERVER_ARGS)
    (folder / "environ.py").write_text(ENVIRON)
    needs = fetch.dependency_dir("sglang", tmp_path)
    needs.mkdir()
    (needs / "complete").write_text("")
    return tmp_path


def oracle(cache: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "oracle"), "--cache", str(cache), *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, env={"PIP_NO_INDEX": "1"})


def test_judge_says_yes_and_no_by_its_exit_status(cache: Path) -> None:
    assert oracle(cache, "judge", "sglang", "9.9.9", "--", "--model-path", "m").returncode == 0
    refused = oracle(cache, "judge", "sglang", "9.9.9", "--", "--tp", "4")
    assert refused.returncode == 1 and "required: --model-path" in refused.stdout


@pytest.mark.parametrize(
    ("line", "said"), [("{bad", "line 2"), ('{"x": 1}', "list of words"), ("[1]", "list of words")]
)
def test_batch_names_the_line_that_it_cannot_read(cache: Path, line: str, said: str) -> None:
    done = oracle(cache, "batch", "sglang", "9.9.9", text=f'["--model-path", "m"]\n{line}\n')
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_a_new_import_and_a_new_shape_are_named(cache: Path) -> None:
    file = cache / "sglang-9.9.9" / "sglang" / "srt" / "server_args.py"
    file.write_text("import brand_new_package\n" + SERVER_ARGS)
    done = oracle(cache, "catalog", "sglang", "9.9.9")
    assert done.returncode == 2 and "'brand_new_package', which is neither stubbed nor installed" in done.stderr
    file.write_text(SERVER_ARGS.replace("required=True", "type=lambda text: text * 2"))
    done = oracle(cache, "catalog", "sglang", "9.9.9")
    assert done.returncode == 2 and "is built in a way that is new here: --model-path" in done.stderr


def test_a_release_that_cannot_be_had_has_a_status_of_its_own(cache: Path) -> None:
    done = oracle(cache, "judge", "sglang", "9.9.8", "--", "--model-path", "m")
    assert done.returncode == 3 and "No matching distribution" in done.stderr


def test_refresh_leaves_catalogs_kept_by_hand_alone() -> None:
    engines = {engine for engine, _ in refresh.known()}
    assert engines == {"sglang", "vllm"}
