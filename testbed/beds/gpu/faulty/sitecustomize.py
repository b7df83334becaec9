"""Faults in an engine's own process, on its own stream: a kernel that spins, one that writes where nothing is, a last
matrix that is spoilt while the engine serves. And what torch counts there.

Python reads this by its name, where PYTHONPATH has its folder. A file in /tmp asks for a fault: its name says which.
"""

import sys
import threading
import time
from pathlib import Path

RUNNER = "sglang.srt.model_executor.model_runner"
CYCLES = int(1.7e9 * 60)  # about a minute: bounded, the card itself is never hung
WRITE = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry fault()
{
.reg .b64 %d<2>;
.reg .b32 %r<2>;
mov.u64 %d1, 0xdead0000;
mov.u32 %r1, 1;
st.global.u32 [%d1], %r1;
ret;
}
"""


def spin(runner):
    import torch

    torch.cuda._sleep(CYCLES)


def illegal(runner=None):
    import ctypes

    cuda, module, function = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
    cuda.cuModuleLoadData(ctypes.byref(module), WRITE.encode())
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fault")
    cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)


def noise(runner):
    runner.model.lm_head.weight.data.normal_()


def nan(runner):
    runner.model.lm_head.weight.data.fill_(float("nan"))


def count(runner):
    import json

    import torch

    names = ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved")
    told = {name: getattr(torch.cuda, name)() / 2**30 for name in names}
    free, whole = torch.cuda.mem_get_info()
    print("torch counts:", json.dumps({**told, "free": free / 2**30, "whole": whole / 2**30}), flush=True)


ASKED = {
    Path("/tmp/fault-spin"): spin, Path("/tmp/fault-illegal"): illegal, Path("/tmp/fault-noise"): noise,
    Path("/tmp/fault-nan"): nan, Path("/tmp/count-memory"): count,
}  # fmt: skip


def wrapped(real):
    def forward(self, *words, **named):
        for file, fault in ASKED.items():
            if file.exists():
                file.unlink()
                print("asked by a test:", file, flush=True)
                fault(self)
        return real(self, *words, **named)

    return forward


def watch():
    while True:
        runner = getattr(sys.modules.get(RUNNER), "ModelRunner", None)
        if runner is not None and hasattr(runner, "forward"):
            runner.forward = wrapped(runner.forward)
            return
        time.sleep(0.05)


threading.Thread(target=watch, daemon=True).start()
