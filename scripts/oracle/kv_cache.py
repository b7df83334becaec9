"""Asks SGLang's own code what a token takes in the key/value cache of models, from their config.json alone.

    python3 -m venv V && V/bin/pip install transformers==5.24.0 numpy
    V/bin/python scripts/oracle/kv_cache.py FOLDER_OF_SGLANG FOLDER_OF_NEEDS tests/data/models > tests/data/kv_cache.yml

The configuration classes, `ModelConfig`'s shapes and the pool configurators run as they are (`FOLDER_OF_SGLANG` is what
The configuration classes, `ModelConfig` shapes and the pool configurators run as they are (`FOLDER_OF_SGLANG` is what
kernels are stubs, settings are those of one rank where nobody set one; transformers is newer than the 5.19 that SGLang
asks for, because that one cannot be imported without torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import traceback
import types
import warnings
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import yaml

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from oracle import engine_sglang, stubs  # noqa: E402

REAL = {"transformers", "huggingface_hub", "numpy", "safetensors", "regex", "tqdm", "pydantic", "pydantic_core"}
NEVER = ["sglang.kernels", "sglang.srt.layers.quantization", "sglang.srt.layers.moe", "sglang.srt.model_loader"]
JUDGES = {"memory_pool", "pool_configurator", "model_config", "common", "kv_cache_configurator", "hybrid_arch"}
SIZES = {"bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "uint8": 1, "int8": 1, "float32": 4}
LAYOUT = "sglang.kernels.ops.attention.dsv4.kv_layout"  # the one file of the kernels that only counts
TRIES = 40


class Unset(SimpleNamespace):
    """Settings that nobody set: none."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


KERNELS = Unset(dsa_prefill_backend="flashmla_kv", dsa_decode_backend="flashmla_kv", dsv4_attn_backend="flashmla")
SETTINGS: dict[str, Any] = {
    "get_parallel": lambda: Unset(attn_tp_size=1, attn_dcp_size=1, attn_cp_size=1),
    "get_memory": Unset,
    "get_schedule": lambda: Unset(swa_full_tokens_ratio=0.8, chunked_prefill_size=8192),
    "get_disagg": lambda: Unset(disaggregation_mode="null"),
    "get_exec": lambda: Unset(kernel=KERNELS, features=Unset()),
    "get_model": lambda: Unset(qsa_indexer_dtype="auto"),
    "get_spec": Unset,
    "max_speculative_num_draft_tokens": lambda: 0,
    "compute_page_shard_scratch_bytes": lambda *_args, **_kwargs: 0,
}


def prepare(folder: Path) -> None:
    answers: dict[str, Any] = {key: value for key, value in engine_sglang.ANSWERS.items() if "transformers" not in key}
    answers["torch._utils._element_size"] = lambda kind: SIZES[kind.__name__]
    answers |= {f"torch.{name}.itemsize": size for name, size in SIZES.items()}
    names = [name for name in engine_sglang.STUBBED if name not in REAL]
    stubs.install([*names, *NEVER], answers, engine_sglang.replaced(folder))
    sys.path.insert(0, str(folder))
    warnings.simplefilter("ignore")


def load(name: str, folder: Path) -> ModuleType:
    """A module; what fails while it is imported, and counts nothing, becomes a stub, and its name is told."""
    stubbed: list[str] = []
    for _ in range(TRIES):
        _beforehand(folder)
        try:
            return importlib.import_module(name)
        except Exception as error:
            frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
            own = [file for file in frames if file.startswith(f"{folder}/sglang/")]
            absent = isinstance(error, ModuleNotFoundError) and not isinstance(error, PackageNotFoundError)
            missing = str(error.name).split(".")[0] if absent else ""
            if not missing or missing == "sglang":
                missing = own[-1].removeprefix(f"{folder}/")[:-3].replace("/", ".").removesuffix(".__init__")
            if missing in stubbed or missing.split(".")[-1] in JUDGES:
                raise
            stubbed.append(missing)
            print(f"stubbed {missing}: {error}", file=sys.stderr)
            sys.meta_path.insert(0, stubs.StubFinder([missing], {}))
            for loaded in [key for key in sys.modules if key.startswith("sglang.")]:
                del sys.modules[loaded]
    raise RuntimeError(f"{name} needs more than {TRIES} stubs")


def _beforehand(folder: Path) -> None:
    """Image processors are not registered; the layout of a page is counted by the file that says so."""
    quiet: Any = types.ModuleType("sglang.srt.configs.utils")
    quiet.register_image_processor = quiet.register_processor = lambda *_args, **_kwargs: None
    sys.modules[quiet.__name__] = quiet
    spec = importlib.util.spec_from_file_location(LAYOUT, folder / f"{LAYOUT.replace('.', '/')}.py")
    if spec and spec.loader and Path(str(spec.origin)).is_file():
        sys.modules[LAYOUT] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[LAYOUT])


class Engine:
    def __init__(self, folder: Path) -> None:
        prepare(folder)
        for name in ("configs.model_config", "model_executor.pool_configurator", "layers.cp.utils"):
            load(f"sglang.srt.{name}", folder)
        self.configs: Any = load("sglang.srt.configs.model_config", folder)
        self.known: Any = load("sglang.srt.utils.hf_transformers.common", folder)
        self.pools: Any = load("sglang.srt.model_executor.pool_configurator", folder)
        self.readings: Any = load("sglang.srt.utils.hf_transformers.config", folder)
        load("sglang.srt.mem_cache.kv_cache_configurator", folder)
        for module in list(sys.modules.values()):
            if module.__name__.startswith("sglang.") and not isinstance(module, stubs.StubModule):
                vars(module).update({key: value for key, value in SETTINGS.items() if key in vars(module)})

    def _config(self, said: dict[str, Any]) -> Any:
        from transformers import CONFIG_MAPPING, PretrainedConfig

        kind = said.get("model_type")
        said = {key: value for key, value in said.items() if key != "auto_map"}
        registry = self.known._CONFIG_REGISTRY
        if kind in registry or kind in CONFIG_MAPPING:
            return (registry[kind] if kind in registry else CONFIG_MAPPING[kind]).from_dict(said)
        plain: Any = PretrainedConfig()  # as remote code would make it
        for key, value in said.items():
            setattr(plain, key, value)
        if blocks := said.get("block_configs"):
            plain.block_configs = json.loads(json.dumps(blocks), object_hook=lambda block: SimpleNamespace(**block))
        return plain

    def _model(self, said: dict[str, Any]) -> Any:
        config = self._config(said)
        if "gemma4" in str(getattr(config, "model_type", "")):
            self.readings._apply_gemma4_attention_overrides(config)
        model = object.__new__(self.configs.ModelConfig)
        model.hf_config, model.hf_text_config = config, self.known.get_hf_text_config(config)
        model.is_draft_model = model.disable_hybrid_swa_memory = False
        model.context_len, model.quantization = 131072, None
        model._derive_hybrid_model()
        model._derive_model_shapes()
        return model

    def bytes_per_token(self, said: dict[str, Any], dtype: str) -> dict[str, float]:
        torch: Any = importlib.import_module("torch")
        model = self._model(said)
        never = {f"is_{word}": lambda: False for word in ("eagle", "standalone", "dflash_family", "dspark")}
        asked = Unset(
            model_config=model, mambaish_config=self.pools.mambaish_config(model), kv_cache_dtype=getattr(torch, dtype),
            kv_cache_dtype_str=dtype, model_dtype=torch.bfloat16, server_args=Unset(), pp_size=1, page_size=256,
            use_mla_backend=model.attention_arch == self.configs.AttentionArch.MLA, attn_dp_size=1,
            layer_info=Unset(
                start_layer=0, end_layer=model.num_hidden_layers, num_effective_layers=model.num_attention_layers,
                full_attention_layer_ids=model.full_attention_layer_ids,
                swa_attention_layer_ids=model.swa_attention_layer_ids,
            ),
            spec_algorithm=Unset(**never, is_none=lambda: True), fused_entry_bytes=lambda _side: None,
            sliding_window_size=getattr(model.hf_text_config, "sliding_window", None),
        )  # fmt: skip
        if getattr(model, "is_deepseek_v4_arch", False):
            pool = self.pools.DSV4PoolConfigurator(asked)
            held = pool.stage_owner_layers.items()
            return {"full": sum(pool._compressed_bytes_per_full_token(ratio) * len(owners) for ratio, owners in held)}
        if model.is_hybrid_swa and model.swa_attention_layer_ids:
            pool = self.pools.HybridSWAPoolConfigurator(asked)
            window = pool._swa_per_token * pool._swa_layers_num
            return {"full": pool._full_per_token * pool._full_layers_num, "window": window}
        return {"full": self.pools.DefaultPoolConfigurator(asked)._cell_size}


def main(words: list[str]) -> int:
    folder, needs, models = (Path(word).resolve() for word in words)
    sys.path.append(str(needs))
    engine = Engine(folder)
    print(f"# {folder.name}: bytes of a token in the cache, one rank; written by scripts/oracle/kv_cache.py")
    for file in sorted(models.glob("*.yml")):
        said = yaml.safe_load(file.read_text(encoding="utf-8"))["says"]["config"]
        found = {}
        for dtype in ("bfloat16", "float8_e4m3fn"):
            counted = engine.bytes_per_token(said, dtype)
            wrong = [key for key, value in counted.items() if not isinstance(value, int | float) or value <= 0]
            if wrong:
                print(f"{file.stem}: {dtype}: {wrong[0]} came out of a stub", file=sys.stderr)
            else:
                found[dtype] = counted
        print(f"{file.stem}: {json.dumps(found)}".replace('"', ""))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
