"""Every refusal names the place: YAML errors, unknown keys, wrong types, inheritance."""

from pathlib import Path

import pytest
import yaml

from sparkloom.base import document
from sparkloom.base.errors import InputError
from sparkloom.inputs import profile

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
SOURCE = profile.PROFILES / f"{ULTRA}.yml"


def refusal(path: Path | str, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        profile.load(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


def changed(tmp_path: Path, old: str, new: str) -> Path:
    text = SOURCE.read_text()
    assert old in text
    path = tmp_path / "changed.yml"
    path.write_text(text.replace(old, new, 1))
    return path


def line_of(path: Path, word: str) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if word in line)


def test_misspelt_key_has_position_and_hint(tmp_path: Path) -> None:
    path = changed(tmp_path, "hidden: 8192", "hiden: 8192")
    message = refusal(path)
    assert f"changed.yml:{line_of(path, 'hiden')}:3: unknown key 'model.hiden'; did you mean 'hidden'?" in message


def test_wrong_type_says_what_was_found(tmp_path: Path) -> None:
    path = changed(tmp_path, "hidden: 8192", "hidden: '8192'")
    assert "model.hidden: Input should be a valid integer (found '8192') [wrong-type]" in refusal(path)


def test_duplicate_key(tmp_path: Path) -> None:
    assert "key 'hidden' stands twice" in refusal(changed(tmp_path, "hidden: 8192", "hidden: 8192\n  hidden: 1"))


@pytest.mark.parametrize(
    "text", ["", "- a\n", "model: [1, 2\n", "a: !!python/object:os.system x\n", "a: &a [*a]\n", "? [x]\n: 1\n"]
)
def test_not_a_profile(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yml"
    path.write_text(text)
    assert "bad.yml:" in refusal(path)


def test_aliases_cannot_explode() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(InputError):
        document.parse("\n".join(lines), "bomb.yml")


def test_missing_file_and_misspelt_name() -> None:
    assert "no such file" in refusal("./nowhere.yml")
    assert f"did you mean '{ULTRA}'?" in refusal(ULTRA[:-1])


def test_experts_must_split(tmp_path: Path) -> None:
    path = changed(tmp_path, "ep: 4}", "ep: 3}")
    message = refusal(path)
    assert (
        f"changed.yml:{line_of(path, 'ep: 3')}:" in message
        and "ep 3 does not divide tp 4; write one of 1, 2, 4" in message
    )


def test_child_merges_over_parent_but_not_its_evidence(tmp_path: Path) -> None:
    (tmp_path / "parent.yml").write_text(SOURCE.read_text())
    child = tmp_path / "child.yml"
    child.write_text("extends: parent\nsummary: other\nlaunch: {context_length: 524288, max_mamba_cache_size: null}\n")
    loaded = profile.load(child)
    assert loaded.profile.launch.flags["context_length"] == 524288
    assert "max_mamba_cache_size" not in loaded.profile.launch.flags
    assert loaded.profile.launch.flags["quantization"] == "modelopt_fp4"
    assert loaded.profile.evidence == []
    assert loaded.where("launch", "context_length").endswith("child.yml:3")
    assert loaded.where("launch", "quantization").startswith(str(tmp_path / "parent.yml"))


def test_another_engine_starts_afresh(tmp_path: Path) -> None:
    (tmp_path / "parent.yml").write_text(SOURCE.read_text())
    child = tmp_path / "child.yml"
    child.write_text(
        "extends: parent\nsummary: other\nengine: {name: vllm, release: '0.19.0', image: a:b}\n"
        "launch: {parallel: {nodes: 1, tp: 1}}\n"
    )
    loaded = profile.load(child)
    assert dict(loaded.profile.launch.flags) == {} and loaded.profile.env == {}


def test_grandparents_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("extends: b\nsummary: x\n")
    (tmp_path / "b.yml").write_text("extends: c\nsummary: x\n")
    assert "one level only" in refusal(tmp_path / "a.yml")


@pytest.mark.parametrize(
    "override", ["launch", "summary=x", "launch.parallel.tp=two", "launch.parallel.x.y=1", "=1", "launch.a=[1"]
)
def test_bad_overrides(override: str) -> None:
    assert "--set" in refusal(ULTRA, overrides=[override])


def test_override_shows_as_its_own_origin() -> None:
    loaded = profile.load(ULTRA, overrides=["launch.mem_fraction_static=0.88"])
    assert loaded.profile.launch.flags["mem_fraction_static"] == 0.88
    assert loaded.where("launch", "mem_fraction_static").startswith("--set")


def test_a_flood_of_keys_is_refused_before_it_is_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: composing 300,000 keys took 5 s, and the refusal came after it."""
    text = "model:\n" + "".join(f"  key{number}: {number}\n" for number in range(300_000))
    seen, parse = [], yaml.parse
    monkeypatch.setattr(
        yaml, "parse", lambda *words, **named: (seen.append(1) or event for event in parse(*words, **named))
    )
    monkeypatch.setattr(yaml, "compose", lambda *words, **named: pytest.fail("it was composed"))
    with pytest.raises(InputError, match=r"x\.yml:\d+:\d+: more than 20,000 values: too large"):
        document.parse(text, "x.yml")
    assert len(seen) < 3 * document.MAX_NODES


def test_much_text_is_no_flood() -> None:
    read = document.parse("a: |\n" + "  x, y - z: w?\n" * 10_000 + "b: [1, 2]\n", "x.yml")
    assert read.data["b"] == [1, 2] and len(read.data["a"]) > 100_000
