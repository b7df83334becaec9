#!/usr/bin/python
from __future__ import annotations

import ipaddress
import shlex
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sparkloom_read import gids, text

DOCUMENTATION = r"""
module: sparkloom_perftest
short_description: Run perftest's programs against other nodes
description:
  - C(serve) listens for every run of C(tests) in one transient unit that ends by itself, C(measure) runs them against
    their servers (all rails at once for bandwidth, one after the other for latency), C(stop) ends the unit.
  - A program that is missing is an answer (C(missing)), not a failure. Nothing is changed on the node.
options:
  step: {type: str, choices: [serve, measure, stop], required: true, description: [What to do.]}
  tests: {type: list, elements: dict, default: [], description: ["The runs, as the controller planned them."]}
  seconds: {type: int, default: 30, description: [Longest time of one run.]}
  serve_seconds: {type: int, default: 600, description: [Longest time that the unit listens.]}
  sysfs_root: {type: path, default: /sys, description: [Where sysfs is mounted.]}
"""

UNIT = "sparkloom-fabric-check"
BANDWIDTH = "ib_write_bw"
LATENCY = "ib_write_lat"
MAPPED = "0000:0000:0000:0000:0000:ffff:"  # how sysfs writes a GID that was made from an IPv4 address
MEMORY = "2G"  # far above what the runs register, far below what a node could miss


def missing() -> list[str]:
    return [tool for tool in (BANDWIDTH, LATENCY) if not shutil.which(tool)]


def places(sysfs: Path) -> dict[str, tuple[str, int]]:
    """Address -> device and index of the RoCE v2 GID made from it."""
    by_address = {}
    for folder in sorted(sysfs.glob("class/infiniband/*/ports/1/gids")):
        for index, gid in gids(folder):
            if gid.startswith(MAPPED) and "v2" in text(folder.parent / f"gid_attrs/types/{index}"):
                by_address[str(ipaddress.IPv6Address(gid).ipv4_mapped)] = (folder.parts[-4], index)
    return by_address


def command(tool: str, test: dict, place: tuple[str, int]) -> list[str]:
    """Both ends need the same options; the latency run listens on the next port and sends one small message."""
    device, index = place
    words = [tool, "-d", device, "-x", str(index), "-F", "-n", str(test["iterations"])]
    if tool == BANDWIDTH:
        words += ["-s", str(test["bytes"]), "-q", str(test["queue_pairs"]), "--report_gbits"]
        return [*words, "-p", str(test["port"])]
    return [*words, "-s", "8", "-p", str(test["port"] + 1)]


def stop() -> None:
    subprocess.run(["systemctl", "stop", f"{UNIT}.service"], capture_output=True)


def serve(module: AnsibleModule, sysfs: Path) -> None:
    lines, known = [], places(sysfs)
    for test in module.params["tests"]:
        place = known.get(test["address"])
        for tool in (BANDWIDTH, LATENCY) if place else ():
            lines.append(f"{shlex.join(command(tool, test, place))} >/dev/null 2>&1 &")
    stop()
    if not lines:
        return
    limits = [f"--property=RuntimeMaxSec={module.params['serve_seconds']}", f"--property=MemoryMax={MEMORY}"]
    # RDMA pins memory: a unit's own default limit would refuse it.
    limits += ["--property=LimitMEMLOCK=infinity", "--property=KillMode=control-group"]
    words = ["systemd-run", f"--unit={UNIT}", "--collect", "--quiet", *limits]
    module.run_command([*words, "/bin/sh", "-c", "\n".join([*lines, "wait"])], check_rc=True)


def run(argv: list[str], seconds: int) -> str:
    """Everything that it printed; a run that does not end says so."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
        return done.stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
        return f"{output.decode(errors='replace') if isinstance(output, bytes) else output}\nno end within {seconds} s"


def client(tool: str, test: dict, place: tuple[str, int], seconds: int) -> str:
    """Servers start at the same time as the first clients: a refused connection is asked again."""
    for _ in range(5):
        output = run([*command(tool, test, place), test["peer"]], seconds)
        if "Couldn't connect" not in output and "Connection refused" not in output:
            return output
        time.sleep(1)
    return output


def ping(test: dict) -> dict:
    def reaches(payload: int) -> bool:
        words = ["ping", "-c", "2", "-i", "0.2", "-W", "1", "-M", "do", "-s", str(payload), "-I", test["interface"]]
        return subprocess.run([*words, test["peer"]], capture_output=True).returncode == 0

    ok = reaches(test["payload"])
    return {"ok": ok, "small_ok": ok or reaches(56)}


def measure(tests: list[dict], sysfs: Path, seconds: int) -> list[dict]:
    known = places(sysfs)
    runs = [{**test, "ping": ping(test), "place": known.get(test["address"])} for test in tests]
    able = [test for test in runs if test["place"] and test["ping"]["ok"]]
    with ThreadPoolExecutor(max_workers=max(1, len(able))) as pool:
        together = list(pool.map(lambda test: client(BANDWIDTH, test, test["place"], seconds), able))
    for test, output in zip(able, together):  # noqa: B905 - a node's Python may be older than strict=
        test[BANDWIDTH] = output
        test[LATENCY] = client(LATENCY, test, test["place"], seconds)
    return [{**test, "has_gid": bool(test.pop("place"))} for test in runs]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "step": {"type": "str", "choices": ["serve", "measure", "stop"], "required": True},
            "tests": {"type": "list", "elements": "dict", "default": []},
            "seconds": {"type": "int", "default": 30},
            "serve_seconds": {"type": "int", "default": 600},
            "sysfs_root": {"type": "path", "default": "/sys"},
        },
        supports_check_mode=True,
    )
    args, absent = module.params, missing()
    sysfs, runs = Path(args["sysfs_root"]), []
    if args["step"] == "stop":
        stop()
    elif not absent and not module.check_mode:
        if args["step"] == "serve":
            serve(module, sysfs)
        else:
            runs = measure(args["tests"], sysfs, args["seconds"])
    module.exit_json(changed=False, missing=absent, runs=runs)


if __name__ == "__main__":
    main()
