"""Views of shipped profiles, with what was measured taken out: a computed figure may not lean on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sparkloom.inputs import inventory, profile
from sparkloom.inputs.profile import Measured, Model
from sparkloom.launch import resolve
from sparkloom.launch.resolve import Launch
from sparkloom.launch.view import LaunchView

Maker = Callable[..., LaunchView]
ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
SUPER = "nvidia--nemotron-3-super-120b-a12b-nvfp4--nospec"
SUPER_MTP = "nvidia--nemotron-3-super-120b-a12b-nvfp4"
QWEN = "nvidia--qwen3.5-397b-a17b-nvfp4"
GLM = "nvidia--glm-4.7-nvfp4"


def resolved(name: str, *overrides: str) -> Launch:
    return resolve.resolve(profile.load(name, overrides=overrides), inventory.load())


def facts_only(model: Model) -> Model:
    return model.model_copy(update={"measured": Measured()})


def make(name: str, *overrides: str) -> LaunchView:
    """`launch.`-overrides without the prefix: make(ULTRA, "mem_fraction_static=0.85")."""
    asked = resolved(name, *(f"launch.{text}" for text in overrides)).view()
    return replace(asked, model=facts_only(asked.model))


@pytest.fixture
def view() -> Maker:
    return make
