"""What a site chose for K3s: the role's variables, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from sparkloom.base import document
from sparkloom.base.document import Document
from sparkloom.inputs.profile import Strict

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Version = Annotated[str, StringConstraints(pattern=r"^v\d+\.\d+\.\d+\+k3s\d+$")]


class Options(Strict):
    """One field per variable of the role, less its prefix."""

    version: Version
    sha256: dict[str, Digest]
    images_sha256: dict[str, Digest]
    cni_version: Annotated[str, StringConstraints(pattern=r"^v\d+\.\d+\.\d+$")]
    cni_sha256: dict[str, Digest]
    url: str
    cni_url: str
    artifacts: str = Field(description="folder on the controller; nothing is downloaded when it is named")
    images_from: Literal["archives", "registries"] = Field(description="of images beside K3s' own, with artifacts")
    api_host: str
    disable: list[str]
    kubelet_args: list[str]
    server_config: dict[str, Any]
    agent_config: dict[str, Any]
    registries: dict[str, Any]
    adopt: bool


def options(variables: Mapping[str, Any]) -> Options:
    """From the role's variables, `k3s_version` and so on."""
    data = {name: variables[f"k3s_{name}"] for name in Options.model_fields if f"k3s_{name}" in variables}
    return document.validate(Options, Document("k3s_*", data))


def release(version: str) -> tuple[int, ...]:
    """v1.35.8+k3s1 -> (1, 35, 8, 1), for comparing."""
    return tuple(int(number) for number in re.findall(r"\d+", version.replace("k3s", "")))
