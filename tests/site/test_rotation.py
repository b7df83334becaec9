"""A new key of the clients is waited for at rank 0: hurried, bounded, and never by a restart."""

from __future__ import annotations

from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.onnode.rank import clients
from sparkloom.site import rotation

KEY = "sk-0123456789abcdef"


class Reached:
    """A pod whose kubelet renews its files so many looks after it was told to."""

    def __init__(self, told: dict[str, Any] | None, after: int = 10**6) -> None:
        self.now, self.nudges, self.said = 0.0, 0, list[str]()
        self.answer, self.after = told, after

    def has_pod(self, name: str) -> bool:
        return name == "x-rank0-0"

    def told(self, pod: str) -> dict[str, Any] | None:
        self.after -= 1 if self.nudges else 0
        return self.answer if self.after > 0 else {"clients": [clients.name(KEY.encode())]}

    def nudge(self, pod: str, annotation: str) -> None:
        self.nudges += 1

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, pod: str = "x-rank0-0") -> None:
        reached: Any = self
        rotation.wait(reached, pod, KEY, self.said.append, clock=lambda: self.now, sleep=self.sleep)


OLD = {"clients": [clients.name(b"sk-the-old-one-that-goes")]}


def test_a_pod_that_has_the_key_is_left_alone() -> None:
    reached = Reached(None, 0)
    reached.wait()
    assert (reached.nudges, reached.said, reached.now) == (0, [], 0)


@pytest.mark.parametrize("told", [OLD, {"clients": []}, None])
def test_the_kubelet_is_told_to_look_and_waited_for(told: dict[str, Any] | None) -> None:
    reached = Reached(told, 14)
    reached.wait()
    assert reached.nudges == 2 and reached.now < 20 and len(reached.said) == 2
    assert "(10 s of 180 s); the old one still opens" in reached.said[1] and KEY not in str(reached.said)


@pytest.mark.parametrize(
    ("pod", "told", "said"),
    [
        ("x-rank0-0", OLD, "still has another key after 18"),
        ("x-rank0-0", None, "does not answer after 18"),
        ("x-rank0-0", {"phase": "serving"}, "an older build, which takes no new key; playbooks/serve.yml"),
        ("y-rank0-0", OLD, "no such pod: the profile is not served"),
    ],
)
def test_patience_ends_with_one_line(pod: str, told: dict[str, Any] | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Reached(told).wait(pod)
