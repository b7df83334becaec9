"""Input that is well-formed and cannot be meant: refused where it stands, with what to write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.base.errors import InputError, Problem
from sparkloom.inputs import inventory, profile

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"


def refused(path: Path, text: str) -> Problem:
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        profile.load(path)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("section", "key", "said"),
    [
        ("launch", "mem_fraction_statik", "did you mean 'mem_fraction_static'?"),
        ("launch", "page_size", f"'{ULTRA}' gives no launch.page_size"),
        ("env", "SGLANG_ENABLE_JIT_DEEPGEM", "did you mean 'SGLANG_ENABLE_JIT_DEEPGEMM'?"),
    ],
)
def test_null_that_removes_nothing_is_refused(tmp_path: Path, section: str, key: str, said: str) -> None:
    problem = refused(tmp_path / "own.yml", f"extends: {ULTRA}\nsummary: x\n{section}:\n  {key}: null\n")
    assert (problem.rule, problem.line, problem.column) == ("nothing-to-remove", 4, 3) and said in problem.message


def test_null_without_a_parent_is_refused(tmp_path: Path) -> None:
    text = (profile.PROFILES / f"{ULTRA}.yml").read_text().replace("\nlaunch:\n", "\nlaunch:\n  page_size: null\n", 1)
    problem = refused(tmp_path / "own.yml", text)
    assert problem.rule == "nothing-to-remove" and "extends" in problem.message


def test_null_that_removes_is_as_before(tmp_path: Path) -> None:
    path = tmp_path / "own.yml"
    path.write_text(f"extends: {ULTRA}\nsummary: x\nlaunch:\n  mem_fraction_static: null\n")
    assert "mem_fraction_static" not in profile.load(path).profile.launch.flags


@pytest.mark.parametrize("model", ["../..", "./x", "x/..", "-x/y", "x/.y", "x/y/z", "x", "/y", "x/a..b", "x/y\n"])
def test_a_model_id_that_is_no_hub_id_is_refused(tmp_path: Path, model: str) -> None:
    text = (profile.PROFILES / f"{ULTRA}.yml").read_text()
    spoilt = re.sub(
        r"(?m)^  id: .*$", lambda _: f"  id: {yaml.dump(model, default_style=chr(34)).strip()}", text, count=1
    )
    problem = refused(tmp_path / "own.yml", spoilt)
    assert "model.id" in problem.message and "org/name" in problem.message


@pytest.mark.parametrize(("key", "value"), [("file", "../x.gguf"), ("file", "/etc/passwd"), ("revision", "../../x")])
def test_a_file_or_revision_outside_the_repository_is_refused(tmp_path: Path, key: str, value: str) -> None:
    text = (profile.PROFILES / f"{ULTRA}.yml").read_text()
    problem = refused(tmp_path / "own.yml", re.sub(r"(?m)^(  id: .*)$", rf"\1\n  {key}: {value}", text, count=1))
    assert f"model.{key}" in problem.message and "inside the repository" in problem.message


def variables(address: Any) -> dict[str, Any]:
    cluster = case.cluster(None).model_dump()
    nodes = [{**node, "management_address": address} if not n else node for n, node in enumerate(cluster["nodes"])]
    rest = {key: value for key, value in cluster.items() if key not in ("nodes", "fabric", "servers")}
    return {"cluster": rest, "fabric": cluster["fabric"], "nodes": nodes}


@pytest.mark.parametrize(
    "address", ["192.168.1.999", "192.168.1", "1.2.3.4.5", "10.0.0.1/24", "fe80::zz", "a b", "-x", ""]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="management_address"):
        inventory.from_vars(variables(address))


@pytest.mark.parametrize("address", ["192.168.1.11", "fd00::1", "spark1", "spark1.local", "spark-1.example.org.", None])
def test_addresses_and_names_are_taken(address: str | None) -> None:
    assert inventory.from_vars(variables(address)).nodes[0].management_address == address
