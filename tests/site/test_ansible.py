"""Between Ansible and the package: what a task may say, and who was asked."""

from __future__ import annotations

from sparkloom.site import ansible


def test_asked_are_the_hosts_of_the_play_not_of_the_inventory() -> None:
    hosts = {"groups": {"sparks": ["spark1", "spark2"]}}
    assert ansible.asked({**hosts, "ansible_play_hosts_all": ["spark2"]}) == {"spark2"}
    assert ansible.asked(hosts) == {"spark1", "spark2"}
