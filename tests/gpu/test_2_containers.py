"""Containers by NVIDIA's own runtime: none, one, all; and what its device plugin hands to a kubelet."""

from __future__ import annotations

import shutil
import sys
import time

from testbed.beds.gpu import place
from testbed.beds.gpu.container import Container, once
from testbed.beds.gpu.kubelet import SOCKETS, Kubelet

SEES = (
    "ls /dev/nvidia? 2>/dev/null; nvidia-smi -L; "
    f"{sys.executable} -c \"import torch; print('sum', (torch.ones(4, device='cuda') * 2).sum().item())\""
)


def test_without_nvidias_runtime_a_container_has_no_gpu(runtime: str) -> None:
    said = once("plain", SEES, gpu="void", runtime="runc")
    assert "/dev/nvidia" not in said and "sum 8.0" not in said, said


def test_all_gpus_compute_in_a_container(runtime: str) -> None:
    said = once("all", SEES)
    assert said.count("/dev/nvidia") == len(place.gpus()) and "sum 8.0" in said, said


def test_one_gpu_by_its_index_is_that_one(runtime: str) -> None:
    last = len(place.gpus()) - 1
    said = once("one", SEES, gpu=str(last))
    assert said.count("/dev/nvidia") == 1 and place.gpus()[last].split("UUID: ")[1] in said and "sum 8.0" in said, said


def test_the_device_plugin_offers_each_gpu_and_a_container_gets_the_one_that_was_allocated(runtime: str) -> None:
    kubelet, begun = Kubelet(), time.monotonic()
    shutil.copy(place.BIN / "nvidia-device-plugin", "/usr/bin/nvidia-device-plugin")
    plugin = Container("plugin", ["/usr/bin/nvidia-device-plugin"], binds=[(SOCKETS, str(SOCKETS), False)])
    plugin.start()
    try:
        while not kubelet.registered and time.monotonic() - begun < 30:
            time.sleep(0.1)
        assert kubelet.registered, plugin.said()
        took, offered = time.monotonic() - begun, kubelet.devices()
        assert kubelet.resource == "nvidia.com/gpu" and len(offered) == len(place.gpus()), offered
        given = kubelet.allocate(offered[-1])
        said = once("allocated", "nvidia-smi -L", env=given, gpu=given["NVIDIA_VISIBLE_DEVICES"])
        assert said.count("GPU ") == 1 and offered[-1] in said, said
        place.tell("plugin", {"registered_s": round(took, 1), "devices": len(offered)})
    finally:
        plugin.stop()
        kubelet.server.stop(0)
