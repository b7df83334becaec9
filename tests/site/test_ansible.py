"""Between Ansible and the package: what a task may say, and who was asked."""

from __future__ import annotations

import pytest

from sparkloom.site import ansible


def test_asked_are_the_hosts_of_the_play_not_of_the_inventory() -> None:
    hosts = {"groups": {"sparks": ["spark1", "spark2"]}}
    assert ansible.asked({**hosts, "ansible_play_hosts_all": ["spark2"]}) == {"spark2"}
    assert ansible.asked(hosts) == {"spark1", "spark2"}


def test_a_full_file_system_is_told_by_file_and_cure_and_other_errors_are_not_swallowed() -> None:
    """It was `OSError: [Errno 28] No space left on device` of a task, and nothing more."""

    def fails(number: int, said: str) -> dict[str, str]:
        raise OSError(number, said, "/work/build/kept.json")

    told = ansible.guarded(lambda: fails(28, "No space left on device"))
    assert told["failed"] and "/work/build/kept.json: No space left on device; `df -h /work/build`" in told["msg"]
    with pytest.raises(PermissionError):
        ansible.guarded(lambda: fails(13, "Permission denied"))
