"""What `make demo` has shown of one model: what was answered, how fast, over which rails, by whose word it may start.

python -m testbed.face.summary INVENTORY PROFILE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sparkloom import case
from sparkloom.inputs import profile as profiles
from sparkloom.site import logs, status
from testbed.standins.hub import smollm

ACCEPTED = "accepted the command line"  # the stand-in's words (testbed/standins/engine/standin/main.py)


def parsers(inventory: str) -> dict[str, str]:
    """What each rank's log says of the engine's own parser: {rank: its words}."""
    words = {}
    for rank in status.status(inventory)["ranks"]:
        lines = logs.logs(inventory, int(rank["rank"]), follow=False, previous=False)
        accepted = [line for line in lines if ACCEPTED in line]
        words[rank["rank"]] = accepted[-1].split("no GPU here; ")[-1] if accepted else "nothing"
    return words


def server(profile: str) -> str:
    """By what the answer was made: the engine itself, or what stands in for it."""
    loaded = profiles.load(profile).profile
    if smollm.known(loaded.model.id):
        return f"{loaded.engine.name} {loaded.engine.release} itself on CPU: its own words"
    return "the stand-in engine: its pace is no measurement"


def main() -> None:
    inventory, profile = sys.argv[1:3]
    folder = Path("build") / case.cluster(inventory).name
    answer = json.loads((folder / f"{profile}.answer.json").read_text())
    transport = json.loads((folder / f"{profile}.transport.json").read_text())
    heard = parsers(inventory)
    print(f"model      {answer['model']} (served by {server(profile)})")
    for words in sorted(set(heard.values()) - {"nothing"}):
        print(f"command    rank {', '.join(rank for rank in heard if heard[rank] == words)}: {words}")
    for name, text in (("thinking", answer["reasoning"]), ("answer", answer["text"])):
        if text:
            print(f"{name:<10} {' '.join(text.split())[:150]}...")
    print(f"speed      {answer['tokens']} tokens at {answer['tokens_per_second']:.1f} tok/s")
    print(f"transport  {transport.get('verdict', 'none planned')}: {transport.get('why', '')}")
    print(f"kept in    {folder}/{profile}.{{yaml,answer.json,transport.json}}")


if __name__ == "__main__":
    main()
