"""A crash of ours is one line and one file, which says enough to be mended and nothing of the person's environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# what a slip of ours would do, in the program as it is installed
SLIP = """
import sys
from sparkloom.judge import profile_status
def listing():
    return {}["slip"]
profile_status.listing = listing
sys.argv = ["sparkloom", "profiles", "--json"]
from sparkloom.cli.program import main
main()
"""


def crashed(home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.environ["PATH"], "HOME": str(home), "HF_TOKEN": "hf_secret", **env}
    return subprocess.run([sys.executable, "-c", SLIP], capture_output=True, text=True, env=given, timeout=300)


def test_it_leaves_one_file_that_its_line_names(tmp_path: Path) -> None:
    done = crashed(tmp_path)
    (report,) = (tmp_path / ".local/state/sparkloom/crashes").iterdir()
    assert done.returncode == 70 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "unexpected KeyError" in done.stderr and "a bug of ours" in done.stderr and str(report) in done.stderr
    text = report.read_text()
    assert text.startswith("$ sparkloom profiles --json\nsparkloom ") and "in listing" in text
    assert "hf_secret" not in text and report.stat().st_mode & 0o777 == 0o600


def test_it_goes_where_a_person_keeps_state(tmp_path: Path) -> None:
    done = crashed(tmp_path / "home", XDG_STATE_HOME=str(tmp_path / "state"))
    assert done.returncode == 70 and str(tmp_path / "state/sparkloom/crashes") in done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("state", ["/proc/none", "/dev/full"])
def test_where_nothing_can_be_written_the_line_still_says_how_to_see_it(tmp_path: Path, state: str) -> None:
    done = crashed(tmp_path, XDG_STATE_HOME=state)
    assert done.returncode == 70 and done.stderr.count("\n") == 1 and "SPARKLOOM_DEBUG=1" in done.stderr


def test_a_run_of_tests_is_red_when_any_of_them_saw_one(tmp_path: Path) -> None:
    """Whatever the test itself asserts, in a lane of its own too."""
    (tmp_path / "conftest.py").write_text("from tests.crashes import pytest_configure, pytest_sessionfinish  # noqa\n")
    (tmp_path / "slip.py").write_text(SLIP)
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys\n"
        "def test_nobody_looks():\n"
        f"    subprocess.run([sys.executable, {json.dumps(str(tmp_path / 'slip.py'))}])\n"
    )
    words = ["-q", "-p", "no:cacheprovider", "-n", "1", "--rootdir", str(tmp_path), str(tmp_path)]
    kept = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}
    env = {**kept, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], capture_output=True, text=True, env=env, timeout=180
    )
    assert done.returncode == 1 and "1 passed" in done.stdout, done.stdout + done.stderr
    assert "reproduce: sparkloom profiles --json" in done.stdout and "KeyError" in done.stdout
