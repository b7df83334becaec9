"""From a measured row's symptom to what a reader of the log saw: the stage, and the engine's own words."""

from __future__ import annotations

import re

from standin.trouble import Trouble

ILLEGAL = "torch.AcceleratorError: CUDA error: an illegal instruction was encountered"
INVALID = "FlashInfer Internal Error: Invalid configuration : NUM_MMA_Q=1 NUM_MMA_D_QK=32 NUM_MMA_D_VO=32"
CUDNN = "RuntimeError: cuDNN is not available. Please install cuDNN to use FP4 GEMM functions."
KILLED = "Killed"  # by the kernel: no word of its own, status 137

# (words of the symptom, stage when the row crashed at start, the engine's last words)
WORDS: tuple[tuple[str, str, str], ...] = (
    (r"mismatch in expected n", "graph", "AssertionError: mismatch in expected `n`"),
    (r"increase --mem-fraction", "kv",
     "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
    (r"Fp8MoEMethod", "graph", "AttributeError: 'Fp8MoEMethod' object has no attribute 'runner'"),
    (r"trtllm_batched_gemm|flashinfer_trtllm", "graph",
     "RuntimeError: Error in function 'run' at trtllm_batched_gemm_runner.cu:278: Error running GEMM!"),
    (r"cutedsl JIT", "graph", "RuntimeError: No supported CUDA architectures found for major versions [10]."),
    (r"nvfp4_blockwise_moe", "graph", "sgl-kernel/csrc/moe/nvfp4_blockwise_moe.cuh:78: device-side assert triggered"),
    (r"prefill\.cuh|Invalid configuration", "graph", f"flashinfer/attention/prefill.cuh:2615: {INVALID}"),
    (r"fake-tensor|\(piecewise", "graph",
     "torch._dynamo.exc.TorchRuntimeError: Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor)."),
    (r"[cC]uDNN|fi_cudnn fp4\)$|fi_cudnn fp4 \+", "graph", CUDNN),
    (r"Unsupported runner backend", "load",
     "NotImplementedError: Unsupported runner backend: MoeRunnerBackend.CUTLASS"),
    (r"Invalid quantization '(\S+)'", "args", "AssertionError: Invalid quantization for this MoE runner"),
    (r"triton attention with PP", "graph", "IndexError: list index out of range"),
    (r"init_cuda_graph_state", "graph", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
    (r"kvcache\.cuh", "graph",
     "RuntimeError: Runtime check failed at sglang/jit_kernel/csrc/kvcache.cuh:196: "
     "CUDA error: an illegal instruction was encountered"),
    (r"kv_heads % tp", "load", "AssertionError: assert self.total_num_kv_heads % tp_size == 0"),
    (r"padding", "load",
     "AssertionError: intermediate size required padding, but padding is not supported with gated activations"),
    (r"set_embed_and_head", "load",
     "AttributeError: 'MiniMaxM2ForCausalLM' object has no attribute 'set_embed_and_head'"),
    (r"tl\.dot", "graph", "triton.compiler.errors.CompilationError: tl.dot does not take fp8e4nv keys here"),
    (r"PP.*NEXTN", "args",
     "AssertionError: Pipeline parallelism is not compatible with overlap schedule, speculative decoding"),
    (r"CommSplit", "args", "torch.distributed.DistBackendError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN)"),
    (r"OOMKilled", "load", KILLED),
    (r"OutOfMemory|OOM|NO_MEMORY|does not fit", "load",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB."),
    (r"radix cache", "args", "ValueError: Speculative decoding is not compatible with radix cache"),
    (r"merge_state", "serve", "RuntimeError: MergeStateInPlace kernel launch failed: invalid argument"),
    (r"Illegal|illegal|Xid 13", "serve", ILLEGAL),
)  # fmt: skip


def words(symptom: str) -> tuple[str, str]:
    """(stage, last words); what no log named stays what the row says."""
    for pattern, stage, text in WORDS:
        if re.search(pattern, symptom):
            return stage, text
    early = "args" if "before weights loaded" in symptom else "load"
    return early, f"RuntimeError: {symptom} (the measured log kept no more than this)"


def trouble(outcome: str, symptom: str, source: str) -> Trouble | None:
    """What a row that was not ok makes a rank do here."""
    if outcome == "startup_crash" or (outcome == "unknown" and symptom):
        stage, text = words(symptom)
        return Trouble("crash", stage="load" if stage == "serve" else stage, text=text, source=source)
    if outcome == "hang":
        return Trouble("hang", stage="graph", source=source)
    if outcome == "garbage":
        form = "salad" if "salad" in symptom else "flood" if "'!'" in symptom else "loop"
        least = 4 if "n4/n8, n1 coherent" in symptom else 1
        return Trouble("garbage", form=form, after=12, least=least, source=source)
    if outcome == "partial":
        if re.search("error|merge_state|fails", symptom) and "DNS" not in symptom:
            least = 8 if "n8" in symptom and "n>=4" not in symptom and "n4/" not in symptom else 4
            return Trouble("errors", text=words(symptom)[1], least=least, source=source)
        return None
    if outcome == "runtime_crash":
        if re.search(r"all requests|all bench requests|infer_error|no attribute|0/13|Invalid config|cuDNN", symptom):
            return Trouble("errors", text=words(symptom)[1], source=source)
        least = 4 if re.search(r"concurrency|n>1|n=4|n4|fi_cutlass MoE", symptom) else 8 if "n=8" in symptom else 1
        text = words(symptom)[1] if re.search("OOMKilled", symptom) else ILLEGAL
        return Trouble("crash", text=text, after=0 if least > 1 else 2, least=least, anywhere=True, source=source)
    return None
