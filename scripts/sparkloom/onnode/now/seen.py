"""An object of Kubernetes' API as plain JSON, asked as the Kubernetes client's own objects are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

ODD = {"image_id": "imageID", "pod_ip": "podIP"}  # where the client's spelling is not regular
MAPPINGS = {"labels", "annotations", "node_selector", "allocatable", "data"}  # whose keys are not ours to spell


class Seen:
    """`Seen(pod).status.container_statuses[0].state.waiting`; what is not there is None."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        first, *rest = name.split("_")
        return _taken(name, self._data.get(ODD.get(name) or first + "".join(part.title() for part in rest)))


def _taken(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value) if name in MAPPINGS else Seen(value)
    if isinstance(value, list):
        return [_taken(name, item) for item in value]
    if isinstance(value, str) and name.endswith(("_time", "_timestamp")):
        return _time(value)
    return value


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 knows no Z
    except ValueError:
        return None
