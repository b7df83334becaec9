"""Environment variables of others that say where they ran: Sparkloom has its own words for each, from the inventory."""

from __future__ import annotations

import re

FABRIC = "names devices, interfaces or addresses of the author's machines; Sparkloom derives it from the inventory"
STORE = "where the author keeps weights and caches; Sparkloom mounts its own"
GPU = "which GPU a process sees: a Spark has one"
RAY = "of Ray, which is not used: ranks meet by the engine's own words"
IMAGE = "a path inside the author's image"
_NAMES = (
    (
        r"NCCL_(IB_HCA|SOCKET_IFNAME|IB_GID_INDEX|IB_DISABLE|NET|NET_PLUGIN|IB_TC|DEBUG|DEBUG_SUBSYS|IB_ADDR_FAMILY"
        r"|IB_ROCE_VERSION_NUM|IB_SUBNET_AWARE_ROUTING|IB_SUBNET_PREFIX_LEN|IB_MERGE_NICS|NVLS_ENABLE|CROSS_NIC)"
        r"|(GLOO|TP|MN)_(SOCKET_IFNAME|IF_NAME)|UCX_NET_DEVICES|OMPI_\w+|MASTER_(ADDR|PORT)|NODE_RANK|RANK|WORLD_SIZE"
        r"|LOCAL_RANK|HEADLESS|HEAD_IP|NODE_IP|(VLLM|SGLANG|TRTLLM)?_?HOST_IP",
        FABRIC,
    ),
    (
        r"HF_HOME|HF_HUB_(CACHE|OFFLINE|ENABLE_HF_TRANSFER|DISABLE_TELEMETRY)|HUGGINGFACE_HUB_CACHE|TRANSFORMERS_(CACHE|OFFLINE)"
        r"|XDG_CACHE_HOME|(CUDA_CACHE_PATH|FLASHINFER_WORKSPACE_BASE|TORCHINDUCTOR_CACHE_DIR|TORCH_EXTENSIONS_DIR"
        r"|TRITON_CACHE_DIR|VLLM_CACHE_ROOT|SGLANG_DG_CACHE_DIR)|HOME",
        STORE,
    ),
    (r"(CUDA|NVIDIA)_VISIBLE_DEVICES|NVIDIA_DRIVER_CAPABILITIES", GPU),
    (r"RAY_\w+", RAY),
    (r"PATH|VIRTUAL_ENV|PYTHONPATH", IMAGE),
)


def why(name: str) -> str:
    """Why a variable is the author's machine's; empty where it is a setting."""
    return next((reason for pattern, reason in _NAMES if re.fullmatch(pattern, name)), "")
