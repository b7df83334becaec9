"""One type for what is wrong, and its three shapes as data, each a contract: of lint, of plays, of the doctor."""

from __future__ import annotations

import ast

from sparkloom.base.finding import Finding, errors, ranked
from sparkloom.site import ansible, doctor
from sparkloom.site.checks import report
from sparkloom.site.doctor.drift import Event
from tests.places import REPO

CLOCK = Finding("spark2", "clock", "9 s ahead", "at most 5 s apart", "timedatectl set-ntp true", "warning")


def test_errors_come_first_then_rules_and_places_by_name() -> None:
    listed = [Finding(where, rule, "", "", "", severity) for where, rule, severity in (
        ("a:1", "x", "info"), ("b:1", "x", "error"), ("a:2", "y", "error"), ("a:1", "x", "error"),
    )]  # fmt: skip
    assert [(f.where, f.rule, f.severity) for f in ranked(listed)] == [
        ("a:1", "x", "error"), ("b:1", "x", "error"), ("a:2", "y", "error"), ("a:1", "x", "info"),
    ]  # fmt: skip
    assert errors(listed) == listed[1:]


def test_the_linter_gives_rule_severity_place_message_fix_and_evidence() -> None:
    finding = Finding("a.yml:3:5", "x", "so it is", expected="", fix="write y", severity="info", evidence=("a log",))
    assert list(finding.as_dict().items()) == [
        ("rule", "x"), ("severity", "info"), ("where", "a.yml:3:5"), ("message", "so it is"), ("fix", "write y"),
        ("evidence", ["a log"]),
    ]  # fmt: skip


def test_a_play_registers_node_check_found_expected_change_and_severity() -> None:
    (row,) = ansible.verdict([CLOCK], "fine")["rows"]
    assert list(row.items()) == [
        ("node", "spark2"), ("check", "clock"), ("found", "9 s ahead"), ("expected", "at most 5 s apart"),
        ("change", "timedatectl set-ntp true"), ("severity", "warning"),
    ]  # fmt: skip


def test_the_doctor_gives_node_area_what_found_expected_fix_and_severity() -> None:
    judged = {"rows": [report.as_dict(CLOCK)]}
    event = Event(host="spark1", role="preflight", area="main", task="x", outcome="judged", result=judged)
    seen = doctor.report([event], ["spark1", "spark2"])
    (entry,) = seen.as_dict()["findings"]
    assert list(entry.items()) == [
        ("node", "spark2"), ("area", "hosts"), ("what", "clock"), ("found", "9 s ahead"),
        ("expected", "at most 5 s apart"), ("fix", "timedatectl set-ntp true"), ("severity", "warning"),
    ]  # fmt: skip
    assert "warn  spark2  hosts: clock: found 9 s ahead; expected at most 5 s apart" in seen.text()
    assert report.table([CLOCK]).startswith("warn  spark2  clock: found 9 s ahead; expected at most 5 s apart\n")


def test_no_other_type_says_how_severe_a_thing_is() -> None:
    """A rule has a severity, and a cause that only a log tells; findings carry it: whoever judges builds a Finding."""
    named = set()
    for path in (REPO / "scripts/sparkloom").rglob("*.py"):
        for item in ast.walk(ast.parse(path.read_text())):
            fields = item.body if isinstance(item, ast.ClassDef) else ()
            if any(isinstance(f, ast.AnnAssign) and ast.unparse(f.target) == "severity" for f in fields):
                named.add(f"{path.relative_to(REPO / 'scripts/sparkloom')}:{item.name}")
    assert named == {"base/finding.py:Finding", "judge/rules/rule.py:Rule", "judge/log_causes.py:LogCause"}
