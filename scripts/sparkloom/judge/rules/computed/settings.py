"""Flags and variables whose values have to be read, not only compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from sparkloom.inputs.families import MULTIMODAL
from sparkloom.inputs.profile import UNNAMED
from sparkloom.judge.rules.base import Hit, Hits, LaunchView
from sparkloom.launch.engines.base import model_folder

PLUGINS = ("tool_parser_plugin", "reasoning_parser_plugin", "logits_processors", "middleware", "worker_extension_cls",
           "custom_weight_loader")  # fmt: skip

IN_IMAGE = re.compile(r"/(usr|opt|lib|lib64)(/(?!\.\.(/|$))[^/]+)*/?")  # nothing is mounted below these


def loader_folders(view: LaunchView) -> Hits:
    for name in ("LD_LIBRARY_PATH", "PYTHONPATH"):
        given = "" if view.partial else view.env.get(name, "")
        outside = [folder for folder in given.split(":") if not IN_IMAGE.fullmatch(folder)] if given else []
        if outside:
            yield Hit(f"{name} is '{given}', with '{outside[0]}' outside of the image", f"env.{name}")


def awq_moe_quantization(view: LaunchView) -> Hits:
    experts = view.facts.experts or re.search(r"-A\d+(\.\d+)?B", view.model_id)
    if experts and view.flag("quantization") in ("awq", "awq_marlin"):
        yield Hit(f"quantization is {view.flag('quantization')} on a model with experts", "quantization")


def draft_tokens_not_steps_plus_one(view: LaunchView) -> Hits:
    steps, drafts = view.number("speculative_num_steps"), view.number("speculative_num_draft_tokens")
    if view.speculates and view.number("speculative_eagle_topk") == 1 and steps and drafts and drafts != steps + 1:
        yield Hit(f"{drafts:.0f} draft tokens for {steps:.0f} steps at topk 1", "speculative_num_draft_tokens")


def dsa_kernels_sm121(view: LaunchView) -> Hits:
    chosen = view.flag("dsa_decode_backend") or view.flag("nsa_decode_backend")
    own = view.env.get("SGLANG_SM120_FLASHMLA_BACKEND", "")  # SM12x has its own choice beside those flags
    if not view.partial and not own and chosen not in ("tilelang", "torch"):
        yield Hit(f"the sparse decode backend is {chosen or 'left to the engine'}", "nsa_decode_backend")


def nvfp4_piecewise_graphs(view: LaunchView) -> Hits:
    """The engine leaves them off itself for models that it knows to be multimodal, eager or with drafts."""
    automatic = view.facts.multimodal is not False and MULTIMODAL.search(view.architecture) is not None
    if automatic or view.facts.multimodal or view.eager or view.speculates:
        return
    if view.off("disable_piecewise_cuda_graph"):
        yield Hit("piecewise CUDA graphs are on with NVFP4 weights", "disable_piecewise_cuda_graph")


def override_json(view: LaunchView) -> Hits:
    value = view.flag("json_model_override_args")
    if isinstance(value, str) and not view.partial:
        try:
            json.loads(value)
        except ValueError as error:
            yield Hit(f"json_model_override_args is not JSON: {error}", "json_model_override_args")


def unknown_argument(view: LaunchView) -> Hits:
    for name in ("tp", "pp", "dp_attention", "chat_template_kwargs"):
        if name in view.flags:
            yield Hit(f"{name} is not a full flag name", name)


def env_boolean_words(view: LaunchView) -> Hits:
    for name, value in view.env.items():
        switch = re.match(r"SGLANG_(ENABLE|DISABLE|USE|ALLOW|SKIP)_", name)
        if switch and value.lower() not in ("true", "1", "yes", "y", "false", "0", "no", "n"):
            yield Hit(f"{name} is '{value}'", f"env.{name}")


def service_link_port(view: LaunchView) -> Hits:
    if not view.env.get("SGLANG_PORT", "0").isdigit():
        yield Hit(f"SGLANG_PORT is '{view.env['SGLANG_PORT']}'", "env.SGLANG_PORT")


def token_in_env(view: LaunchView) -> Hits:
    for name, value in view.env.items():
        if value and re.search(r"(^|_)(TOKEN|API_KEY|PASSWORD|SECRET)$", name):
            yield Hit(f"{name} holds a secret in plain text", f"env.{name}")
    if isinstance(view.flag("api_key"), str):
        yield Hit("the profile contains api_key", "api_key")


def remote_code_unpinned(view: LaunchView) -> Hits:
    runs = [flag for flag, _ in _plugins(view, of_the_model=True)]
    if view.on("trust_remote_code"):
        runs.insert(0, "trust_remote_code")
    for name in sorted(view.moving - view.consented) if runs else ():
        if not name.startswith(UNNAMED):  # (`model-unnamed` refuses that one)
            yield Hit(f"{runs[0]}, and no commit pins {name}", runs[0])


def model_unnamed(view: LaunchView) -> Hits:
    for name in sorted({view.model_id, *view.moving}):
        if name.startswith(UNNAMED):
            where = "model.id" if name == view.model_id else "model.draft.id"
            yield Hit(f"{name} stands where the model's name belongs", where)


def code_by_flag(view: LaunchView) -> Hits:
    for flag, value in _plugins(view, of_the_model=False):
        yield Hit(f"{flag} is '{value}'", flag)


def _plugins(view: LaunchView, *, of_the_model: bool) -> Iterator[tuple[str, str]]:
    for flag in PLUGINS:
        value = view.flag(flag)
        text = value if isinstance(value, str) else json.dumps(value) if value else ""
        if text and text.startswith(f"{model_folder(view.model_id)}/") == of_the_model:
            yield flag, text


def remote_code_by_consent(view: LaunchView) -> Hits:
    if view.on("trust_remote_code"):
        for name in sorted(view.moving & view.consented):
            yield Hit(f"trust_remote_code, and no commit pins {name} yet", "trust_remote_code")
