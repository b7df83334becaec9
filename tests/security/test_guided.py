"""What a fuzzer found by coverage (`make test-fuzz`), once more without it: each of these ended in no refusal of ours.

On f5aa4f24 each was a traceback: status 70 on the command line, a connection without an answer at the page and the
waker, a look that ended at the waker. Layers without end took all memory.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import huggingface_hub.utils._http as client
import pytest

from sparkloom.base.errors import InputError
from tests import image_archives
from tests.security.guided import peers
from tests.security.guided.files import BETWEEN
from tests.security.guided.targets import TARGETS

IMAGE = "nvcr.io/nvidia/tensorrt-llm/release"
ROUTERS = ('sparkloom_router_requests_total{person="a"}', 'envoy_cluster_upstream_rq_total{envoy_cluster_name="a"}')
SPARKRUN = """recipe_version: '2'
model: org/name
runtime: vllm-ray
min_nodes: ²
command: vllm serve {model}
"""
LONG = "9" * 5000  # Python reads no number of more than 4300 digits
ENGINE = (
    "docker run nvcr.io/nvidia/tensorrt-llm/release:{tag} trtllm-serve org/name --tp_size {ranks} --max_seq_len {most}"
)


def config(kind: str = "Qwen3ForCausalLM", **changed: object) -> bytes:
    """One of those that a fuzzer begins with, changed."""
    seeds = (seed.partition(BETWEEN)[0] for seed in TARGETS["config.json"].seeds())
    return json.dumps({**json.loads(next(one for one in seeds if kind.encode() in one)), **changed}).encode()


def blocks(*sizes: object) -> bytes:
    return config(quantization_config={"quant_method": "fp8", "weight_block_size": sizes})


def index(size: object) -> bytes:
    told = {"metadata": {"total_size": size}, "weight_map": {"a": "b.safetensors"}}
    return BETWEEN.join([config(), b"", json.dumps(told).encode()])


def header(**changed: object) -> bytes:
    return json.dumps({"a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2], **changed}}).encode()


def listed(**file: object) -> bytes:
    return json.dumps({"id": peers.MODEL, "sha": peers.COMMIT, "siblings": [file]}).encode()


def request(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {LONG}\r\n\r\n".encode()


def engine(tag: str = "1.3.0rc13", words: str = "--tp_size 2") -> bytes:
    model = "nvidia/Llama-3.1-8B-Instruct-FP4"
    return f"docker run {IMAGE}:{tag} trtllm-serve {model} {words}".encode()


CASES: list[tuple[str, bytes]] = [
    ("sparkrun", SPARKRUN.encode()),
    ("shell", b"```\nvllm serve org/name \x0b \x0b\n```"),
    ("import", engine(tag=f"1.{LONG}")), ("import", engine(words="--tp_size ²")),
    ("import", engine(words=f"--tp_size {LONG}")), ("import", engine(words="--max_batch_size 64 --max_seq_len ²")),
    ("nccl-log", b"spark-2:09279:20997 [1] NCCL INFO group.cc:153 (ncclCollPreconnect) -> 2\n"),
    ("safetensors", header(shape=[1e999])), ("safetensors", header(data_offsets=[0, 1e999])),
    ("config.json", config(num_hidden_layers=10**11)), ("config.json", config(hidden_size=0)),
    ("config.json", config("MiniMaxM2ForCausalLM", num_local_experts=0)),
    ("config.json", config("MiMoV2FlashForCausalLM", hybrid_layer_pattern=None)),
    ("config.json", config("DeepseekV4ForCausalLM", compress_ratios=[1e999] * 100)),
    ("config.json", config("DeepseekV41ForCausalLM").replace(b'"compress_ratios"', b'"compressed"')),
    ("config.json", config("KimiK25ForConditionalGeneration").replace(b"gate_up|down)", b"gate_up|down[])")),
    ("config.json", config("DeciLMForCausalLM", num_attention_heads=0, head_dim=None)),
    ("config.json", blocks("x", 128)), ("config.json", blocks([], 128)), ("config.json", blocks(128, 0)),
    ("config.json", index("x")), ("config.json", index(1e999)),
    ("image-archive", image_archives.tar({"index.json": b'{"manifests": [{}]}'})),
    ("image-archive", image_archives.tar({"manifest.json": b'[{"RepoTags": ["a:1"], "Config": "b"}]'})),
    ("hub", listed(rfilename="a", size="x")), ("hub", listed(rfilename="a", size=1e999)),
    ("hub", listed(rfilename=[], size=1)),
    ("page", request("/page/act/keys")), ("page", b"POST /page/act/stop HTTP/1.1\r\nOrigin: http://[[x\r\n\r\n"),
    ("waker", request("/v1/chat/completions")),
    ("engine-answer", f"HTTP/1.1 200 OK\r\nContent-Length: {LONG}\r\n\r\n".encode()),
    ("key-table", b"v1\nhash\n"), ("key-table", b"v1\nhash name\n"), ("key-table", b"v1\nhash name=a ends=b\n"),
    ("key-table", b"v1\n\n"), ("key-table", b"v1\n\xff name=a\n"),
    *(("metrics", f"{name} {value}\n".encode()) for name in ROUTERS for value in ("NaN", "+Inf")),
    ("metrics", b"vllm:num_requests_running 1e308\n" * 2),
    ("metrics", b'[{"iter": 1%s}]' % (b"0" * 400)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        peers.still(patch.setattr)
        yield
    client.set_client_factory(client.default_client_factory)


@pytest.mark.parametrize(("name", "data"), CASES, ids=[f"{name}-{number}" for number, (name, _) in enumerate(CASES)])
def test_it_is_refused_or_read(name: str, data: bytes) -> None:
    target = TARGETS[name]
    with contextlib.suppress(*target.refusals):
        target.reads(data)


def test_every_parser_has_something_to_begin_with() -> None:
    for name, target in TARGETS.items():
        assert next(iter(target.seeds()), b""), name


def test_a_damaged_table_of_keys_is_told_to_who_administers() -> None:
    with pytest.raises(InputError, match="client-keys: holds a line that is no key's; delete it"):
        TARGETS["key-table"].reads(b"v1\nhash\n")
