"""Gated delta layers, which remember in a matrix of fixed size for each head: what SGLang asks of kernels, in torch.

A step is `S = S * exp(g); S = S + k (v - S k) * beta; out = S q`, one token after the other; nothing is done in blocks.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from sglang.kernels.ops.attention.fla import fused_norm_gate as norms
from torch.nn.functional import normalize, sigmoid, silu, softplus

from sgl_kernel import kernel


def _activated(out: torch.Tensor, activation: str | bool | None) -> torch.Tensor:
    return silu(out) if activation in ("silu", "swish", True) else out


@kernel
def causal_conv1d_fn_cpu(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    *,
    activation: str | None,
    conv_states: torch.Tensor,
    has_initial_state: torch.Tensor,
    cache_indices: torch.Tensor,
    query_start_loc: torch.Tensor,
    **_: Any,
) -> torch.Tensor:
    """Over several prompts in one row of tokens; each prompt's last inputs are kept where it goes on from."""
    out, before = torch.empty_like(x), weight.shape[1] - 1
    starts, places, goes_on = query_start_loc.tolist(), cache_indices.tolist(), has_initial_state.tolist()
    for at, (start, end) in enumerate(pairwise(starts)):
        kept = conv_states[places[at]]
        past = kept[:, -before:].to(x.dtype) if goes_on[at] else x.new_zeros(x.shape[0], before)
        row = torch.cat([past, x[:, start:end]], dim=1)
        found = torch.nn.functional.conv1d(row[None].float(), weight[:, None].float(), bias, groups=x.shape[0])[0]
        out[:, start:end] = _activated(found, activation).to(x.dtype)
        kept[:, -before:] = row[:, -before:].to(kept.dtype)
    return out


@kernel
def causal_conv1d_update_cpu(
    x: torch.Tensor,
    conv_state: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: str | None = None,
    *,
    conv_state_indices: torch.Tensor,
    **_: Any,
) -> torch.Tensor:
    """One more token of each request."""
    before = weight.shape[1] - 1
    row = torch.cat([conv_state[conv_state_indices][:, :, -before:].to(x.dtype), x[:, :, None]], dim=2)
    conv_state[conv_state_indices] = row[:, :, -conv_state.shape[2] :].to(conv_state.dtype)
    found = (row.float() * weight.float()).sum(dim=2) + (0 if bias is None else bias)
    return _activated(found, activation).to(x.dtype)


@kernel
def fused_gdn_gating_cpu(
    decay: torch.Tensor, a: torch.Tensor, b: torch.Tensor, dt_bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """How much of the past each head keeps (as a logarithm), and how much of the new it takes."""
    return (-decay.float().exp() * softplus(a.float() + dt_bias.float()))[None], sigmoid(b.float()).to(b.dtype)[None]


def _walked(
    state: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, beta: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(state afterwards, what came out) of one request: state (heads, values, keys), all else (tokens, heads, ...)."""
    groups = v.shape[1] // q.shape[1]
    q, k = (normalize(part.float(), dim=-1).repeat_interleave(groups, dim=1) for part in (q, k))
    out, state = torch.empty(v.shape, dtype=torch.float32), state.float()
    for step in range(v.shape[0]):
        state = state * g[step].float().exp()[:, None, None]
        known = torch.einsum("hvk,hk->hv", state, k[step])
        new = (v[step].float() - known) * beta[step].float()[:, None]
        state = state + new[:, :, None] * k[step][:, None, :]
        out[step] = torch.einsum("hvk,hk->hv", state, q[step]) * q.shape[-1] ** -0.5
    return state, out


@kernel
def chunk_gated_delta_rule_cpu(
    *,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor,
    initial_state_indices: torch.Tensor,
    cu_seqlens: torch.Tensor,
    **_: Any,
) -> tuple[torch.Tensor, None, None]:
    """Several prompts, each with its state in its place, which is left as it is afterwards."""
    out, starts = torch.empty_like(v), cu_seqlens.tolist()
    for at, (start, end) in enumerate(pairwise(starts)):
        place = initial_state_indices[at]
        mine = (part[0, start:end] for part in (q, k, v, g, beta))
        state, found = _walked(initial_state[place], *mine)
        initial_state[place] = state.to(initial_state.dtype)
        out[0, start:end] = found.to(v.dtype)
    return out, None, None


@kernel
def fused_sigmoid_gating_delta_rule_update_cpu(
    *,
    A_log: torch.Tensor,
    dt_bias: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    initial_state_source: torch.Tensor,
    initial_state_indices: torch.Tensor,
    cu_seqlens: torch.Tensor,
    **_: Any,
) -> torch.Tensor:
    """One more token of each request."""
    g, beta = fused_gdn_gating_cpu(A_log, a, b, dt_bias)
    out, _states, _none = chunk_gated_delta_rule_cpu(
        q=q, k=k, v=v, g=g, beta=beta, initial_state=initial_state_source,
        initial_state_indices=initial_state_indices, cu_seqlens=cu_seqlens,
    )  # fmt: skip
    return out


@kernel
def fused_rmsnorm_gated_cpu(x: torch.Tensor, weight: torch.Tensor, gate: torch.Tensor, eps: float) -> torch.Tensor:
    wide = x.float()
    wide = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps) * weight.float()
    return (wide * silu(gate.float())).to(x.dtype)


# It takes this only where it finds AMX, and triton, which has no CPU, elsewhere.
norms._use_cpu = True
