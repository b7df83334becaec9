"""Two operations never work on one site at a time; a crash locks nobody out; what was left half done is said."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace as NS
from typing import Any

import pytest
from kubernetes.client import ApiException

from sparkloom.site import holding, lease, lease_renewal
from sparkloom.site.lease import Book, Held, Operation

ME = Operation("bob@desk", "desk", lease.begun(os.getpid()), "ansible-playbook site.yml")
ALICE = Operation("alice@laptop", "laptop", "77-1", "ansible-playbook playbooks/switch.yml -e profile=x", "10:00")


class Api:
    """Leases as the API server keeps them: a version for each write, and 409 for an older one."""

    def __init__(self) -> None:
        self.kept: Any = None
        self.version = 0
        self.before: list[Any] = []  # what others do ahead of the next write

    def read_namespaced_lease(self, name: str, namespace: str) -> Any:
        if self.kept is None:
            raise ApiException(status=404)
        return self.kept

    def create_namespaced_lease(self, namespace: str, body: dict[str, Any]) -> None:
        self.write(body, self.kept is None)

    def replace_namespaced_lease(self, name: str, namespace: str, body: dict[str, Any]) -> None:
        if self.before:
            self.before.pop()()
        self.write(body, body["metadata"]["resourceVersion"] == self.kept.metadata.resource_version)

    def delete_namespaced_lease(self, name: str, namespace: str) -> None:
        self.kept = None

    def write(self, body: dict[str, Any], right: bool) -> None:
        if not right:
            raise ApiException(status=409)
        self.version += 1
        metadata = NS(annotations=body["metadata"]["annotations"], resource_version=str(self.version))
        spec = NS(
            holder_identity=body["spec"]["holderIdentity"], renew_time=f"{body['spec']['renewTime']}{self.version}"
        )
        self.kept = NS(metadata=metadata, spec=spec)


class Clock:
    """Time that goes on only while somebody sleeps; `each` happens meanwhile."""

    def __init__(self, each: Any = None) -> None:
        self.now, self.each = 0.0, each

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.each:
            self.each()


def taken(book: Book, mine: Operation = ME, each: Any = None, **options: Any) -> tuple[Operation | None, float]:
    clock = Clock(each)
    return lease.take(book, mine, say=lambda text: None, clock=clock, sleep=clock.sleep, **options), clock.now


@pytest.fixture
def book() -> Book:
    return Book(Api(), "home")


def test_a_free_site_is_taken_and_taken_again_by_the_same_run(book: Book) -> None:
    assert taken(book) == (None, 0.0) and taken(book) == (None, 0.0)
    held, _ = book.read()
    assert (
        held
        and (held.who, held.command, held.state) == ("bob@desk", "ansible-playbook site.yml", "runs")
        and held.since
    )


def test_a_second_one_is_refused_by_name_while_the_first_is_renewed(book: Book) -> None:
    taken(book, ALICE)

    def renewed() -> None:
        other, there = book.read()
        assert other
        book.write(replace(other, stage="Bring its weights first"), there)

    with pytest.raises(Held) as refused:
        taken(book, each=renewed)
    for words in ("switch.yml -e profile=x of alice@laptop since 10:00, at 'Bring its weights first'",
                  "-e operation_wait_seconds=", "-e operation_take_over=alice@laptop"):  # fmt: skip
        assert words in str(refused.value)
    with pytest.raises(Held):
        taken(book, each=renewed, wait=300)
    before, _ = taken(book, over="alice@laptop", each=renewed)
    assert before and before.who == "alice@laptop"


def test_another_window_of_this_machine_is_refused_at_once(book: Book) -> None:
    taken(book, replace(ALICE, machine="desk", process=lease.begun(os.getppid())))
    with pytest.raises(Held):
        taken(book)


def test_a_machine_that_was_switched_off_locks_nobody_out(book: Book) -> None:
    taken(book, replace(ALICE, stage="Make room"))
    before, waited = taken(book)
    assert before and lease.WATCHED < waited < lease.WATCHED + 3
    assert lease.half_done(before).endswith(
        "goes on where it stopped: ansible-playbook playbooks/switch.yml -e profile=x"
    )
    assert "stopped at 'Make room'" in lease.half_done(before)


def test_a_holder_that_goes_while_it_is_waited_for_is_followed(book: Book) -> None:
    taken(book, ALICE)
    renewals = iter(range(5))

    def some_time() -> None:
        other, there = book.read()
        if next(renewals, None) is not None and other:
            book.write(other, there)

    before, waited = taken(book, each=some_time, wait=3600)
    assert before and waited < 100


def test_a_process_of_this_machine_that_is_gone_holds_nothing(book: Book) -> None:
    taken(book, replace(ALICE, machine="desk", process="999999-1"))
    before, waited = taken(book)
    assert before and waited <= lease.LETS_GO
    # one that came to its end a moment ago: its keeper takes the Lease away
    book.remove()
    taken(book, replace(ALICE, machine="desk", process="999999-1"))
    assert taken(book, each=book.remove)[0] is None


def test_two_at_the_same_moment_are_one(book: Book) -> None:
    taken(book, replace(ALICE, state=lease.ENDED))
    book.api.before = [lambda: taken(book, ALICE)]
    with pytest.raises(Held):
        taken(book, each=lambda: taken(book, ALICE))


def kept(book: Book, notes: Path, ends_after: float, each: Any = None) -> tuple[str, list[Any]]:
    clock, ended = Clock(each), list[Any]()
    said = lease_renewal.keep(
        book, ME, notes, alive=lambda process: clock.now < ends_after, end=lambda *words: ended.append(words),
        clock=clock, sleep=clock.sleep,
    )  # fmt: skip
    return said, ended


def test_the_keeper_renews_and_lets_go_of_a_run_that_came_to_its_end(book: Book, tmp_path: Path) -> None:
    taken(book)
    first, notes = book.read()[0], tmp_path / "notes"
    seen = set()

    def look() -> None:
        held, _ = book.read()
        assert held
        seen.add((held.renewed, held.stage))

    notes.write_text(json.dumps({"stage": "Serve it", "ended": "done"}))
    assert kept(book, notes, 45, look) == ("done", []) and book.read()[0] is None and not notes.exists()
    assert first and len(seen) >= 4 and {stage for _, stage in seen} >= {"Serve it"}


def test_a_run_that_was_killed_leaves_word_of_how_far_it_came(book: Book, tmp_path: Path) -> None:
    taken(book)
    (tmp_path / "notes").write_text(json.dumps({"stage": "Stop what is served"}))
    assert kept(book, tmp_path / "notes", 3) == (lease.ENDED, [])
    before, waited = taken(book, replace(ME, process="1-1"))
    assert before and waited == 0 and "stopped at 'Stop what is served'" in lease.half_done(before)


def test_a_run_that_was_taken_over_is_interrupted(book: Book, tmp_path: Path) -> None:
    taken(book)
    taken(book, ALICE, over="bob@desk")
    said, ended = kept(book, tmp_path / "notes", 60)
    assert said == "taken over" and ended == [(os.getpid(), 2)]
    held, _ = book.read()
    assert held and held.who == "alice@laptop"


def test_a_cluster_that_is_away_does_not_end_the_keeper(tmp_path: Path) -> None:
    class Away:
        def __getattr__(self, name: str) -> Any:
            raise OSError("no route")

    assert kept(Book(Away(), "home"), tmp_path / "notes", 25) == (lease.ENDED, [])


def test_the_command_is_told_without_secrets() -> None:
    """On the old code a second variable of one word, and all that followed --extra-vars=, stood in the Lease."""
    told = {
        "profile=x": "profile=x",
        "-e": "-e",
        "@more.yml": "@more.yml",
        "ansible_become_pass=hunter2": "ansible_become_pass=***",
        "profile=x hf_token=hunter2 a=1": "profile=x hf_token=***",
        "--extra-vars=hf_token=hunter2": "--extra-vars=hf_token=***",
        "-eapi_key='hunter2 and more'": "-eapi_key=***",
        '{"token": "hunter2"}': "{...}",
        '--extra-vars={"token": "hunter2"}': "--extra-vars={...}",
        "hf_token: hunter2": "hf_token:***",
    }
    shown = holding._shown
    assert {word: shown(word) for word in told} == told


@pytest.mark.parametrize("limit", ["-l spark4", "-lspark4", "--limit spark4", "--limit=spark4", "--limit '!spark1'"])
def test_a_limited_command_is_told_without_its_limit(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    typed = "ansible-playbook -i inventories/home {} playbooks/stop.yml -e group=all -K"
    monkeypatch.setattr(holding, "command", lambda process: typed.format(limit))
    told = holding.limited(["spark1"], 1)
    assert "leaves out spark1;" in told and f"For all of them: {' '.join(typed.format('').split())}; if" in told
