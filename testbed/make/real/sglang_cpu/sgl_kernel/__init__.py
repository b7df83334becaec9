"""In place of SGLang's kernels, of which no wheel for CPUs is published: the few that our models ask for, in torch.

What is not here can be bound when SGLang is imported, and names itself when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# Where these are missing SGLang does without: weights repacked for AMX, all-reduce through shared memory, fused steps.
OPTIONAL = {"convert_weight_packed", "initialize", "shm_allreduce", "fused_qk_norm_rope_cpu", "fused_qk_norm_cpu"}
IMPLEMENTED: dict[str, Callable[..., Any]] = {}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    IMPLEMENTED[function.__name__] = function
    return function


@kernel
def init_cpu_threads_env(cores: str) -> str:
    return cores


@kernel
def silu_and_mul_cpu(both: torch.Tensor) -> torch.Tensor:
    gate, up = both.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


@kernel
def assign_req_to_token_pool_cpu(
    requests: torch.Tensor, table: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, places: torch.Tensor, *_: Any
) -> None:
    """Writes each request's new places into its row; they come in one list, one request after the other."""
    taken = 0
    for request, start, end in zip(requests.tolist(), starts.tolist(), ends.tolist(), strict=True):
        table[request, start:end] = places[taken : taken + end - start].to(table.dtype)
        taken += end - start


@kernel
def store_cache_cpu(
    key: torch.Tensor, value: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, places: torch.Tensor, *_: Any
) -> None:
    keys[places] = key.view(-1, *keys.shape[1:])
    values[places] = value.view(-1, *values.shape[1:])


def found(name: str) -> Callable[..., Any]:
    if name.startswith("__") or name in OPTIONAL:
        raise AttributeError(name)

    def missing(*_: Any, **__: Any) -> None:
        raise NotImplementedError(f"sgl_kernel.{name}: the test bed's SGLang has no such kernel for CPUs")

    return IMPLEMENTED.get(name, missing)


class Operations:
    """What `torch.ops.sgl_kernel` is elsewhere."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in IMPLEMENTED and "cpu" not in name and name != "flash_attn_varlen_func":
            raise AttributeError(name)
        return found(name)


def __getattr__(name: str) -> Callable[..., Any]:
    return found(name)


torch.ops.__dict__[__name__] = Operations()


_module_of = torch.get_device_module


def _device_module(device: Any = None) -> Any:
    """This torch is the one for CUDA, less its libraries: asked for its device, it names the one that is not there."""
    return torch.cpu if device is None else _module_of(device)


torch.get_device_module = _device_module
