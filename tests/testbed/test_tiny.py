"""The checkpoints for real engines: what a loader reads of them is consistent, and the same each time."""

from __future__ import annotations

import array
import json
import struct
from pathlib import Path

import pytest

from sparkloom.inputs import profile
from testbed.standins.hub import tiny

NAME = f"{tiny.OWNER}tiny-dense"


@pytest.fixture(scope="module", params=["tiny-dense", "tiny-moe", "tiny-recites", "tiny-hybrid"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    tiny.write(folder, f"{tiny.OWNER}{request.param}")
    return folder


def test_the_tensors_fill_the_file_and_have_the_shapes_of_the_config(made: Path) -> None:
    data = (made / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    table = json.loads(data[8 : 8 + length])
    table.pop("__metadata__")
    config = json.loads((made / "config.json").read_text())
    assert max(entry["data_offsets"][1] for entry in table.values()) == len(data) - 8 - length
    assert table["model.embed_tokens.weight"]["shape"] == [config["vocab_size"], config["hidden_size"]]
    layers = {name.split(".")[2] for name in table if name.startswith("model.layers.")}
    assert layers == {str(number) for number in range(config["num_hidden_layers"])}


def test_every_byte_has_a_token_and_the_turns_have_theirs(made: Path) -> None:
    words = json.loads((made / "tokenizer.json").read_text())["model"]["vocab"]
    config = json.loads((made / "config.json").read_text())
    assert sorted(words.values()) == list(range(config["vocab_size"]))
    assert [*words][256:259] == list(tiny.SPECIAL)
    assert words["<|im_end|>"] == config["eos_token_id"]


def test_one_model_recites_its_page_from_wherever_it_begins(tmp_path: Path) -> None:
    """By its first and its last matrix: what comes after a turn's newline is left to what the layers see."""
    tiny.write(tmp_path, tiny.RECITES)
    data = (tmp_path / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    table = json.loads(data[8 : 8 + length])
    names = [*tiny.words(tiny.RECITES)]

    def rows(name: str) -> list[array.array[float]]:
        begin, end = (8 + length + at for at in table[name]["data_offsets"])
        wide = bytearray(2 * (end - begin))
        wide[2::4], wide[3::4] = data[begin:end:2], data[begin + 1 : end : 2]
        numbers = array.array("f", bytes(wide))
        return [numbers[at : at + tiny.HIDDEN] for at in range(0, len(numbers), tiny.HIDDEN)]

    embedded, followed = rows("model.embed_tokens.weight"), rows("lm_head.weight")

    def scores(token: int) -> list[float]:
        return [sum(a * b for a, b in zip(row, embedded[token], strict=True)) for row in followed]

    page = range(256 + len(tiny.SPECIAL), len(names))
    told = [names[page[0]]]
    for token in page:
        found = scores(token)
        told.append(names[found.index(max(found))])
        assert max(found) > 2 * sorted(found)[-2]
    assert told.pop() == "<|im_end|>"
    assert "".join(told).replace("\u0120", " ") == " ".join(tiny.PAGE.read_text().split())
    begun = scores(names.index("\u010a"))
    assert max(begun) - min(begun[token] for token in page) < 0.02 * max(begun)
    assert max(begun[: page[0]]) < max(begun) / 2


def test_the_same_model_is_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        tiny.write(tmp_path / name, NAME)
    assert (tmp_path / "one/model.safetensors").read_bytes() == (tmp_path / "two/model.safetensors").read_bytes()


@pytest.mark.parametrize("path", sorted(tiny.PROFILES.glob("tiny-*.yml")), ids=lambda path: path.stem)
def test_a_profile_of_the_test_bed_says_what_its_checkpoint_is(path: Path, tmp_path: Path) -> None:
    model = profile.load(path).profile.model
    tiny.write(tmp_path, model.id)
    config = json.loads((tmp_path / "config.json").read_text())
    assert tiny.known(model.id) and model.architecture == config["architectures"][0]
    assert (model.hidden, model.vocab, model.context) == (
        config["hidden_size"], config["vocab_size"], config["max_position_embeddings"],
    )  # fmt: skip
    if model.experts:
        assert (model.experts.routed, model.experts.active) == (config["num_experts"], config["num_experts_per_tok"])
