"""What a rank tells of its files is the hash that the controller has of what it rendered."""

from __future__ import annotations

from pathlib import Path

from sparkloom import case
from sparkloom.onnode.rank import reading
from sparkloom.render import pack
from sparkloom.render.manifests import files, supervision

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


def test_a_rank_tells_the_hash_of_what_was_rendered_and_another_for_an_edit(tmp_path: Path) -> None:
    launch = case.judge(ULTRA).launch
    told = supervision.contents(launch, "refuse")
    program, plan = tmp_path / "rank", tmp_path / "plan.json"
    program.write_bytes(pack.program("rank").archive)
    for name, text in told.items():
        (tmp_path / name).write_text(text)
    given = files.contents(launch)
    assert supervision.plan(launch, "refuse")["given"] == sorted(given)
    mounted = {path: tmp_path / files.key(path) for path in given}
    for path, text in given.items():
        mounted[path].write_text(text)
    seen = {path: file.read_bytes() for path, file in mounted.items()}
    ours = {name: (tmp_path / name).read_bytes() for name in ("plan.json", "rules.json", "rank")}
    assert reading.digest({**seen, **ours}) == supervision.read(launch, "refuse")
    before = reading.seen(plan, program, ())
    plan.write_text(plan.read_text().replace("30000", "30001").replace("20001", "20002"))
    assert reading.seen(plan, program, ()) != before != reading.seen(plan, program, ["/not/there"])
