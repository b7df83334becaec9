"""A hybrid served by SGLang itself on two nodes: three layers of four keep a state of fixed size, as Nemotron's do.

Their kernels are the test bed's, in torch (testbed/make/real/sglang_cpu); pools, slots and scheduling are SGLang's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from testbed.beds.rack import inventory
from tests.rack import contract, real
from tests.rack.running import run
from tests.rack.test_real_sglang import BACK, GLOO

pytestmark = real.MARKS
NAME = "tiny-hybrid--sglang-2node"
# The engine's tokens, and by how much transformers' own code would have liked another one more: 0 where it agrees.
REFERENCE = """
import json, os, urllib.request
os.environ.update(HF_HUB_OFFLINE='1', TRANSFORMERS_VERBOSITY='error')
import torch
from transformers import AutoModelForCausalLM
key = open('/sparkloom/key/key').read().split()[0]
ids = [72 + number * 7 % 120 for number in range(200)]
body = {'input_ids': ids, 'sampling_params': {'max_new_tokens': 24, 'temperature': 0, 'ignore_eos': True}}
request = urllib.request.Request('http://127.0.0.1:30000/generate', json.dumps(body).encode(),
                                 {'Authorization': 'Bearer ' + key, 'Content-Type': 'application/json'})
told = json.load(urllib.request.urlopen(request, timeout=120))['output_ids']
model = AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32)
with torch.no_grad():
    scores = model(torch.tensor([ids + told])).logits[0, len(ids) - 1:-1]
print(json.dumps([round(float(row.max() - row[token]), 3) for row, token in zip(scores, told)]))
"""


@pytest.fixture(scope="module")
def served() -> Iterator[real.Served]:
    with real.profiles():
        group = real.Served(NAME, "sglang", 30000, "tiny", ("spark1", "spark2"), BACK, GLOO)
        group.start()
        yield group


def test_it_streams_what_its_own_usage_counts(served: real.Served) -> None:
    contract.streams_what_its_usage_counts(served)


def test_its_tokens_are_those_of_transformers_own_code(served: real.Served) -> None:
    """But for ties: it computes in bfloat16, on two ranks."""
    folder = "FOLDER = '/models/by-name/sparkloom-testbed--tiny-hybrid'\n"
    behind = json.loads(served.inside(0, folder + REFERENCE).splitlines()[-1])
    assert len(behind) == 24 and sum(gap == 0 for gap in behind) >= 18 and max(behind) < 0.2, behind


def test_its_pools_are_what_the_plan_says(served: real.Served) -> None:
    """`plan` knew nothing of max_total_tokens, and promised sixteen million."""
    slots, tokens = (re.search(said, served.log(0)) for said in (r"max_mamba_cache_size: (\d+)", r"#tokens: (\d+)"))
    assert slots and tokens, served.log(0)[-3000:]
    plan = run("sparkloom", "plan", NAME, "-i", str(inventory.path())).stdout
    assert f"requests at once: {slots[1]}, by the state slots" in plan, plan
    assert f"{int(tokens[1]):,} KV tokens" in plan, plan


def test_a_full_queue_is_answered_by_its_few_slots(served: real.Served) -> None:
    contract.answers_a_full_queue(served, words=150)


def test_a_killed_scheduler_brings_the_group_back(served: real.Served) -> None:
    contract.comes_back_from_a_kill(served, 1)
