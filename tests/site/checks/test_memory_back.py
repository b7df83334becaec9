"""After a stop: memory that is back says nothing, memory that is not is named with its holder and the cure."""

from __future__ import annotations

from typing import Any

from sparkloom.site.checks import memories


def memory(available: float, resident: float = 3.0) -> dict[str, Any]:
    largest = [{"name": "python3", "gib": resident}]
    return {"available_gib": available, "total_gib": 121.0, "resident_gib": resident, "largest": largest, "waited": 9.0}


def test_what_is_back_within_the_slack_is_fine() -> None:
    assert not list(memories.returned({"spark1": memory(111.0)}, {"spark1": 118.0}, 8))
    assert not list(memories.returned({"spark1": memory(1.0)}, {}, 8)), "nothing is known of before"


def test_memory_of_no_process_asks_for_a_reboot() -> None:
    (finding,) = memories.returned(
        {"spark1": memory(117.0), "spark2": memory(58.4)}, {"spark1": 118.0, "spark2": 118.0}, 8
    )
    assert (
        finding.where == "spark2" and "charged to no process" in finding.message and "reboot that node" in finding.fix
    )
    assert finding.severity == "error"


def test_a_process_that_holds_it_is_named() -> None:
    (finding,) = memories.returned({"spark1": memory(60.0, resident=55.0)}, {"spark1": 118.0}, 8)
    assert "python3 55 GiB" in finding.message and "stop what" in finding.fix
