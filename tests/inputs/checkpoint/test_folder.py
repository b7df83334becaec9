"""A checkpoint in a folder: what its headers say, what is missing, what is no checkpoint."""

from __future__ import annotations

import json
import socket
from math import prod
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs.checkpoint import as_model, reading
from sparkloom.inputs.profile import Model
from tests.inputs.checkpoint import files
from tests.public_models import facts


def small(tmp_path: Path, **more: object) -> Path:
    config = {**files.SMALL, **more}
    return files.write(tmp_path / "acme--small", config, files.tensors({**files.SMALL}))


def test_headers_weigh_what_config_json_makes(tmp_path: Path) -> None:
    found = reading.read(str(small(tmp_path)))
    assert (found.id, found.known, found.disagrees) == ("acme/small", True, pytest.approx(0, abs=0.03))
    assert found.contents is not None
    assert sum(prod(tensor.shape) for tensor in found.contents.tensors) == found.parameters
    assert sum(found.group_bytes.values()) == 2 * found.parameters
    assert not found.unknown


def test_no_network_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_args: object, **_more: object) -> None:
        raise AssertionError("a folder needs no network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    assert reading.read(str(small(tmp_path))).parameters > 0


def test_an_unknown_architecture_is_drafted_from_names_and_shapes_and_says_so(tmp_path: Path) -> None:
    known = reading.read(str(small(tmp_path)))
    found = reading.read(str(small(tmp_path / "other", architectures=["SomethingNewForCausalLM"])))
    assert not found.known
    assert any("no reader for 'SomethingNewForCausalLM'" in text for text in found.unknown)
    ours, theirs = as_model.of(found).data, as_model.of(known).data
    Model.model_validate(ours)
    assert ours["layers"] == theirs["layers"] == {"attention": 3, "moe": 2, "dense": 1}
    for key in ("hidden", "vocab", "attention", "experts", "dense_inter"):
        assert ours[key] == theirs[key], key


def test_without_tensors_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["SomethingNewForCausalLM"]}))
    with pytest.raises(InputError, match=r"no reader knows 'SomethingNewForCausalLM'.*index and headers are needed"):
        reading.read(str(tmp_path))


def test_tensors_that_config_json_does_not_explain_are_said(tmp_path: Path) -> None:
    named = files.tensors(files.SMALL) | {"model.extra.weight": ("BF16", (400, 400))}
    found = reading.read(str(files.write(tmp_path / "acme--big", files.SMALL, named)))
    assert any("a part was not understood" in text for text in found.unknown)


def test_draft_layers_that_the_files_lack_are_left_out(tmp_path: Path) -> None:
    config = {**facts("zai-org--GLM-4.5-Air")["says"]["config"]}
    config |= {
        "hidden_size": 64, "vocab_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
        "num_key_value_heads": 2, "intermediate_size": 64, "moe_intermediate_size": 16, "n_routed_experts": 4,
        "num_experts_per_tok": 2,
    }  # fmt: skip
    named = files.tensors(config)
    whole = reading.read(str(files.write(tmp_path / "a--whole", config, named)))
    kept = {name: entry for name, entry in named.items() if ".layers.2." not in name}
    cut = reading.read(str(files.write(tmp_path / "a--cut", config, kept)))
    assert as_model.of(whole).data["mtp"]["layers"] == 1 and whole.group_bytes["draft"] > 0
    assert "mtp" not in as_model.of(cut).data
    assert "config.json names multi-token-prediction layers, the files have none" in cut.unknown


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected a mapping"),
        ("{}", "architectures is missing"),
        (json.dumps({**files.SMALL, "hidden_size": "wide"}), "hidden_size is 'wide'; expected a whole number"),
        (
            json.dumps({key: value for key, value in files.SMALL.items() if key != "vocab_size"}),
            "vocab_size is missing",
        ),
    ],
)
def test_a_config_that_is_none_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=says) as refused:
        reading.read(str(tmp_path))
    assert refused.value.problems[0].file.endswith("config.json")


@pytest.mark.parametrize("raw", [b"", b"1234567", b"\xff" * 8 + b"{}", (9).to_bytes(8, "little") + b'{"a": 1}x'])
def test_a_file_that_is_no_safetensors_file_is_refused_by_name(tmp_path: Path, raw: bytes) -> None:
    folder = small(tmp_path)
    (folder / "model-00001-of-00002.safetensors").write_bytes(raw)
    with pytest.raises(InputError) as refused:
        reading.read(str(folder))
    assert "model-00001-of-00002.safetensors" in refused.value.problems[0].file


def test_only_gguf_files_name_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputError, match=r"no config\.json here"):
        reading.read(str(tmp_path))


@pytest.mark.parametrize("word", ["", "../..", "nothing-here", "a/b/c", "org/../x"])
def test_what_is_neither_folder_nor_id_is_refused(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        reading.read(word)
