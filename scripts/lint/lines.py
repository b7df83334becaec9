"""Lines of code by room: those that hold a token other than a comment.

python scripts/lint/lines.py [FOLDER...]
"""

from __future__ import annotations

import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOTS = ("scripts/sparkloom", "plugins")
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


def of(path: Path) -> int:
    with path.open("rb") as stream:
        told = [token for token in tokenize.tokenize(stream.readline) if token.type not in SILENT]
    return len({line for token in told for line in range(token.start[0], token.end[0] + 1)})


def rooms(root: Path) -> Counter[str]:
    counted: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root).parts
        counted[inside[0] if root.name == "sparkloom" else root.name] += of(path)
    return counted


def main() -> None:
    counted = sum((rooms(Path(root)) for root in sys.argv[1:] or ROOTS), Counter[str]())
    named = ", ".join(f"{room} {lines:,}" for room, lines in counted.most_common())
    print(f"{counted.total():,} lines of code: {named}")


if __name__ == "__main__":
    main()
