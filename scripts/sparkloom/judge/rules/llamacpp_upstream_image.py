"""The images that llama.cpp's project publishes cannot run a rank here."""

from sparkloom.judge.rules.base import Hit, Hits, LaunchView, Rule, Scope, Source, case


class LlamaCppUpstreamImage(Rule):
    id = "llamacpp-upstream-image"
    severity = "error"
    scope = Scope(engine="llamacpp", image=r"(ggml-org|ggerganov)/llama\.cpp:")
    why = (
        "its CUDA images are compiled without GGML_RPC, so llama-server refuses --rpc and there is no rpc-server; the "
        "server and light ones have no Python for the rank's supervisor"
    )
    fix = "engine.recipe: llama.cpp-b8399, with its engine.image: `sparkloom image build` makes it (docs/engines.md)"
    evidence = (Source("ggml-org/llama.cpp: .devops/cuda.Dockerfile, read at commit 00d69466", "2026"),)
    log_pattern = r"error: invalid argument: --rpc"
    predicts_failure = False
    failing = case(
        engine="llamacpp", release="b8399", nodes=2, pp=2, image="ghcr.io/ggml-org/llama.cpp:full-cuda-b8399"
    )
    passing = case(engine="llamacpp", release="b8399", nodes=2, pp=2, image="x.invalid/llama.cpp:b8399-sm121")

    def check(self, view: LaunchView) -> Hits:
        if view.nodes > 1:
            yield Hit(f"image {view.image} has no RPC, which {view.nodes} nodes need", "image")
        elif ":full" not in view.image:
            yield Hit(f"image {view.image} has no Python, which the supervisor needs", "image")
