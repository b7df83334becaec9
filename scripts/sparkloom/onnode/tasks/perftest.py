"""Run perftest's programs against other nodes.

`serve` listens for every run of `tests` in one transient unit that ends by itself, `measure` runs them against their
servers (all rails at once for bandwidth, one after the other for latency), `stop` ends the unit. A program that is
missing is an answer (`missing`), not a failure. Nothing is changed on the node.
"""

from __future__ import annotations

import ipaddress
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

from sparkloom.onnode.host.read import gids, number, text
from sparkloom.onnode.task import Data, Task

UNIT = "sparkloom-fabric-check"
BANDWIDTH = "ib_write_bw"
LATENCY = "ib_write_lat"
MAPPED = "0000:0000:0000:0000:0000:ffff:"  # how sysfs writes a GID that was made from an IPv4 address
BOOT = Path("/proc/sys/kernel/random/boot_id")
MEMORY = "2G"  # far above what the runs register, far below what a node could miss


def places(sysfs: Path) -> dict[str, tuple[str, int]]:
    """Address -> device and index of the RoCE v2 GID made from it."""
    by_address = {}
    for folder in sorted(sysfs.glob("class/infiniband/*/ports/1/gids")):
        for index, gid in gids(folder):
            if gid.startswith(MAPPED) and "v2" in text(folder.parent / f"gid_attrs/types/{index}"):
                by_address[str(ipaddress.IPv6Address(gid).ipv4_mapped)] = (folder.parts[-4], index)
    return by_address


def command(tool: str, test: Data, place: tuple[str, int]) -> list[str]:
    """Both ends need the same options; the latency run listens on the next port and sends one small message."""
    device, index = place
    words = [tool, "-d", device, "-x", str(index), "-F", "-n", str(test["iterations"])]
    if tool == BANDWIDTH:
        words += ["-s", str(test["bytes"]), "-q", str(test["queue_pairs"]), "--report_gbits"]
        return [*words, "-p", str(test["port"])]
    return [*words, "-s", "8", "-p", str(test["port"] + 1)]


def stop() -> None:
    subprocess.run(["systemctl", "stop", f"{UNIT}.service"], capture_output=True)


def serve(task: Task, tests: Sequence[Data], serve_seconds: int, sysfs: Path) -> None:
    lines, known = [], places(sysfs)
    for test in tests:
        place = known.get(test["address"])
        if place:
            lines += [f"{shlex.join(command(tool, test, place))} >/dev/null 2>&1 &" for tool in (BANDWIDTH, LATENCY)]
    stop()
    if not lines:
        return
    limits = [f"--property=RuntimeMaxSec={serve_seconds}", f"--property=MemoryMax={MEMORY}"]
    # RDMA pins memory: a unit's own default limit would refuse it.
    limits += ["--property=LimitMEMLOCK=infinity", "--property=KillMode=control-group"]
    words = ["systemd-run", f"--unit={UNIT}", "--collect", "--quiet", *limits]
    task.run_command([*words, "/bin/sh", "-c", "\n".join([*lines, "wait"])], check_rc=True)


def run(argv: list[str], seconds: int) -> str:
    """Everything that it printed; a run that does not end says so."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
        return done.stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
        return f"{output.decode(errors='replace') if isinstance(output, bytes) else output}\nno end within {seconds} s"


def client(tool: str, test: Data, place: tuple[str, int], seconds: int) -> str:
    """Servers start at the same time as the first clients: a refused connection is asked again."""
    for _ in range(5):
        output = run([*command(tool, test, place), test["peer"]], seconds)
        if "Couldn't connect" not in output and "Connection refused" not in output:
            return output
        time.sleep(1)
    return output


def ping(test: Data) -> Data:
    def reaches(payload: int) -> bool:
        words = ["ping", "-c", "2", "-i", "0.2", "-W", "1", "-M", "do", "-s", str(payload), "-I", test["interface"]]
        return subprocess.run([*words, test["peer"]], capture_output=True).returncode == 0

    ok = reaches(test["payload"])
    return {"ok": ok, "small_ok": ok or reaches(56)}


def errors(test: Data, sysfs: Path) -> int:
    """What the wire spoiled since the start, as the port counts it."""
    folder = sysfs / "class/net" / test["pf"] / "statistics"
    return number(folder / "rx_errors") + number(folder / "tx_errors")


def measure(tests: Sequence[Data], sysfs: Path, seconds: int) -> list[Data]:
    known = places(sysfs)
    runs = [{**test, "ping": ping(test), "place": known.get(test["address"])} for test in tests]
    before = {test["pf"]: errors(test, sysfs) for test in runs}
    able = [test for test in runs if test["place"] and test["ping"]["ok"]]
    with ThreadPoolExecutor(max_workers=max(1, len(able))) as pool:
        together = list(pool.map(lambda test: client(BANDWIDTH, test, test["place"], seconds), able))
    for test, output in zip(able, together, strict=True):
        test[BANDWIDTH] = output
        test[LATENCY] = client(LATENCY, test, test["place"], seconds)
    return [
        {**test, "has_gid": bool(test.pop("place")), "errors": errors(test, sysfs) - before[test["pf"]]}
        for test in runs
    ]


def main(
    task: Task,
    step: Literal["serve", "measure", "stop"],  # what to do
    tests: Sequence[Data] = (),  # the runs, as the controller planned them
    seconds: int = 30,  # longest time of one run
    serve_seconds: int = 600,  # longest time that the unit listens
    sysfs_root: Path = Path("/sys"),  # where sysfs is mounted
) -> None:
    absent, runs = [tool for tool in (BANDWIDTH, LATENCY) if not shutil.which(tool)], []
    if step == "stop":
        stop()
    elif not absent and not task.check_mode:
        if step == "serve":
            serve(task, tests, serve_seconds, sysfs_root)
        else:
            runs = measure(tests, sysfs_root, seconds)
    task.exit_json(missing=absent, runs=runs, boot=text(BOOT))
