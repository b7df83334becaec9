"""Stubs change a whole process, so each test runs a small program of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.places import REPO

SCRIPTS = REPO / "scripts"


def run(program: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    text = f"import sys; sys.path.insert(0, {str(SCRIPTS)!r})\nfrom oracle import stubs\n{program}"
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, cwd=folder)


def check(program: str, folder: Path | None = None) -> None:
    done = run(program, folder)
    assert done.returncode == 0, done.stderr


def test_a_stub_is_whatever_the_code_needs_and_never_true() -> None:
    check(
        """
stubs.install(["torch"], {}, {})
import torch, torch.nn.functional as F
from torch.distributed import ReduceOp
class Layer(torch.nn.Module):
    def __init__(self, size): super().__init__(); self.size = size
assert Layer(3).size == 3 and not Layer(3).weight
@torch.compile
def f(x: torch.Tensor | None) -> int: return 7
assert f(None) == 7
@torch.library.custom_op("a::b", mutates_args=())
def g(): return 8
assert g() == 8
assert not torch.anything and not torch.cuda.device_count() > 1 and int(ReduceOp.SUM) == 0 and list(torch.x) == []
with torch.inference_mode(): pass
assert stubs.is_stub(torch.float16) and not stubs.is_stub(Layer) and not stubs.is_stub(3)
"""
    )


def test_fixed_answers_win_and_absent_attributes_are_absent() -> None:
    answers = '{"torch.cuda.is_available": lambda: False, "torch.npu": stubs.ABSENT, "torch.version.cuda": None}'
    check(
        f"""
stubs.install(["torch"], {answers}, {{}})
import torch
assert torch.cuda.is_available() is False and torch.version.cuda is None and not hasattr(torch, "npu")
import torch.cuda
assert torch.cuda.is_available() is False
"""
    )


def test_a_package_outside_the_list_stays_an_import_error() -> None:
    done = run('stubs.install(["torch"], {}, {})\nimport a_package_that_nobody_listed')
    assert "ModuleNotFoundError: No module named 'a_package_that_nobody_listed'" in done.stderr


def test_a_stub_goes_in_front_of_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('the installed one')\n")
    check('sys.path.insert(0, ".")\nstubs.install(["torch"], {}, {})\nimport torch', tmp_path)


def test_an_engine_module_can_be_emptied_and_its_submodules_stay_real(tmp_path: Path) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("raise SystemExit('the real one')\n")
    (tmp_path / "engine" / "part.py").write_text("x = 5\n")
    check('stubs.install([], {}, {"engine": "engine"})\nimport engine.part\nassert engine.part.x == 5', tmp_path)


def test_a_stubbed_package_says_a_version_where_a_release_asks_what_is_installed() -> None:
    check(
        """
stubs.install(["transformers"], {}, {}, {"transformers": "5.12.1"})
from importlib.metadata import PackageNotFoundError, version
assert version("transformers") == "5.12.1"
try: version("a-package-that-nobody-listed")
except PackageNotFoundError: pass
else: raise SystemExit("an answer for a package that nobody listed")
"""
    )
