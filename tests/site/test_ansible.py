"""Between Ansible and the package: what a task may say, and who was asked."""

from __future__ import annotations

from sparkloom.site import ansible


def test_a_documentation_tells_the_specification_with_what_lies_inside() -> None:
    told = """
    options:
      what: {type: str, required: true, choices: [a, b], description: [Which.]}
      shape: {type: dict, description: [How.], suboptions: {size: {type: int, default: 1, description: [Big.]}}}
    """
    assert ansible.specification(told) == {
        "what": {"type": "str", "required": True, "choices": ["a", "b"]},
        "shape": {"type": "dict", "options": {"size": {"type": "int", "default": 1}}},
    }
    assert ansible.specification("module: x") == {}


def test_asked_are_the_hosts_of_the_play_not_of_the_inventory() -> None:
    hosts = {"groups": {"sparks": ["spark1", "spark2"]}}
    assert ansible.asked({**hosts, "ansible_play_hosts_all": ["spark2"]}) == {"spark2"}
    assert ansible.asked(hosts) == {"spark1", "spark2"}
