"""Which model `bench` measures where nobody says it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.measure.bench.run import served_model

GROUP, ALIAS = {"id": "tiny--sglang-2node"}, {"id": "tiny", "root": "tiny--sglang-2node"}


class Listing:
    url = "https://192.0.2.1"

    def __init__(self, *listed: Any) -> None:
        self.listed = listed

    def get(self, path: str) -> tuple[int, str]:
        return 200, json.dumps({"object": "list", "data": self.listed})


def chosen(*listed: Any, wanted: str | None = None) -> str:
    return served_model(Listing(*listed), wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("listed", [(GROUP, ALIAS), (ALIAS, GROUP), (GROUP,)])
def test_a_site_of_one_group_is_measured_whatever_names_it_has(listed: tuple[Any, ...]) -> None:
    """As the router lists it: the group, and the model's name as its alias. It was refused as two models."""
    assert chosen(*listed) == GROUP["id"]
    assert chosen(*listed, wanted="tiny") == "tiny"


def test_an_engine_s_own_root_is_a_path_and_no_alias() -> None:
    assert chosen({"id": "qwen", "root": "/models/qwen"}) == "qwen"
    assert chosen({"id": "qwen", "root": "qwen"}) == "qwen"


def test_of_two_groups_one_has_to_be_named() -> None:
    with pytest.raises(InputError, match="serves tiny--sglang-2node, other; --model names the one to measure"):
        chosen(GROUP, ALIAS, {"id": "other"})
