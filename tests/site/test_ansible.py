"""Between Ansible and the package: switches as people give them, and who was asked."""

from __future__ import annotations

from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.site import ansible


@pytest.mark.parametrize("value", [True, "true", "True", "yes", "on", "1", 1])
def test_true_in_every_spelling(value: Any) -> None:
    assert ansible.true(value) is True


@pytest.mark.parametrize("value", [False, "false", "False", "no", "off", "0", 0, "", None])
def test_false_as_text_is_false(value: Any) -> None:
    assert ansible.true(value) is False


def test_anything_else_is_refused_and_quoted() -> None:
    with pytest.raises(InputError, match=r"maybe.*expected true or false"):
        ansible.true("maybe")


def test_asked_are_the_hosts_of_the_play_not_of_the_inventory() -> None:
    hosts = {"groups": {"sparks": ["spark1", "spark2"]}}
    assert ansible.asked({**hosts, "ansible_play_hosts_all": ["spark2"]}) == {"spark2"}
    assert ansible.asked(hosts) == {"spark1", "spark2"}
