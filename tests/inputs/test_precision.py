"""What a word for a stored format weighs, and what is said to one that is none."""

from __future__ import annotations

import json
import re

import pytest

from sparkloom.inputs import precision, profile
from sparkloom.launch import schema

# bytes per parameter as profiles of before 2026-11-24 counted them: their plans must not move
BEFORE = {
    "nvfp4": 0.5625, "mxfp4": 0.53125, "int4": 0.51953125, "fp8": 1.0, "bf16": 2.0, "fp32": 4.0, "q2": 0.34,
}  # fmt: skip


@pytest.mark.parametrize(("word", "size"), BEFORE.items())
def test_old_words_weigh_what_they_weighed(word: str, size: float) -> None:
    assert precision.weight(word) == size


@pytest.mark.parametrize(
    ("word", "bits"),
    [
        ("int4-g128", 4 + 20 / 128),  # AWQ, GPTQ: scale and zero point
        ("int4-g128-sym", 4 + 16 / 128),  # compressed-tensors: no zero point
        ("int4-g32", 4 + 20 / 32),
        ("int2-g64", 2 + 18 / 64),
        ("fp8-b128", 8 + 32 / 128**2),
        ("fp8-g128", 8.25),
        ("mxfp8", 8.25),
        ("exl3-3.5", 3.5),
        ("bits-4.25", 4.25),
        ("q4_k", 4.5),
        ("q5_k", 5.5),
        ("q4_k_m", 4.8944),
        ("iq4_xs", 4.4597),
        ("q2_k", 3.1593),
        ("ud-iq2_m", 2.9294),
        ("ud-q4_k_xl", 4.6672),
    ],
)
def test_bits_count_scales_and_zero_points(word: str, bits: float) -> None:
    assert precision.bits(word) == pytest.approx(bits) and precision.weight(word) == precision.bits(word) / 8


def test_the_plain_int4_is_the_grouped_one() -> None:
    assert precision.weight("int4") == precision.weight("int4-g128")


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("BF16", "write bf16"),
        ("Q4_K_M", "write q4_k_m"),
        ("UD-Q2_K_XL", "write ud-q2_k_xl"),
        ("int4_g128", "write int4-g128"),
        ("awq", "write int4-g128"),
        ("fp4", "write nvfp4 or mxfp4"),
        ("mxfp5", "mxfp4"),
        ("exl4-3", "exl3-3.5"),
        ("bits-99", "expected 1 to 32"),
        ("int4-g100", "int4-g128"),
        ("", "one as int4-g128"),
    ],
)
def test_an_unknown_word_is_refused_with_the_near_ones(word: str, near: str) -> None:
    with pytest.raises(ValueError, match=re.escape(near)):
        precision.format_word(word)


@pytest.mark.parametrize(
    ("word", "near"),
    [("autoround", "auto-round"), ("modelopt_fp4", "modelopt"), ("model_opt", "modelopt"), ("nvfp4", "modelopt or")],
)
def test_who_packed_a_checkpoint_is_refused_likewise(word: str, near: str) -> None:
    with pytest.raises(ValueError, match=re.escape(near)):
        precision.packing_word(word)


def test_an_editor_completes_what_the_loader_takes() -> None:
    text = json.dumps(schema.build()["$defs"]["Precisions"]["properties"]["experts"])
    assert '"q4_k_m"' in text and '"nvfp4"' in text
    assert re.fullmatch(precision.PATTERN, "exl3-3.5") and not re.fullmatch(precision.PATTERN, "exl3")


def test_every_shipped_word_is_known() -> None:
    for name in profile.names():
        model = profile.load(name).profile.model
        assert model.checkpoint.packing in precision.PACKINGS
        for word in filter(None, model.precision.model_dump().values()):
            assert precision.weight(word) > 0
