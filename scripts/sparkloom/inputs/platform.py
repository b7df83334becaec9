"""What a DGX Spark is, as far as a launch depends on it. Every figure with its origin."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Platform:
    usable_gib: float  # memory that CUDA and the host share
    free_before_load_gib: float  # of it, when the first weight is read by one of several Sparks
    bandwidth_gb_s: float  # LPDDR5X
    rail_gb_s: float  # one PCIe x4 half of a ConnectX-7 port, NCCL bus bandwidth
    nic_pcie_gts: float  # of each half of the ConnectX-7
    nic_pcie_lanes: int
    measured_free_gib: tuple[float, float] | None = None  # least and most free to CUDA on this site's idle nodes

    @property
    def free_gib(self) -> float:
        """What rules plan with: the site's own figure, or the least that was seen."""
        return self.free_before_load_gib if self.measured_free_gib is None else self.measured_free_gib[0]


GB10 = Platform(
    # torch.cuda.mem_get_info on a DGX Spark of 128 GB; nvidia-smi reports "Not Supported" (test logs, 2026-05)
    usable_gib=121.6,
    # four Sparks with Kubernetes and SGLang up logged 100.7 to 104.2; plans and rules take the least
    free_before_load_gib=100.7,
    # NVIDIA's data sheet for DGX Spark
    bandwidth_gb_s=273.0,
    # measured with one VF per pod: 9.78 GB/s bus bandwidth (forum post on Nemotron Ultra, 2026-06)
    rail_gb_s=9.78,
    # two links of PCIe 5.0 x4, one in each PCI domain (eugr's NETWORKING notes; NVIDIA's playbook pull request 108)
    nic_pcie_gts=32.0,
    nic_pcie_lanes=4,
)
