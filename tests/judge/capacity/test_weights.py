"""Weights per rank from shapes and precisions alone, against what servers logged."""

from __future__ import annotations

import pytest

from sparkloom.inputs.profile import Parallel
from sparkloom.launch.engines import fit
from sparkloom.launch.memory import weights
from tests.judge.capacity.conftest import GLM, QWEN, SUPER, ULTRA, Maker

# Logged per rank at TP=4, in GiB (the server prints GiB and calls them GB).
LOGGED = {ULTRA: 83.72, SUPER: 23.31, QWEN: 59.0, GLM: 54.0}


@pytest.mark.parametrize("name", LOGGED)
def test_computed_weights_agree_with_the_logs(view: Maker, name: str) -> None:
    asked = view(name)
    assert not asked.model.measured.weights_gib_per_rank
    computed = fit(asked).memory["weights_gib_per_rank"].value
    assert computed == pytest.approx(LOGGED[name], rel=0.10)


def test_tensors_of_ultra_and_super(view: Maker) -> None:
    four = Parallel(nodes=4, tp=4, ep=4)
    assert weights.gib(view(ULTRA).model, four) == pytest.approx(79.2, rel=0.005)
    assert weights.gib(view(SUPER).model, four) == pytest.approx(17.6, rel=0.005)


def test_one_rank_holds_all_and_copies_cost(view: Maker) -> None:
    """Splitting over four ranks saves less than three quarters: router, latent and KV projections are copies."""
    model = view(ULTRA).model
    alone = weights.gib(model, Parallel(nodes=1, tp=1))
    split = weights.gib(model, Parallel(nodes=4, tp=4))
    assert alone / 4 < split < alone / 4 * 1.05


def test_expert_parallelism_changes_no_rank_total(view: Maker) -> None:
    model = view(QWEN).model
    assert weights.gib(model, Parallel(nodes=4, tp=4, ep=4)) == weights.gib(model, Parallel(nodes=4, tp=4, ep=1))


def test_a_measured_rank_is_used_and_the_computed_one_shown_beside_it() -> None:
    from tests.judge.capacity.conftest import resolved

    memory = fit(resolved(ULTRA).view()).memory
    assert memory["weights_gib_per_rank"].value == 83.72
    assert "weighed" in memory["weights_gib_per_rank"].formula
    assert memory["weights_computed_gib_per_rank"].value == pytest.approx(83.72, rel=0.01)


def test_every_shipped_model_weighs_what_its_checkpoint_does() -> None:
    """Sum over ranks against the download's size: 15 %, since towers and MTP layers are not all counted."""
    from sparkloom.inputs import profile

    for name in profile.names():
        model = profile.load(name).profile.model
        if model.checkpoint.packing == "gguf" or not model.checkpoint.size_gb:
            continue
        whole = weights.gib(model, Parallel(nodes=1, tp=1)) * 2**30 / 1e9
        assert whole == pytest.approx(model.loaded_gb, rel=0.15), name  # a table on disk is downloaded and stays there
