"""Lines of an engine's log: without what others put in front of them, and which of them say most.

Standard library only: `sparkloom diagnose` reads whole logs with it, and each rank's supervisor its own engine's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# an escape that was copied from a page is "^[[31m", or has lost its escape
ANSI = re.compile(r"(?:\x1b|\^\[)\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\r|\[(?:\d{1,2};)?\d{1,2}m")
# "[rank3]: ", "[rank 1 epoch 2] ", "(EngineCore pid=94) ", "[2026-06-01 10:00:00 TP0 EP0] ", "spark2:123:456 [0] ",
# "ERROR 06-01 10:00:00 [core.py:9] ", and what Docker, Kubernetes, compose and journald write before them
PREFIX = re.compile(
    r"^\s*(?:"
    r"\[(?:sparkloom )?rank\s?\d+(?: epoch \d+)?\]:?\s*"
    r"|\([\w.-]+ (?:rank=\d+ )?pid=\d+(?:, ip=[\w.:]+)?\)\s*"
    r"|\[pod/[^\]]+\]\s*"
    r"|\[\d{4}-\d\d-\d\d[^\]]*\]\s*"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:\d\d)?\s+(?:std(?:out|err) F )?"
    r"|[\w.-]+:\d+:\d+ \[\d+\]\s+"
    r"|(?:pod/)?[\w.-]+\s*\|\s"
    r"|[IWEF]\d{4} [\d:.]+\s+\d+\s+\S+\]\s*"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ \S+\[\d+\]:\s*"
    r"|ERROR \d\d-\d\d [\d:.]+ (?:\[[\w./-]+:\d+\]|[\w./-]+:\d+\])\s?"
    r")"
)
MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
# "2026-06-01T10:00:00", "06-01 10:00:00", "Jun  1 10:00:00", "E0601 10:00:00"
MOMENT = re.compile(r"(?:(\d\d)-(\d\d)[T ]|\b([A-Z][a-z]{2}) +(\d{1,2}) |\b[IWEF](\d\d)(\d\d) )(\d\d:\d\d:\d\d\S*)")
RANK = re.compile(r"\[rank\s?(\d+)(?: epoch \d+)?\]|\bTP(\d+)\b|node[_-]rank[= ](\d+)")
# SGLang's server on its way out: a scheduler failed, and it kills its own tree; "the child" while it loads, "one child"
# once it serves. What that scheduler said before is the cause.
ENDS_ITSELF = re.compile(r"It usually means (?:the|one) child failed")
FAILS = r"\b(error|fatal|fail|cannot|could not|unable|refused|denied|unsupported|invalid|no such|timed? ?out|kill|died)"
# What makes a line tell something, and how much. The last exception is usually the cause's own message.
TELLING = (
    (re.compile(r"^(?:[a-z_]\w*\.)*[A-Z]\w*(\.\w+)*(Error|Exception|Interrupt)\b"), 8),
    (re.compile(r"\b(Assertion|assert)\w*\b|CHECK failed|device-side"), 6),
    (re.compile(r"CUDA error|cudaError|Xid|illegal|NV_ERR|out of memory|\bOOM", re.IGNORECASE), 6),
    (re.compile(r"NCCL WARN|ibv_\w+ failed|unhandled (system|cuda) error", re.IGNORECASE), 6),
    (re.compile(FAILS, re.IGNORECASE), 3),
    (re.compile(r"^\s*File \"|^Trace(?:back)|^\s+at |DeprecationWarning|FutureWarning"), -6),
    (re.compile(r"\bINFO\b|\bDEBUG\b|it/s\]|%\|"), -2),
    # all settings in one line, of any words
    (re.compile(r"^(?:server_args|non-default args)\b|^(?:ServerArgs|Namespace)\("), -20),
    (ENDS_ITSELF, -6),
    (re.compile(r"kill_process_tree called"), -6),
)


def clean(text: str) -> Iterator[str]:
    """Lines without colours and prefixes."""
    for raw in ANSI.sub("", text).split("\n"):
        line = raw
        for _ in range(4):  # prefixes stack: pod name, time, rank
            line, taken = PREFIX.subn("", line, count=1)
            if not taken:
                break
        yield line.rstrip()


def rank_of(raw: str) -> str:
    """The rank that a raw line names, or nothing."""
    match = RANK.search(raw[:200])
    return next((group for group in match.groups() if group), "") if match else ""


def moment(raw: str) -> str:
    """When a raw line was printed, as text that sorts: month, day, time; or nothing."""
    match = MOMENT.search(raw[:120])
    if match is None:
        return ""
    month, day = [part for part in match.groups()[:6] if part]
    number = MONTHS.find(month) // 3 + 1 if month.isalpha() else int(month)
    return f"{number:02}-{int(day):02} {match[7]}"


def telling(lines: Iterable[str], limit: int = 3) -> list[str]:
    """The most informative lines, in the order of the log: repeated ones once, later ones before earlier ones."""
    best: dict[str, tuple[float, int, str]] = {}
    weights: dict[str, int] = {}  # a log says most of its lines often
    for number, line in enumerate(lines):
        weight = weights.get(line)
        if weight is None:
            weight = weights[line] = sum(points for pattern, points in TELLING if pattern.search(line))
        if weight > 0:
            shape = re.sub(r"0x[0-9a-f]+|\d+", "#", line.strip())[:160]
            best[shape] = (weight + number * 1e-7, number, line.strip()[:400])
    chosen = sorted(best.values(), reverse=True)[:limit]
    return [line for _, _, line in sorted(chosen, key=lambda item: item[1])]


_EPOCH = re.compile(r"^\[rank \d+ epoch (\d+)\]")


def last_epoch(text: str) -> str:
    """The engine's lines since its supervisor last started it; all of the text where there is no supervisor."""
    numbered = [(int(match[1]), line) for line in text.split("\n") if (match := _EPOCH.match(line))]
    if not numbered:
        return text
    latest = max(epoch for epoch, _ in numbered)
    return "\n".join(line for epoch, line in numbered if epoch == latest)
