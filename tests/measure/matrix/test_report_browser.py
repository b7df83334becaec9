"""The report in a real browser, where there is one: nothing sticks out, plots have a size, no complaint is logged."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sparkloom.measure.matrix import report
from tests.measure.matrix.test_matrix import SPEC, cells_of, put

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
# The report in a frame of a given width; what the browser made of it becomes the title.
FRAME = """<title>none</title><iframe src="PAGE" style="width: WIDTHpx; height: 900px; border: 0"></iframe>
<script>
document.querySelector("iframe").onload = (event) => {
  const root = event.target.contentDocument.documentElement;
  const sizes = [...root.querySelectorAll(".bars, .map")].map((svg) => svg.getBoundingClientRect());
  document.title = JSON.stringify({
    wide: root.scrollWidth, plots: sizes.length,
    empty: sizes.filter((size) => size.width < 50 || size.height < 20).length,
    texts: [...root.querySelectorAll(".bars th, .map td:not(:empty)")]
      .filter((text) => text.getBoundingClientRect().height < 9).length,
  });
};
</script>"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no chromium here")]


@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_as_a_browser_lays_it_out(tmp_path: Path, width: int) -> None:
    spec = tmp_path / "grid.yml"
    spec.write_text(SPEC)
    runnable = [cell for cell in cells_of(spec) if not cell.skipped]
    for number, cell in enumerate(runnable):
        put(tmp_path / "grid", cell, rate=40.0 + number)
    put(tmp_path / "grid", runnable[0], "startup_crash", levels=[], trace_tail="word " * 80)
    page = Path(report.write(spec)["files"][1])
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.replace("PAGE", page.name).replace("WIDTH", str(width)))
    done = subprocess.run(
        [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
         f"--user-data-dir={tmp_path / 'browser'}", "--enable-logging=stderr", "--virtual-time-budget=3000",
         "--window-size=1400,1000", "--dump-dom", frame.as_uri()],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    found = re.search(r"<title>(\{.*?\})</title>", done.stdout)
    assert found, done.stderr[-2000:]
    seen = json.loads(found[1])
    assert seen["wide"] <= width, "the page scrolls sideways"
    assert seen["plots"] >= 3 and seen["empty"] == 0 and seen["texts"] == 0, seen
    assert "CONSOLE" not in done.stderr
