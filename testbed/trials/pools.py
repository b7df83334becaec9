"""Starts SGLang itself on one NVIDIA GPU with a grid of settings, and keeps what its log says of its memory pools.

    python -m testbed.trials.pools OUT [CELL ...]     writes OUT/logs.jsonl as it goes, a line per cell

Random weights, real shapes. Not for this machine: it wants a GPU and SGLang importable, and this repository. What it
wrote on one H200 is tests/data/pools-h200.jsonl, against which capacity is judged (tests/judge/capacity).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from testbed.standins.hub import tiny

PORT = 31999
PATIENCE = 170.0
KEPT = re.compile(
    r"Load weight|KV Cache is allocated|Mamba Cache|Memory pool end|max_total_num_tokens|[Cc]apture|mem usage|"
    r"Init torch distributed|Error|error|avail mem|server_args|fired up|not enough|Not enough"
)
PATTERN = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"  # of Nemotron-3-Nano: 23 Mamba, 23 MoE, 6 attention
COMMON: dict[str, Any] = {"torch_dtype": "bfloat16", "bos_token_id": 256, "eos_token_id": 258}
MODELS: dict[str, dict[str, Any]] = {
    "hybrid": COMMON | {
        "architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "vocab_size": 131072,
        "hidden_size": 2688, "intermediate_size": 1856, "num_hidden_layers": 52, "hybrid_override_pattern": PATTERN,
        "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 262144,
        "mamba_num_heads": 64, "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "conv_kernel": 4,
        "expand": 2, "mamba_hidden_act": "silu", "mlp_hidden_act": "relu2", "n_routed_experts": 128,
        "n_shared_experts": 1, "num_experts_per_tok": 6, "moe_intermediate_size": 1856,
        "moe_shared_expert_intermediate_size": 3712, "routed_scaling_factor": 2.5, "n_group": 1, "topk_group": 1,
        "norm_topk_prob": True, "tie_word_embeddings": False, "use_conv_bias": True, "chunk_size": 128,
        "layer_norm_epsilon": 1e-5, "attention_bias": False, "mlp_bias": False, "use_bias": False,
        "residual_in_fp32": False, "mamba_ssm_cache_dtype": "float32",
    },
    "moe": COMMON | {
        "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "vocab_size": 151936,
        "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 48, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "max_position_embeddings": 40960, "num_experts": 128,
        "num_experts_per_tok": 8, "moe_intermediate_size": 768, "norm_topk_prob": True, "decoder_sparse_step": 1,
        "mlp_only_layers": [], "attention_bias": False, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
        "hidden_act": "silu", "tie_word_embeddings": False,
    },
    "dense": COMMON | {
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584,
        "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu",
        "tie_word_embeddings": False, "use_sliding_window": False, "max_window_layers": 28,
    },
}  # fmt: skip
# Of every cell; a cell's own come on top. None: a switch without a value.
FLAGS: dict[str, Any] = {
    "attention-backend": "triton", "sampling-backend": "pytorch", "grammar-backend": "none", "load-format": "dummy",
    "mem-fraction-static": 0.8, "context-length": 8192, "max-running-requests": 16, "cuda-graph-max-bs": 16,
    "disable-piecewise-cuda-graph": None,
}  # fmt: skip
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "hybrid": ("hybrid", {}),
    "hybrid-0.7": ("hybrid", {"mem-fraction-static": 0.7}),
    "hybrid-slots": ("hybrid", {"max-mamba-cache-size": 48}),
    "hybrid-slots-few": ("hybrid", {"max-mamba-cache-size": 12}),
    "hybrid-no-radix": ("hybrid", {"disable-radix-cache": None}),
    "hybrid-no-radix-64": ("hybrid", {"disable-radix-cache": None, "max-running-requests": 64}),
    "hybrid-state-bf16": ("hybrid", {"mamba-ssm-dtype": "bfloat16"}),
    "hybrid-kv-fp8": ("hybrid", {"kv-cache-dtype": "fp8_e4m3"}),
    "hybrid-long": ("hybrid", {"context-length": 262144}),
    "hybrid-eager": ("hybrid", {"disable-cuda-graph": None}),
    "moe": ("moe", {}),
    "moe-0.6": ("moe", {"mem-fraction-static": 0.6}),
    "moe-kv-fp8": ("moe", {"kv-cache-dtype": "fp8_e4m3"}),
    "moe-long": ("moe", {"context-length": 40960, "max-running-requests": None}),
    "moe-graphs-64": ("moe", {"cuda-graph-max-bs": 64, "max-running-requests": 64}),
    "moe-graphs-160": ("moe", {"cuda-graph-max-bs": 160, "max-running-requests": 160}),
    "moe-eager": ("moe", {"disable-cuda-graph": None}),
    "dense": ("dense", {}),
    "dense-0.9": ("dense", {"mem-fraction-static": 0.9}),
    "dense-page-64": ("dense", {"page-size": 64}),
}


def write(folder: Path, config: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokens = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    files = {"config.json": config, "tokenizer.json": tiny.tokenizer(tiny.words()), "tokenizer_config.json": tokens}
    for name, data in files.items():
        (folder / name).write_text(json.dumps(data, indent=1))


# NemotronH refuses triton: its first layer is no attention layer.
OF_MODEL: dict[str, dict[str, Any]] = {"hybrid": {"attention-backend": "flashinfer"}}


def flags(common: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """All of a cell; its own None takes a common value away, any other None is a switch."""
    return {name: value for name, value in {**common, **own}.items() if value is not None or common.get(name) is None}


def command(model: Path, own: dict[str, Any]) -> list[str]:
    words = [sys.executable, "-m", "sglang.launch_server", "--model-path", str(model), "--port", str(PORT)]
    for name, value in flags(FLAGS, {**OF_MODEL.get(model.name, {}), **own}).items():
        words += [f"--{name}"] + ([] if value is None else [str(value)])
    return words


def ready() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def used() -> str:
    asked = ["nvidia-smi", "--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits"]
    return subprocess.run(asked, capture_output=True, text=True).stdout.strip()


def run(name: str, folder: Path, patience: float) -> dict[str, Any]:
    model, own = CELLS[name]
    write(folder / model, MODELS[model])
    log = folder / f"{name}.log"
    begun = time.monotonic()
    with log.open("w") as file:
        process = subprocess.Popen(command(folder / model, own), stdout=file, stderr=file, start_new_session=True)
        while process.poll() is None and not ready() and time.monotonic() - begun < patience:
            time.sleep(0.5)
        outcome = "serves" if process.poll() is None and ready() else "ended" if process.poll() is not None else "late"
        memory = used()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = log.read_text(errors="replace")
    lines = [line for line in text.splitlines() if KEPT.search(line)]
    row = {"cell": name, "model": model, "flags": own, "outcome": outcome, "gpu_mib": memory}
    end = [] if outcome == "serves" else [text[-6000:]]
    return row | {"seconds": round(time.monotonic() - begun, 1), "log": [*lines, *end]}


def main() -> None:
    out, chosen = Path(sys.argv[1]), sys.argv[2:] or list(CELLS)
    folder = Path("/tmp/pools")
    until = time.monotonic() + float(os.environ.get("POOLS_SECONDS", "520"))
    with (out / "logs.jsonl").open("a") as file:
        for name in chosen:
            left = until - time.monotonic()
            if left < 20:
                print(f"no time left for {name}", flush=True)
                continue
            row = run(name, folder, min(PATIENCE, left))
            file.write(json.dumps({"common": FLAGS, **row}) + "\n")
            file.flush()
            print(f"{name}: {row['outcome']} after {row['seconds']} s, GPU {row['gpu_mib']}", flush=True)
            while int(used().split(",")[0] or 0) > 2000 and time.monotonic() < until:
                time.sleep(0.5)


if __name__ == "__main__":
    main()
