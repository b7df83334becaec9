"""`-- ENGINE WORDS` supervises; `status` tells what the supervisor of this pod wrote."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path

from sparkloom.base import json_text
from sparkloom.onnode.rank import reading
from sparkloom.onnode.rank.plan import ADDRESS, CONFIG, PLAN, RANK, GroupPlan
from sparkloom.onnode.rank.status_log import STATUS, StatusLog

DEFAULT_PLAN = "/sparkloom/plan.json"
USAGE = "usage: python3 /sparkloom/rank -- ENGINE WORDS | status"


def main(words: list[str]) -> int:
    try:
        plan = GroupPlan.read(os.environ.get(PLAN, DEFAULT_PLAN))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"sparkloom: {os.environ.get(PLAN, DEFAULT_PLAN)} is no plan of a group: {error}", flush=True)
        return 2
    if words == ["status"]:
        print(json.dumps(json_text.kept(Path(plan.run) / STATUS) or None, indent=1))
        return 0
    if words[:1] != ["--"] or len(words) < 2:
        print(USAGE, file=sys.stderr)
        return 2
    return asyncio.run(_supervise(plan, words[1:]))


async def _supervise(plan: GroupPlan, words: list[str]) -> int:
    """Ends the process itself: a question to the engine may still wait in a thread, and nothing waits for it."""
    from sparkloom.onnode.rank import probes
    from sparkloom.onnode.rank.group import Identity
    from sparkloom.onnode.rank.life import Life

    rank = int(os.environ.get(RANK, "0"))
    environment = {key: value for key, value in os.environ.items() if key not in (RANK, CONFIG, PLAN, ADDRESS)}
    log = StatusLog(plan, rank)
    file = Path(os.environ.get(PLAN, DEFAULT_PLAN))
    log.status["read"] = reading.seen(file, Path(sys.argv[0]), plan.given)
    if plan.probe_port:
        probes.start(log, os.environ.get(ADDRESS, ""), plan.probe_port)
    me = Identity(rank, os.environ.get(CONFIG, ""), await asyncio.to_thread(build, words[0]))
    code = await Life(plan, me, words, environment, log).live()
    sys.stdout.flush()
    os._exit(code)


def build(program: str) -> str:
    """What software this image has, which differs when a tag was moved: names and sizes of what pip recorded, and of
    the libraries beside a program that is named by its path, which pip does not know."""
    digest = hashlib.sha256(sys.version.encode())
    for folder in sorted({Path(entry) for entry in sys.path if entry.endswith("-packages")}):
        for record in sorted(folder.glob("*.dist-info/RECORD")):
            digest.update(f"{record.parent.name} {record.stat().st_size}\n".encode())
    for library in sorted(Path(program).parent.glob("*.so*")) if Path(program).is_absolute() else ():
        digest.update(f"{library.name} {library.stat().st_size}\n".encode())
    return digest.hexdigest()[:12]
