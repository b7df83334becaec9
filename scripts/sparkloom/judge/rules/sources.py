"""Where most rules know their trap from: each source said once."""

from __future__ import annotations

from typing import Any

from sparkloom.judge.rules.base import Source

NAMED = {
    "ultra-post": Source("forum post on Nemotron 3 Ultra, four Sparks, SGLang 0.5.12", "2026-06"),
    "super-post": Source("forum post on Nemotron 3 Super with MTP, four Sparks, SGLang 0.5.13-dev", "2026-06"),
    "tuning-post": Source("forum post on RoCE, Qwen3.5-397B and GLM-4.7, four Sparks, SGLang 0.5.10", "2026-04"),
    "psa-post": Source("forum thread on NVFP4 in vLLM on Spark", "2026-04"),
    "guide": Source("NVIDIA's Spark deployment guide for Nemotron 3 Super (vLLM, TensorRT-LLM)", "2026"),
}


def read(written: Any) -> Source:
    """A source as a rule in YAML says it: a name from above, `rows: ...`, `code: ...`, or what, date and link."""
    match written:
        case str() if written in NAMED:
            return NAMED[written]
        case {"rows": str(what)} if len(written) == 1:
            return Source(f"measured rows: {what}", "2026")  # `sparkloom evidence find` shows them
        case {"code": str(what)} if len(written) == 1:
            return Source(f"read in the engine's released code: {what}", "2026-11")
        case {"what": str()} if set(written) <= {"what", "date", "link"}:
            return Source(**written)
    raise ValueError(f"'{written}' is no source: write {', '.join(NAMED)}, rows:, code:, or what:, date: and link:")
