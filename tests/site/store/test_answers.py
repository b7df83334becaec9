"""A run that --limit narrows is about its own nodes: the others were not asked, and nobody misses their answers."""

from __future__ import annotations

import pytest

from sparkloom.base.errors import InputError
from sparkloom.site.store.locking import held

ORDER = ["spark1", "spark2", "spark3"]
SPARK2 = {"spark2": {"answer": [{"id": "m"}]}}


def test_nodes_outside_of_the_limit_are_no_part_of_it() -> None:
    """On the old code `--limit spark2` ended in KeyError: 'spark1'."""
    assert held(ORDER, SPARK2, {"spark2"}) == {"spark2": [{"id": "m"}]}


def test_a_node_that_was_asked_and_is_silent_is_named_with_what_it_said() -> None:
    checks = {**SPARK2, "spark3": {"failed": True, "msg": "No space left on device"}}
    with pytest.raises(InputError, match=r"spark3: No space left on device.*--limit '!spark3'"):
        held(ORDER, checks, set(ORDER) - {"spark1"})


def test_a_limit_without_any_of_its_nodes_says_which_those_are() -> None:
    with pytest.raises(InputError, match=r"names none of the nodes that serve this profile \(spark1, spark2, spark3\)"):
        held(ORDER, {}, {"box1"})
