"""The GPU's figures and its specification for containers, by our own programs against the driver itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from testbed.beds.gpu import place

FIELDS = "power.draw,temperature.gpu,clocks.sm,memory.used"
OURS = (
    "from sparkloom.onnode.host_metrics import gpu; import json;"
    "print(json.dumps([[n, l, v] for n, l, v in gpu.samples()]))"
)
LOAD = """
import torch, time
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
print("up", flush=True)
end = time.time() + 12
while time.time() < end:
    for _ in range(50): a @ a
    torch.cuda.synchronize()
"""
VERSIONS = "import torch, json; print(json.dumps([torch.__version__, torch.cuda.nccl.version()]))"
CDI = """
import json
from pathlib import Path
from sparkloom.onnode.task import Ended, Task
from sparkloom.onnode.tasks import cdi
try:
    cdi.main(Task({}, check_mode=False))
except Ended as ended:
    print(json.dumps(ended.result))
"""
SPEC = Path("/etc/cdi/nvidia.yaml")


def test_what_this_machine_is() -> None:
    (name, driver, memory), *_ = place.smi("name,driver_version,memory.total")
    versions = place.python(VERSIONS, 120)[1]
    torch, nccl = json.loads(versions.splitlines()[-1])
    place.tell("machine", {
        "card": name, "driver": driver, "memory_mib": int(memory), "gpus": len(place.gpus()), "torch": torch,
        "nccl": ".".join(map(str, nccl)), "kernel": place.done("uname -r")[1].strip(),
        "date": time.strftime("%Y-%m-%d"),
    })  # fmt: skip
    if pack := os.environ.get("SPARKLOOM_GPU_PACK"):
        parts = {"engine_mb": Path(pack), "cluster_mb": Path(pack).with_name("cluster")}
        sizes = {name: sum(file.stat().st_size for file in folder.glob("*")) for name, folder in parts.items()}
        place.tell("pack", {name: round(size / 1e6, 1) for name, size in sizes.items()})


def _both() -> dict[str, Any]:
    before = [float(word) for word in place.smi(FIELDS)[0]]
    ours = {name.removeprefix("sparkloom_gpu_"): value for name, told, value in json.loads(place.python(OURS)[1])
            if told["gpu"] == "0" and "reason" not in told}  # fmt: skip
    after = [float(word) for word in place.smi(FIELDS)[0]]
    return {"before": before, "after": after, "ours": ours}


def test_the_exporter_says_what_nvidia_smi_says_idle_and_at_load() -> None:
    idle = _both()
    load = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True)
    assert load.stdout and load.stdout.readline() == "up\n"
    time.sleep(4)
    busy = _both()
    load.wait()
    place.tell("metrics", {"idle": idle, "load": busy})
    for seen in (idle, busy):
        low, high = (f(seen["before"][0], seen["after"][0]) for f in (min, max))
        assert low * 0.8 - 5 <= seen["ours"]["power_watts"] <= high * 1.2 + 5
        assert abs(seen["ours"]["temperature_celsius"] - seen["after"][1]) <= 4
    assert busy["ours"]["power_watts"] > 2 * idle["ours"]["power_watts"]


def test_the_specification_for_containers_follows_the_driver(runtime: str) -> None:
    def task() -> dict[str, Any]:
        return dict(json.loads(place.python(CDI)[1].splitlines()[-1]))

    first, second = task(), task()
    driver = place.smi("driver_version")[0][0]
    assert first["changed"] and not second["changed"] and second["specs"][str(SPEC)] == driver, (first, second)
    SPEC.write_text(SPEC.read_text().replace(driver, "570.1.1"))
    third = task()
    assert third["changed"] and driver in SPEC.read_text()
    place.tell("cdi", {"toolkit": first["toolkit"], "driver": driver})


def test_a_program_without_the_supervisor_finds_the_gpu_as_the_supervisor_looks_for_it() -> None:
    begun = time.monotonic()
    said = place.python("from sparkloom.onnode.host import gpu; print(repr(gpu.missing()))")[1]
    assert said.strip() == "''", said
    place.tell("look", {"seconds": round(time.monotonic() - begun, 2)})
