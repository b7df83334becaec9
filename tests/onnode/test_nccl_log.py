"""nccl-log by logs that NCCL wrote, and by those logs cut, torn, mixed and coloured."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.onnode.nccl import lines as nccl_lines
from sparkloom.onnode.nccl import log as nccl_log
from sparkloom.onnode.nccl.lines import gid_address
from tests import places

DATA = places.DATA / "nccl"
A, B = "rocep1s0f0v0", "roceP2p1s0f0v0"
# file -> verdict, ranks' HCAs in use, words of the reason
EXPECTED: dict[str, tuple[str, list[str], str]] = {
    "real/p2p": ("local", [], "inside this machine"),
    "real/p2p-2.27": ("local", [], "inside this machine"),
    "real/shm": ("local", [], "inside this machine"),
    "real/single": ("local", [], "single rank"),
    "real/torch": ("local", [], "inside this machine"),
    "real/socket-lo": ("socket", [], "TCP over lo, because no RoCE device is there"),
    "real/socket-nodes-2.30": ("socket", [], "TCP over net1, because no RoCE device is there"),
    "real/socket-forced": ("socket", [], "RoCE was not even tried"),
    "real/silent-fallback": ("socket", [], f"no RoCE device that NCCL_IB_HCA=={A},{B} names"),
    "real/subsys-net": ("socket", [], "TCP over net1"),
    "real/subsys-init": ("socket", [], "TCP over net1"),
    "real/timestamps": ("socket", [], "TCP over net1"),
    "real/plugin-missing": ("socket", [], "TCP over net1"),
    "real/subsys-env": ("failed", [], "names no transport"),
    "real/ib-without-devices": ("failed", [], "Failed to initialize any NET plugin"),
    "real/ib-without-devices-2.30": ("failed", [], "no RoCE device is there"),
    "real/wrong-interface": ("failed", [], "no interface matches NCCL_SOCKET_IFNAME"),
    "real/warn-only": ("failed", [], "no interface matches NCCL_SOCKET_IFNAME"),
    "real/killed-peer-socket": ("failed", [], "read the log of the rank that died first"),
    "real/killed-peer-socket-2.30": ("failed", [], "read the log of the rank that died first"),
    "real/killed-peer-p2p": ("failed", [], "its words end while other ranks abort"),
    "real/missing-peer": ("failed", [], "a peer did not come"),
    "real/torch-socket": ("failed", [], "a peer did not come"),
    "standin/roce-two-rails-2.27": ("roce", [A, B], "RoCE over"),
    "standin/roce-two-rails-2.30": ("roce", [A, B], "RoCE over"),
    "standin/roce-two-rails-stamped-2.30": ("roce", [A, B], "RoCE over"),
    "standin/roce-unset-hca-2.27": ("roce", [A, B], "RoCE over"),
    "standin/roce-subsys-init-2.27": ("roce", [A, B], "RoCE over"),
    "standin/roce-subsys-net-2.27": ("roce", [A, B], "RoCE over"),
    "standin/roce-subsys-net-2.30": ("roce", [A, B], "RoCE over"),
    "standin/roce-gid3-2.30": ("roce", [A, B], "RoCE over"),
    "standin/roce-one-rail-2.27": ("roce-partial", [A], f"NCCL_IB_HCA=={A} names no more"),
    "standin/roce-one-rail-2.30": ("roce-partial", [A], f"NCCL_IB_HCA=={A} names no more"),
    "standin/roce-one-rank-one-rail-2.30": ("roce-partial", [A], f"{B} was opened and no channel uses it"),
    "standin/roce-one-rank-without-2.30": ("socket", [A], "the pod may not open /dev/infiniband"),
    "standin/roce-no-open-2.28": ("failed", [], "the pod may not open /dev/infiniband"),
    "standin/roce-no-open-auto-2.28": ("socket", [], "the pod may not open /dev/infiniband"),
    "standin/roce-wrong-hca-2.28": ("socket", [], "no RoCE device that NCCL_IB_HCA==rocep1s0f0v7 names"),
    "standin/roce-unreachable-2.30": ("failed", [A, B], "the VF needs its IPv4 address"),
    "standin/roce-timeout-2.27": ("failed", [A, B], "does not answer ARP"),
    "standin/roce-retry-exceeded-2.30": ("failed", [A, B], "a peer stopped answering over RoCE"),
    "standin/roce-killed-peer-2.27": ("failed", [A, B], "a peer stopped answering over RoCE"),
    "constructed/merged-2.21": ("roce", [A, B], "RoCE over"),
    "constructed/plugin-ray-2.25": ("roce", [A, B], "RoCE over"),
}
NO_WORDS = {"real/version-only"}


def text(name: str) -> str:
    return (DATA / f"{name}.log").read_text(encoding="utf-8")


def test_every_log_is_expected() -> None:
    assert {str(path.relative_to(DATA))[:-4] for path in DATA.glob("*/*.log")} == {*EXPECTED, *NO_WORDS}


@pytest.mark.parametrize("name", EXPECTED)
def test_log(name: str) -> None:
    verdict, hcas, words = EXPECTED[name]
    report = nccl_log.read_files([DATA / f"{name}.log"])
    assert report.verdict == verdict, report.why
    assert words in report.why
    assert report.ranks[0].hcas == hcas
    assert report.good == (verdict == "roce")
    if "warn-only" not in name and "wrong-interface" not in name:
        version = {"2.27": "2.27.7", "2.30": "2.30.7", "2.21": "2.21.5", "2.25": "2.25.1"}.get(name[-4:], "2.28.9")
        assert {str(rank.nccl_version).split("+")[0] for rank in report.ranks} == {version}


def test_what_was_asked_and_what_happened() -> None:
    data = nccl_log.read_files([DATA / "standin" / "roce-subsys-net-2.30.log"]).as_dict()
    rank = data["ranks"][0]
    assert data["nodes"] == 2 and data["size"] == 2 and data["missing_ranks"] == []
    assert rank["asked"]["NCCL_IB_HCA"] == f"={A},{B}" and rank["asked"]["NCCL_IB_MERGE_NICS"] == "0"
    assert rank["transport"] == "NET/IB" and set(rank["channels"]) == {"NET/IB/0", "NET/IB/1"}
    assert rank["gid"] == 3
    assert rank["gids"] == [
        {"hca": A, "index": 3, "address": "192.168.100.11"},
        {"hca": B, "index": 3, "address": "192.168.101.11"},
    ]
    assert rank["plugin"] == "internal" and rank["host"] == "spark-1"
    forced = nccl_log.read_files([DATA / "standin" / "roce-gid3-2.30.log"]).ranks[0]
    assert forced.gid == 3 and forced.gids == []  # asked for, not seen: the NET subsystem was off


def test_one_planned_rail_and_one_planned_node() -> None:
    assert nccl_log.read_text(text("standin/roce-one-rail-2.30"), rails=1).verdict == "roce"
    local = text("real/p2p")
    assert not nccl_log.read_text(local).good
    assert nccl_log.read_text(local, nodes=1).good
    assert not nccl_log.read_text(local, nodes=4).good


def test_a_log_of_one_pod_says_whose_logs_are_missing() -> None:
    report = nccl_log.read_text(text("constructed/plugin-ray-2.25"))
    assert report.missing_ranks == [1] and "rank 1" in report.why
    assert report.ranks[0].plugin != "internal"


@pytest.mark.parametrize("name", EXPECTED)
def test_colour_prefixes_and_line_ends_change_nothing(name: str) -> None:
    plain = nccl_log.read_text(text(name))
    dressed = "".join(
        f"\x1b[36m[pod/engine-{number % 2}]\x1b[0m 2026-11-21T10:00:{number % 60:02d}.123Z \x1b[1;32m{line}\x1b[0m\r\n"
        for number, line in enumerate(text(name).splitlines())
    )
    seen = nccl_log.read_text(dressed)
    assert seen.verdict == plain.verdict
    assert [(rank.rank, rank.verdict, rank.channels) for rank in seen.ranks] == [
        (rank.rank, rank.verdict, rank.channels) for rank in plain.ranks
    ]


@pytest.mark.parametrize("name", [name for name, (verdict, *_) in EXPECTED.items() if verdict != "failed"])
def test_interleaved_ranks(name: str) -> None:
    """Each process keeps its own order, the processes are mixed anew, and some lines are joined without a line end."""
    plain = nccl_log.read_text(text(name))
    rng = random.Random(name)
    queues: dict[str, list[str]] = {}
    for line in text(name).splitlines():
        queues.setdefault(line.split(" [")[0].rpartition(":")[0], []).append(line)
    mixed = ""
    while any(queues.values()):
        queue = rng.choice([queue for queue in queues.values() if queue])
        line = queue.pop(0)
        torn = len(mixed) > 2000 and rng.random() < 0.3 and "NCCL INFO" in line
        mixed += line + ("" if torn else "\n")
    assert nccl_log.read_text(mixed).verdict == plain.verdict


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        ("standin/roce-two-rails-2.30", {"roce", "failed"}),
        ("standin/roce-two-rails-2.27", {"roce", "failed"}),
        ("constructed/merged-2.21", {"roce", "failed"}),
        ("real/socket-nodes-2.30", {"socket", "failed"}),
        ("real/silent-fallback", {"socket", "failed"}),
        ("real/p2p", {"local", "failed", "socket"}),  # before the topology is known, only the chosen network is
        ("standin/roce-one-rail-2.30", {"roce-partial", "failed"}),
    ],
)
def test_truncated_logs_never_say_something_else(name: str, possible: set[str]) -> None:
    lines = text(name).splitlines()
    for end in range(1, len(lines)):
        try:
            verdict = nccl_log.read_text("\n".join(lines[:end])[:-7]).verdict
        except InputError:
            continue
        assert verdict in possible, (end, lines[end - 1])


@pytest.mark.parametrize(
    "name", ["standin/roce-two-rails-2.30", "standin/roce-one-rail-2.30", "real/socket-nodes-2.30"]
)
def test_a_log_without_its_head(name: str) -> None:
    lines = text(name).splitlines()
    first = next(number for number, line in enumerate(lines) if "via NET/" in line)
    report = nccl_log.read_text("\n".join(lines[first:]))
    assert report.verdict == EXPECTED[name][0]


def test_a_restarted_rank_is_judged_by_its_last_life() -> None:
    old = text("standin/roce-unreachable-2.30")
    new = text("standin/roce-two-rails-2.30")
    hosts = {
        line.split(":")[0]: line.split(":")[1]
        for line in old.splitlines()
        if " NCCL INFO Init" not in line and ":" in line
    }
    for line in new.splitlines():
        host, _, rest = line.partition(":")
        if host in hosts and rest.split(":")[0].isdigit():
            new = new.replace(f"{host}:{rest.split(':')[0]}:", f"{host}:{hosts[host]}:")
    assert nccl_log.read_text(old + new).verdict == "roce"


def test_the_watchdog_of_torch_is_heard() -> None:
    said = text("standin/roce-two-rails-2.30")
    said += (
        "[rank2]:[E1121 10:00:00.1 ProcessGroupNCCL.cpp:683] [Rank 2] Watchdog caught collective operation timeout: x\n"
    )
    report = nccl_log.read_text(said)
    assert report.verdict == "failed" and [rank.rank for rank in report.ranks if rank.verdict == "failed"] == [2]


def test_gid_addresses() -> None:
    assert gid_address("0", "B64A8C0FFFF0000") == "192.168.100.11"
    assert gid_address("80FE", "B64A8C000000002").startswith("fe80:")


def test_unusable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        nccl_log.read_files([tmp_path / "none.log"])
    other = tmp_path / "other.log"
    other.write_bytes(b"hello\xff\x00\n")
    with pytest.raises(InputError, match="NCCL_DEBUG=INFO"):
        nccl_log.read_files([other])
    with pytest.raises(InputError, match="NCCL_DEBUG=INFO"):
        nccl_log.read_files([DATA / "real" / "version-only.log"])


def test_of_a_rank_that_was_started_again_the_last_start_counts() -> None:
    def start(epoch: int, pid: int, network: str) -> str:
        head = f"[rank 0 epoch {epoch}] spark1:{pid}:{pid} [0] NCCL INFO"
        lines = ["NET/IB : Using [0]a:1/RoCE [1]b:1/RoCE [RO]"] if network == "IB" else ["NET/IB : No device found."]
        lines += [f"Using network {network}", "comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1"]
        lines += [f"Channel 0{n}/0 : 0[0] -> 1[0] [send] via NET/{network}/{n}" for n in (0, 1)]
        return "\n".join(f"{head} {line}" for line in lines)

    both = f"{start(1, 10, 'Socket')}\n{start(2, 90, 'IB')}"
    assert nccl_log.read_text(start(1, 10, "Socket")).verdict == "socket"
    assert nccl_log.read_text(both).verdict == "roce"


def channels(thread: int, epoch: int, rank: int) -> list[str]:
    return [
        f"[rank {rank} epoch {epoch}] spark{rank + 1}:881:{thread} [0] NCCL INFO Channel {number:02d}/0 : {rank}[0] -> "
        f"{1 - rank}[0] [send] via NET/IB/{number % 2}"
        for number in range(4)
    ]


def story(threads: int) -> list[str]:
    """Two ranks in two epochs, a wider communicator in between, warnings; `threads` ids make each line another."""
    told: list[str] = []
    for turn in range(12):
        epoch, rank, thread = 1 + turn // 6, turn % 2, 900 + turn % threads
        head = f"[rank {rank} epoch {epoch}] spark{rank + 1}:881:{thread} [0] NCCL"
        ranks = 2 if turn < 4 else 4
        told += [f"{head} INFO ncclCommInitRank comm 0x{turn} rank {rank} nranks {ranks} cudaDev 0 - Init START"]
        told += [
            *channels(thread, epoch, rank),
            *channels(thread, epoch, rank),
            f"{head} WARN Channel 00/0 : 0[0] -> 1[0] via P2P",
        ]
        told += channels(thread, epoch, rank)
    return told


def test_a_repeated_channel_counts_as_one_that_was_read() -> None:
    def read(threads: int) -> list[tuple[str, dict[str, int], int]]:
        processes = nccl_lines.read(story(threads))
        return [
            (process.host, dict(one), len(process.warnings)) for process in processes for one in process.ranks.values()
        ]

    assert read(1) == read(12) and len(read(1)) >= 2


def test_channels_that_repeat_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: such lines are most of a long log, and reading each cost 12 s per 100 MB."""
    taken, take = [], nccl_lines._take
    monkeypatch.setattr(nccl_lines, "_take", lambda *words: (taken.append(1), take(*words))[1])
    (process,) = nccl_lines.read(channels(900, 1, 0) * 5000)
    assert process.ranks[0].total() == 20_000
    assert len(taken) < 100
