"""The grid: its cells, what the rules skip, what a result may claim, and what the report makes of it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.measure.matrix import grid as grids
from sparkloom.measure.matrix import report
from sparkloom.measure.matrix import spec as specs

PROFILE = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
SPEC = f"""name: grid
profile: {PROFILE}
axes:
  launch.moe_runner_backend: [flashinfer_cutlass, triton]
  launch.mem_fraction_static: [0.85, 0.88, 0.9, 0.92]
  launch.attention_backend: [flashinfer, triton]
excludes:
  - {{launch.moe_runner_backend: triton, launch.attention_backend: triton}}
bench: {{concurrency: [1, 4, 8]}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "grid.yml"
    path.write_text(SPEC)
    (tmp_path / "grid").mkdir()
    return path


def cells_of(spec: Path, **options: Any) -> list[specs.Cell]:
    return specs.cells(*specs.load(spec), **options)


def level(n: int, rate: float, **changes: Any) -> dict[str, Any]:
    known = {"concurrency": n, "requests": n, "ok": n, "sum_tok_s": rate, "ttft_ms": {"p50": 1500.0, "mean": 1600.0}}
    return {**known, "guard": {"verdict": "ok"}, "unread": 1, **changes}


def put(folder: Path, cell: specs.Cell, status: str = "ok", rate: float = 42.0, **changes: Any) -> None:
    levels = [level(1, rate / 4.2), level(4, rate * 0.69), level(8, rate)]
    result = {
        "id": cell.id,
        "profile": PROFILE,
        "settings": cell.settings,
        "status": status,
        "levels": levels,
        **changes,
    }
    folder.mkdir(exist_ok=True)
    (folder / f"{cell.id}.json").write_text(json.dumps(result))


def test_cells_are_the_product_without_the_excluded(spec: Path) -> None:
    cells = cells_of(spec)
    assert len(cells) == 2 * 4 * 2 - 4
    assert [cell.number for cell in cells] == list(range(1, 13))
    assert len({cell.id for cell in cells}) == 12
    assert cells[0].settings == {
        "launch.moe_runner_backend": "flashinfer_cutlass",
        "launch.mem_fraction_static": 0.85,
        "launch.attention_backend": "flashinfer",
    }


def test_what_is_known_to_fail_is_skipped_with_the_rule(spec: Path) -> None:
    cells = {tuple(cell.settings.values()): cell for cell in cells_of(spec)}
    assert cells["flashinfer_cutlass", 0.9, "flashinfer"].rules == ()
    assert "nemotronh-triton-attention" in cells["flashinfer_cutlass", 0.9, "triton"].rules
    assert cells["flashinfer_cutlass", 0.85, "flashinfer"].skipped
    assert not any(cell.skipped for cell in cells_of(spec, try_known_bad=True))
    assert cells["flashinfer_cutlass", 0.9, "flashinfer"].bounds[8] == pytest.approx(8 * 17.0, rel=0.05)


def test_ids_stay_when_axes_grow_and_when_order_changes(spec: Path) -> None:
    before = {cell.id for cell in cells_of(spec)}
    spec.write_text(SPEC.replace("[0.85, 0.88, 0.9, 0.92]", "[0.94, 0.92, 0.9, 0.88, 0.85]"))
    after = {cell.id for cell in cells_of(spec)}
    assert before < after
    assert specs.cell_id("a", {"launch.x": 1}) != specs.cell_id("a", {"launch.x": True})
    assert specs.cell_id("a", {"launch.x": 1, "env.Y": "b"}) == specs.cell_id("a", {"env.Y": "b", "launch.x": 1})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  launch.moe_runner_backend: [", "  moe_runner_backend: [", "is no axis"),
        ("[0.85, 0.88, 0.9, 0.92]", "[0.85, 0.85]", "names a value twice"),
        ("[0.85, 0.88, 0.9, 0.92]", "[]", "has no value"),
        ("launch.attention_backend: triton}", "launch.attention_backend: fa3}", "can never match"),
        ("concurrency: [1, 4, 8]", "concurency: [1]", "unknown key"),
        ("name: grid", "name: Über", "name"),
        (PROFILE, "nvidia--nemotron-3-ultra-550b-a55b-nvfp5", "no such profile"),
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused(spec: Path, old: str, new: str, words: str) -> None:
    spec.write_text(SPEC.replace(old, new))
    with pytest.raises(InputError, match=words):
        cells_of(spec)


def test_excluding_everything_is_refused(spec: Path) -> None:
    spec.write_text(re.sub(r"excludes:\n.*\n", "excludes: [{}]\n", SPEC))
    with pytest.raises(InputError, match="no cell is left"):
        cells_of(spec)


def test_a_cell_that_cannot_be_launched_is_skipped_alone(spec: Path) -> None:
    axes = SPEC.replace("launch.attention_backend: [flashinfer, triton]", "launch.parallel.tp: [4, 3]")
    spec.write_text(re.sub(r"excludes:\n.*\n", "", axes))
    for cell in cells_of(spec, try_known_bad=True):
        assert cell.rules == (("invalid",) if cell.settings["launch.parallel.tp"] == 3 else ())
    spec.write_text(spec.read_text().replace("[4, 3]", "[5, 3]"))
    with pytest.raises(InputError, match="no cell can be launched"):
        cells_of(spec)


def test_results(spec: Path) -> None:
    folder, cell = spec.parent / "grid", cells_of(spec)[2]
    put(folder, cell)
    assert specs.read_results(folder)[cell.id].levels[2].sum_tok_s == 42.0
    put(folder, cell, levels=[])
    with pytest.raises(InputError, match="a cell without a measurement is not ok"):
        specs.read_results(folder)
    put(folder, cell, status="fine")
    with pytest.raises(InputError, match=rf"{cell.id}.json.*status"):
        specs.read_results(folder)
    (folder / "torn.json").write_text('{"id": ')
    with pytest.raises(InputError, match=r"torn\.json"):
        specs.read_results(folder)


def grid(spec: Path) -> grids.Grid:
    loaded, text = specs.load(spec)
    return grids.collect(loaded, specs.cells(loaded, text), specs.read_results(spec.parent / "grid"), {})


def test_the_winner_is_the_fastest_of_those_with_everything_fine(spec: Path) -> None:
    folder = spec.parent / "grid"
    by = {tuple(cell.settings.values()): cell for cell in cells_of(spec)}
    fine, partial, garbage, beyond = (
        by["flashinfer_cutlass", value, "flashinfer"] for value in (0.88, 0.9, 0.92, 0.85)
    )
    put(folder, fine, rate=42.0)
    put(folder, partial, levels=[level(1, 10), level(4, 30), level(8, 47, ok=7)])
    put(
        folder, garbage, levels=[level(1, 10), level(4, 30), level(8, 50, guard={"verdict": "garbage", "kind": "loop"})]
    )
    put(folder, beyond, rate=143.0)
    seen = grid(spec)
    status = {row.cell.id: row.status for row in seen.cells}
    assert status[fine.id] == "ok" and status[partial.id] == "partial"
    assert status[garbage.id] == "garbage" and status[beyond.id] == "garbage"
    assert seen.winner is not None and seen.winner.cell.id == fine.id
    note = next(row.notes for row in seen.cells if row.cell.id == beyond.id)
    assert "memory allows" in note[0]
    put(folder, partial, levels=[level(1, 10), level(4, 30), level(8, 50, at_once=4)])
    seen = grid(spec)
    assert seen.winner is not None and seen.winner.cell.id == fine.id  # half of its requests waited for their turn
    put(folder, partial, status="bench_crash")
    put(folder, fine, status="bench_crash")
    assert grid(spec).winner is None


def test_report_files(spec: Path, tmp_path: Path) -> None:
    folder, earlier = tmp_path / "grid", tmp_path / "earlier"
    known = {
        "model": "m<1>",
        "transport": {"verdict": "roce", "why": "every rank: RoCE over two"},
        "rails": {"planned": {"a": {"pf": "enp1s0f0np0", "mtu": 9000}}},
    }
    runnable = [cell for cell in cells_of(spec) if not cell.skipped]
    for number, cell in enumerate(runnable):
        put(folder, cell, rate=40.0 + number, provenance=known)
        put(earlier, cell, rate=44.0, provenance=known)
    crashed = runnable[0]
    put(
        folder,
        crashed,
        "startup_crash",
        levels=[],
        trace_tail="Traceback\nAssertionError: <n> \"q\" & 's'",
        matched_rules=["a-rule"],
    )
    put(folder, specs.Cell(99, "stranger", {"launch.x": 1}))
    spec.write_text(SPEC + "baseline: earlier\n")
    told = report.write(spec, None, tmp_path / "out")
    assert told["cells"] == 12 and told["counts"]["startup_crash"] == 1 and told["strangers"] == ["stranger"]
    assert told["winner"] == runnable[-1].id and crashed.id in told["regressions"]
    text, html = (Path(file).read_text() for file in told["files"])
    assert "| n=1 tok/s | n=4 tok/s | n=8 tok/s | n=8 ok | n=8 TTFT s |" in text
    assert "- transport: roce: every rank: RoCE over two\n- rails: a: enp1s0f0np0, MTU 9000\n" in text
    assert "## Winner" in text and f"`{runnable[-1].id}`" in text and "AssertionError: <n>" in text
    assert "nemotronh-triton-attention" in text.split("## Skipped")[1] and "ok → startup_crash" in text
    check_page(html)


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "link", "img", "rect", "circle", "line", "polyline"):
            self.open.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href")]
        assert tag not in ("script", "link", "img", "iframe")

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect", "circle", "line", "polyline"):
            assert self.open.pop() == tag


def check_page(html: str) -> None:
    """One file that loads nothing, every element closed, every plot well-formed, what was measured escaped."""
    page = Page()
    page.feed(html)
    assert page.open == [] and page.links == []
    assert "url(" not in html and "@import" not in html
    assert html.count('<table class="bars">') == 2 and html.count('<table class="map">') >= 1 and html.count("★") == 1
    assert "AssertionError: &lt;n&gt; &#34;q&#34; &amp; &#39;s&#39;" in html and "m&lt;1&gt;" in html
    assert "{{" not in html and "{%" not in html


def test_what_preflight_refused_is_shown_with_its_reason(spec: Path) -> None:
    cell = next(cell for cell in cells_of(spec) if not cell.skipped)
    put(spec.parent / "grid", cell, "skipped", levels=[], note="preflight <refused> the profile")
    text, html = (Path(file).read_text() for file in report.write(spec)["files"])
    assert "preflight &lt;refused> the profile" in text.split("## Skipped")[1]
    assert "preflight &lt;refused&gt; the profile" in html.split("Skipped as known")[1]


def test_an_empty_folder_still_reports(spec: Path) -> None:
    told = report.write(spec)
    assert told["winner"] is None and told["counts"]["not run"] + told["counts"]["skipped"] == 12
    with pytest.raises(InputError, match="no such folder"):
        report.write(spec, spec.parent / "nowhere")
