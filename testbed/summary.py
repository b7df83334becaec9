"""The demo's last lines: what was answered, how fast, over which rails, and where the run is kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    folder, profile = Path(sys.argv[1]), sys.argv[2]
    answer = json.loads((folder / f"{profile}.answer.json").read_text())
    transport = json.loads((folder / f"{profile}.transport.json").read_text())
    print(f"model      {answer['model']} (served by the stand-in engine: its pace is no measurement)")
    print(f"answer     {' '.join((answer['reasoning'] + ' ' + answer['text']).split())[:150]}...")
    print(f"speed      {answer['tokens']} tokens at {answer['tokens_per_second']:.1f} tok/s")
    print(f"transport  {transport.get('verdict', 'none planned')}: {transport.get('why', '')}")
    print(f"kept in    {folder}/{profile}.{{yaml,answer.json,transport.json}}")


if __name__ == "__main__":
    main()
