"""The small types that a profile's fields are made of."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sparkloom.inputs import precision

LARGEST = 1_000_000_000  # no size here comes near it; a slipped digit does
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Maybe = Annotated[int, Field(ge=0, le=LARGEST)]
Size = Annotated[float, Field(gt=0, le=1e6)]
Speed = Annotated[float, Field(ge=0, le=1e6)]
UNNAMED = "unknown/"  # in place of the owner, where an imported source gives only a path
HUB_ID = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*$"


def _hub_id(text: str) -> str:
    if not re.fullmatch(HUB_ID, text) or ".." in text:
        raise ValueError(
            f"'{text}' is no hub id; write org/name as on the model's page, each beginning with a letter or digit"
        )
    return text


def _inside(text: str) -> str:
    """A folder of the model store is named after it: nothing may lead out of there."""
    if text.startswith(("/", "~")) or ".." in text.split("/") or not text.strip():
        raise ValueError(f"'{text}' leads out of the model's folder; write a name inside the repository")
    return text


HubId = Annotated[str, AfterValidator(_hub_id), Field(json_schema_extra={"pattern": HUB_ID})]
Inside = Annotated[str, AfterValidator(_inside)]
Scalar = bool | int | float | str
FlagValue = Scalar | list[Scalar] | dict[str, Any] | None


# Words that carry their numbers (int4-g128) are a pattern; the others are a list that editors complete from.
_FORMATS = {"anyOf": [{"enum": sorted(precision.FORMATS)}, {"pattern": precision.PATTERN}]}
Precision = Annotated[str, AfterValidator(precision.format_word), Field(json_schema_extra={**_FORMATS})]
Packing = Annotated[
    str, AfterValidator(precision.packing_word), Field(json_schema_extra={"enum": [*precision.PACKINGS]})
]


class Strict(BaseModel):
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, protected_namespaces=(), allow_inf_nan=False, defer_build=True
    )
