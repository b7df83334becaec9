"""Logs of any size, packing and line length; what is no log is refused by name, and nothing runs for ever."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.onnode import textlog
from sparkloom.onnode.nccl import lines, log
from tests import places

ROCE = (places.DATA / "nccl" / "standin" / "roce-two-rails-2.30.log").read_text(encoding="utf-8")
DECODE = "[2026-06-01 10:00:00 TP0] Decode batch, #running-req: 8, #token: 12345, gen throughput (token/s): 101.3\n"


@pytest.mark.parametrize("content", [b"one\ntwo\r\nthree", b"\n\none\n", b"x" * 3_000_000 + b"\nend\n"], ids=len)
def test_lines_are_those_of_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    expected = [part[: textlog.LONGEST].decode() for part in content.removesuffix(b"\n").split(b"\n")]
    assert list(textlog.lines(path)) == expected
    path.write_bytes(gzip.compress(content))
    assert list(textlog.lines(path)) == expected
    assert textlog.tail(path, 4) == content[-4:].decode()


def test_a_line_over_the_edge_of_a_block_is_whole_and_found(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x" * (textlog.BLOCK - 20) + "\nhere NCCL and some words\n" + "y" * 99 + "\n")
    assert list(textlog.lines(path, (b"NCCL",))) == ["here NCCL and some words"]


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_a_device_is_refused_at_once(name: str) -> None:
    with pytest.raises(InputError, match="never ends"):
        log.read_files([Path(name)])


def test_an_endless_pipe_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textlog, "MOST", 8 << 20)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.fork()
    if writer == 0:
        try:
            with pipe.open("wb") as end:
                while True:
                    end.write(b"x" * 65536)
        finally:
            os._exit(0)
    with pytest.raises(InputError, match="holds more than"):
        list(textlog.lines(pipe))
    os.waitpid(writer, 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\0" * 9999, "zero bytes"),
        (os.urandom(9999), "is no text"),
        (b"\x1f\x8bxx", "damaged gzip"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        log.read_files([path])


def test_links_in_a_circle_and_folders_are_unusable_input(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path / "loop", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            log.read_files([path])


def seconds(path: Path, text: str) -> float:
    """Of the processor, the better of two: others work on this machine."""
    path.write_text(text, encoding="utf-8")
    took = []
    for _ in range(2):
        begun = time.process_time()
        lines.read(textlog.lines(path, lines.SPEAKS))
        took.append(time.process_time() - begun)
    return min(took)


def test_a_hundred_megabytes_of_an_engines_log_take_five_seconds(tmp_path: Path) -> None:
    assert seconds(tmp_path / "log", ROCE + DECODE * (20_000_000 // len(DECODE)) + ROCE) < 1.0


@pytest.mark.parametrize("filler", ["x", "a-b.c", ":1", "1:2:3 [0] ", "h:1:2 [0] NCCL INFO ", "NCCL WARN ", "\x1b[3"])
def test_a_longer_line_costs_in_proportion(tmp_path: Path, filler: str) -> None:
    short, long = (
        seconds(tmp_path / "log", ROCE + f"NCCL INFO {filler * (size // len(filler))}\n")
        for size in (250_000, 4_000_000)
    )
    assert long < 16 * short + 0.2


def test_repeated_lines_count_and_a_later_start_replaces_the_first(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(ROCE)
    once = log.read_files([path])
    channel = next(line for line in ROCE.splitlines() if "NCCL INFO Channel" in line and "via NET" in line)
    path.write_text(ROCE + f"{channel}\n" * 3)
    more = log.read_files([path])
    path.write_text(ROCE * 3)
    again = log.read_files([path])
    assert sum(sum(rank.channels.values()) for rank in more.ranks) == 3 + sum(
        sum(rank.channels.values()) for rank in once.ranks
    )
    assert [rank.channels for rank in again.ranks] == [rank.channels for rank in once.ranks]
    assert again.verdict == once.verdict and again.why == once.why
