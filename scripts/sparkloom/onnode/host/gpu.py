"""The GPU: what its driver says, and, only where somebody asks, what CUDA gives and how fast it runs under load."""

from __future__ import annotations

import json
import pkgutil
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sparkloom.onnode.host.read import outcome, run, text
from sparkloom.onnode.task import Data

PROC = Path("/proc")
NVIDIA = "0x10de"
NUMBERS = {
    "utilization.gpu": "percent",
    "clocks.sm": "mhz",
    "clocks.max.sm": "most_mhz",
    "power.draw": "watt",
    "power.limit": "watt_limit",
    "temperature.gpu": "celsius",
}
REASONS = "clocks_event_reasons.active"
UNKNOWN = "not a valid field"  # in the words of a driver
FIELDS = ("driver_version", "pstate", REASONS, *NUMBERS)
# Bits of NVML's reasons for a clock that is lower than it could be; the first one, an idle GPU, is none.
HELD = {  # in words, and as a metric's label
    0x4: ("power cap", "power-cap"),
    0x8: ("slowdown by hardware", "hardware"),
    0x20: ("temperature", "temperature"),
    0x40: ("temperature, by hardware", "temperature-hardware"),
    0x80: ("power brake", "power-brake"),
}
PATIENCE = 8.0  # seconds for a driver to answer
LOOK = r"""
import ctypes
count, text = ctypes.c_int(), ctypes.c_char_p()
try:
    cuda = ctypes.CDLL("libcuda.so.1")
    code = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if code:
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise OSError(f"CUDA error {code}: {(text.value or b'').decode()}")
    print("there" if count.value else "No CUDA GPUs are available")
except OSError as error:
    print(error)
"""
# A program of its own: a driver that hangs or ends its caller must not take this module with it. It says what is free
# before it takes anything; then it keeps every SM busy and counts their cycles against the GPU's own time, which shows
# the true clock, whatever is reported. nvidia-smi is asked in the middle of that, for the power.
ASK_CUDA = r"""
import ctypes, json, subprocess, sys, time
seconds, smi = float(sys.argv[1]), sys.argv[2:]
cuda, told = ctypes.CDLL("libcuda.so.1"), False
def ask(name, *words):
    if getattr(cuda, name)(*words):
        raise SystemExit(not told)
device, context, sms = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
free, total = ctypes.c_size_t(), ctypes.c_size_t()
ask("cuInit", 0)
ask("cuDeviceGet", ctypes.byref(device), 0)
ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
ask("cuCtxSetCurrent", context)
ask("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
print(json.dumps({"free": free.value}), flush=True)
told = True
if not seconds:
    raise SystemExit
PTX = SPIN
module, spin, into = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
ask("cuDeviceGetAttribute", ctypes.byref(sms), 16, device)
ask("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
ask("cuModuleGetFunction", ctypes.byref(spin), module, b"spin")
ask("cuMemAlloc_v2", ctypes.byref(into), ctypes.c_size_t(32))
cycles, counted = ctypes.c_uint64(20_000_000), (ctypes.c_uint64 * 2)()
words = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(word), ctypes.c_void_p) for word in (into, cycles)))
begun, clocks, asked = time.monotonic(), [], None
while (past := time.monotonic() - begun) < seconds or (asked and asked.poll() is None and past < seconds + 10):
    if asked is None and past > seconds / 2:
        asked = subprocess.Popen(smi, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ask("cuLaunchKernel", spin, 4 * sms.value, 1, 1, 256, 1, 1, 0, None, words, None)
    ask("cuCtxSynchronize")
    ask("cuMemcpyDtoH_v2", counted, into, ctypes.c_size_t(16))
    clocks.append(1000 * counted[0] / max(1, counted[1]))
said = asked.stdout.read() if asked and asked.poll() == 0 else ""
# the first ones are those of a GPU that is only waking up
late = sorted(clocks[len(clocks) // 2:])
print(json.dumps({"free": free.value, "mhz": late[len(late) // 2] if late else None, "said": said}))
""".replace("SPIN", repr(pkgutil.get_data(__package__, "spin.ptx")))


def devices(sysfs: Path) -> list[str]:
    """The PCI ids of NVIDIA's GPUs."""
    found = [device for device in sorted(sysfs.glob("bus/pci/devices/*")) if text(device / "vendor") == NVIDIA]
    return [text(device / "device") for device in found if text(device / "class").startswith("0x03")]


def query(fields: Iterable[str]) -> tuple[str, ...]:
    return ("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")


def rows(fields: Sequence[str], seconds: float = 10.0) -> tuple[list[dict[str, str]], str]:
    """These fields of each GPU, or why there are none."""
    answer, why = outcome(*query(fields), timeout=seconds)
    return parsed(fields, answer), why


def parsed(fields: Sequence[str], answer: str) -> list[dict[str, str]]:
    lines = [[word.strip() for word in line.split(",")] for line in answer.splitlines() if line.strip()]
    return [dict(zip(fields, words, strict=True)) for words in lines if len(words) == len(fields)]


def read() -> tuple[Data, Data]:
    """The driver (its version, why it says nothing, what the kernel has loaded), and the first GPU's state."""
    found, why = rows(FIELDS)
    if UNKNOWN in why:  # a driver that does not know all of them
        found, why = rows(FIELDS[:1])
    loaded = re.search(r"(?:Kernel Module|Module for \S+)\s+([\d.]+)", text(PROC / "driver/nvidia/version"))
    driver = {"version": found[0][FIELDS[0]] if found else "", "why": why}
    return {**driver, "loaded": loaded[1] if loaded else ""}, state(found)


def state(found: Sequence[Mapping[str, str]]) -> Data:
    """The first GPU with all FIELDS; what it does not tell, as a GB10 its power limit, is None."""
    if not found or REASONS not in found[0]:
        return {}
    told = found[0]
    numbers = {name: figure(told[field]) for field, name in NUMBERS.items()}
    reasons = bits(told[REASONS]) or 0
    return {"pstate": told["pstate"], **numbers, "held_by": [why for bit, (why, _) in HELD.items() if reasons & bit]}


def figure(word: str) -> float | None:
    """[N/A], [Not Supported] and their like are no number."""
    return float(word) if re.fullmatch(r"\d+(\.\d+)?", word) else None


def bits(word: str) -> int | None:
    return int(word, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", word) else None


def processes() -> list[int] | None:
    """Who computes on the GPU, None where nvidia-smi does not say; a desktop draws there and is not among them."""
    apps, why = outcome("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader", timeout=30)
    return None if why else [int(pid) for pid in apps.split() if pid.isdigit()]


def ask_cuda(seconds: float) -> Data:
    """What CUDA would give an engine now, and the clock after so many seconds of load; only for a GPU that is idle."""
    answer = run(sys.executable, "-c", ASK_CUDA, str(seconds), *query(FIELDS), timeout=60 + 2 * seconds)
    lines = [json.loads(line) for line in answer.splitlines() if line.startswith("{")]
    if not lines:
        return {"free_gib": None, "load": {}}
    told = lines[-1]
    load = {"mhz": told["mhz"], "state": state(parsed(FIELDS, told["said"]))} if told.get("mhz") else {}
    return {"free_gib": told["free"] / 2**30, "load": load}


def missing(patience: float = PATIENCE) -> str:
    """Why CUDA has no GPU for a program here, in the driver's words; empty where it has one. Takes nothing of it."""
    said = run(sys.executable, "-c", LOOK, timeout=patience).strip()
    unknown = f"the GPU's driver did not answer in {patience:.0f} s: `nvidia-smi` and `dmesg | grep Xid` on the node"
    return "" if said == "there" else said or unknown
