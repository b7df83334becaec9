"""Public models' own config.json through the readers: parameters and bytes against what the hub says of each."""

from __future__ import annotations

from functools import cache

import pytest

from sparkloom.inputs.checkpoint import architectures, as_model, reading
from sparkloom.inputs.checkpoint.packing import BITS
from sparkloom.inputs.checkpoint.reading import Checkpoint
from sparkloom.inputs.checkpoint.tensors import Tensor
from sparkloom.inputs.profile import Model, Parallel
from sparkloom.launch.memory import weights
from tests.public_models import NAMES, facts, folder

SHORT = 0.03  # of the checkpoint: more than that no file leaves out


@cache
def checkpoint(name: str) -> Checkpoint:
    return reading.read(str(folder(name)))


def counted(found: Checkpoint, rule: str) -> int:
    """The tensors as the hub counts them, by the rule that its facts name."""
    tensors = [t for t in found.shape.tensors() if "without draft layers" not in rule or t.group != "draft"]
    head = found.shape.vocab * found.shape.hidden if "copy of the tied head" in rule else 0
    if rule.startswith("parameters"):
        return sum(tensor.elements for tensor in tensors)
    if rule.startswith("stored, with scales"):
        return sum(sum(found.packing.stored(tensor).values()) for tensor in tensors) + head
    return sum(packed(found, tensor) for tensor in tensors)


def packed(found: Checkpoint, tensor: Tensor) -> int:
    scheme = found.packing.of(tensor)
    return tensor.elements * scheme.bits // 8 if scheme else tensor.elements


@pytest.mark.parametrize("name", [name for name in NAMES if "elements" in facts(name)])
def test_the_hub_counts_as_many_numbers(name: str) -> None:
    said = facts(name)["elements"]
    ours = counted(checkpoint(name), said["counts"])
    if "short" in facts(name):
        assert said["hub"] * (1 - SHORT) < ours < said["hub"]
    else:
        assert ours == pytest.approx(said["hub"], rel=1e-6)


@pytest.mark.parametrize("name", [name for name in NAMES if "bytes" in facts(name)])
def test_the_files_weigh_as_much(name: str) -> None:
    found, said = checkpoint(name), facts(name)["bytes"]
    left = said.get("without", "")
    ours = sum(
        number * BITS[kind] / 8
        for group, counts in found.predicted.items()
        if group != left
        for kind, number in counts.items()
    )
    assert ours == pytest.approx(said["hub"], rel=0.02)


@pytest.mark.parametrize("name", [name for name in NAMES if "tensors" in facts(name)])
def test_whose_index_is_known_it_is_every_tensor_and_every_byte(name: str) -> None:
    found = checkpoint(name)
    files = sum(tensor.copies * len(found.packing.stored(tensor)) for tensor in found.tensors)  # scales are their own
    assert (files, found.predicted_bytes) == (facts(name)["tensors"], facts(name)["bytes"]["hub"])


@pytest.mark.parametrize("name", NAMES)
def test_the_profile_s_memory_rule_weighs_the_same_tensors(name: str) -> None:
    """`plan` computes weights from a profile's few facts: those that are drafted must carry the whole model."""
    found = checkpoint(name)
    drafted = as_model.of(found)
    model = Model.model_validate(drafted.data)
    computed = weights.gib(model, Parallel(nodes=1, tp=1)) * 2**30
    loaded = found.predicted_bytes - sum(n * BITS[k] / 8 for k, n in found.predicted.get("draft", {}).items())
    assert computed == pytest.approx(loaded, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_every_fact_has_a_source(name: str) -> None:
    drafted = as_model.of(checkpoint(name))
    assert {"layers", "attention", "precision", "checkpoint", "parameters_b", "hidden"} <= set(drafted.sources)
    assert "config.json" in drafted.data["source"]
    assert facts(name)["config"] and facts(name)["read"]


def test_there_are_enough_of_them_and_most_are_exact() -> None:
    exact = [name for name in NAMES if "elements" in facts(name) and "short" not in facts(name)]
    assert len(NAMES) >= 60
    assert len(exact) >= 45


def test_no_reader_is_for_an_architecture_whose_file_nobody_saw() -> None:
    seen = {checkpoint(name).architecture for name in NAMES}
    assert set(architectures.every()) == seen


def test_what_a_file_leaves_out_is_said() -> None:
    for name in NAMES:
        if "short" in facts(name):
            assert checkpoint(name).shape.unknown, name
