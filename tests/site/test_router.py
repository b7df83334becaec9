"""Keys that are pushed to a router: its Secret, the kubelet's look, and the version that it goes by."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs import client_keys
from sparkloom.inputs.client_keys import Key, hashed
from sparkloom.onnode import key_table
from sparkloom.onnode.key_table import Entry
from sparkloom.render.manifests.names import CONFIG_HASH
from sparkloom.render.router import Group, Terms
from sparkloom.site import keyring, router, usage


def group(name: str, secret: str) -> Group:
    return Group(name, f"{name}.sparkloom.svc.cluster.local", 30000, model=f"org/{name}", aliases=(f"org/{name}",),
                 label=name, secret=secret)  # fmt: skip


MODELS = [group(name, f"{name}-engine-key") for name in ("alpha", "beta")]
OWN = {"alpha-engine-key": "sk-own-alpha", "beta-engine-key": "sk-own-beta"}
KEYS = """\
client_keys:
  - {{name: alice, hash: {alice}, models: [org/alpha]}}
  - {{name: bob, hash: {bob}}}
"""


def site_s(*known: Key) -> Key:
    owner = client_keys.renewed(known, "owner", "sk-owner", datetime.date(2026, 11, 26))
    assert owner
    return owner


def files(*people: Key) -> dict[str, str]:
    return router.files(MODELS, OWN, [*people, site_s()], Terms())


class Answer:
    status = 200

    def __init__(self, page: str) -> None:
        self.page = page

    def read(self) -> bytes:
        return self.page.encode()


class Reached:
    """A cluster with a Secret, and pods whose kubelet renews their files so many looks after it was told to."""

    namespace = "sparkloom"

    def __init__(self, kept: dict[str, str] | None, after: int = 1, pods: int = 1, page: str = "") -> None:
        self.secrets: dict[str, dict[str, str]] = {}
        if kept is not None:
            self.secrets["client-keys"] = {"keys": kept["keys"]}
            self.secrets["router"] = {name: text for name, text in kept.items() if name != "keys"}
        self.after, self.page = after, page
        self.maps: dict[str, dict[str, str]] = {}
        self.mounted = self.kept
        self.names = [f"router-{number}" for number in range(pods)]
        self.nudges: list[tuple[str, str]] = []
        self.container = "containerd://1"

    @property
    def kept(self) -> dict[str, str] | None:
        """Both, as they are mounted in one folder."""
        return {**self.secrets["router"], **self.secrets["client-keys"]} if self.secrets else None

    @property
    def table(self) -> dict[str, Entry]:
        return {one.name: one for one in key_table.read(self.secrets["client-keys"]["keys"])}

    def secret(self, name: str) -> dict[str, str] | None:
        return self.secrets.get(name) or ({"key": OWN[name]} if name in OWN else None)

    def put_secret(self, name: str, data: dict[str, str], *, labels: Any = None, dry: bool = False) -> bool:
        assert name in ("router", "client-keys") and labels
        changed = data != self.secrets.get(name)
        if not dry:
            self.secrets[name] = data
        return changed

    def config_map(self, name: str) -> dict[str, str] | None:
        return self.maps.get(name)

    def put_config_map(self, name: str, data: dict[str, str]) -> bool:
        self.maps[name] = data
        return True

    def pods(self, labels: dict[str, str]) -> list[Any]:
        assert labels["app.kubernetes.io/name"] == "router"
        status = SimpleNamespace(phase="Running", container_statuses=[SimpleNamespace(container_id=self.container)])
        return [
            SimpleNamespace(
                metadata=SimpleNamespace(name=name, deletion_timestamp=None, annotations={CONFIG_HASH: "before"}),
                status=status,
            )
            for name in self.names
        ]

    def nudge(self, pod: str, annotation: str) -> None:
        self.nudges.append((pod, annotation))

    def connect(self, pod: str, port: int, timeout: float) -> Any:
        assert port == 9090
        if self.nudges:
            self.after -= 1
            if self.after <= 0:
                self.mounted = self.kept
        version = router.version_of_files(self.mounted) if self.mounted else ""
        page = f'{self.page}sparkloom_router_table_info{{version="{version}"}} 1\n'
        return SimpleNamespace(request=lambda *words, **more: None, getresponse=lambda: Answer(page))


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.yml"
    file.write_text(KEYS.format(alice=hashed("sk-alice"), bob=hashed("sk-bob")))
    file.chmod(0o600)
    return file


def test_keys_alone_change_and_the_site_s_own_stays(keys: Path) -> None:
    reached: Any = Reached(files(), after=3)
    given = router.push(reached, keys, print)
    assert given and given.changed and given.seconds is not None
    assert reached.kept == files(*client_keys.read(keys)[1]), "as the playbook would have written it"
    assert set(reached.table) == {"alice", "bob", "owner"}
    assert reached.table["alice"].models == "org/alpha" and reached.table["bob"].models == ""
    assert reached.nudges and {one for _, one in reached.nudges} == {router.LOOKED}


def test_a_revoked_key_is_in_no_table(keys: Path) -> None:
    reached: Any = Reached(files(*client_keys.read(keys)[1]))
    keys.write_text("client_keys: []\n")
    assert router.push(reached, keys, print)
    assert set(reached.table) == {"owner"}


def test_what_the_page_made_and_took_stays_whoever_writes_the_others(keys: Path) -> None:
    reached: Any = Reached(files(*client_keys.read(keys)[1]))
    made = Entry(key_table.digest("sk-carol"), "carol", by="alice")
    kept = key_table.revoked(key_table.added(list(reached.table.values()), made), "bob", "alice")
    reached.secrets["client-keys"] = {"keys": key_table.text(kept)}
    keys.write_text(KEYS.format(alice=hashed("sk-alice"), bob=hashed("sk-bob")).replace("alpha", "beta"))
    assert router.push(reached, keys, print)
    assert router.give(reached, files(*client_keys.read(keys)[1]), print)
    assert reached.table["carol"] == made and reached.table["bob"].taken == "alice"
    assert reached.table["alice"].models == "org/beta"
    assert router.push(reached, keys, print, "carol") and "carol" not in reached.table
    keys.write_text("client_keys: []\n")
    assert router.push(reached, keys, print) and set(reached.table) == {"owner"}, "the mark goes with the entry"


def test_every_pod_must_go_by_it(keys: Path) -> None:
    reached: Any = Reached(files(), pods=2)
    assert router.push(reached, keys, print)
    assert {pod for pod, _ in reached.nudges} == {"router-0", "router-1"}


def test_a_pod_that_is_made_anew_is_not_waited_for() -> None:
    """One of an older release may not understand the files: Envoy refuses them, and its version never comes."""
    reached = Reached(files(), after=1000)
    given = router.give(reached, {**files(), "listeners.yaml": "another"}, print, kind="another")
    assert given.changed and given.seconds is None and reached.nudges == []


def test_a_limit_that_changed_is_looked_at_at_once(keys: Path) -> None:
    """It is in no version: the playbook ended, and the old limit held until the kubelet looked by itself."""
    reached: Any = Reached(files())
    given = router.give(reached, {**files(), "listeners.yaml": "another limit"}, print)
    assert given.changed and reached.nudges == [("router-0", router.LOOKED)]
    assert not router.give(reached, dict(reached.kept), print).changed and len(reached.nudges) == 1


def test_where_no_router_is_there_is_nobody_to_tell(keys: Path) -> None:
    assert router.push(Reached(None), keys, print) is None  # type: ignore[arg-type]
    given = router.push(Reached(files(), pods=0), keys, print)  # type: ignore[arg-type]
    assert given and given.seconds is None and given.changed


def test_the_site_s_own_key_has_limits_and_an_end(keys: Path) -> None:
    assert site_s().expires == "2027-11-26" and site_s().admin
    limited = Key(
        name="owner", hash=hashed("sk-before"), requests_per_minute=30, made="2026-01-01", expires="2026-01-31"
    )
    renewed = site_s(limited)
    assert (renewed.hash, renewed.requests_per_minute, renewed.expires) == (hashed("sk-owner"), 30, "2026-12-26")
    assert site_s(renewed) == renewed, "it goes on as long as it has"
    assert client_keys.renewed([], "nobody", "sk-x", datetime.date(2026, 11, 26)) is None
    reached: Any = Reached(files())
    keyring.put(keys, renewed)
    assert router.push(reached, keys, print) and reached.table["owner"] == renewed.entry
    keyring.put(keys, renewed.model_copy(update={"hash": hashed("sk-x")}))
    assert [one.name for one in client_keys.read(keys)[1]] == ["alice", "bob", "owner"]


def test_patience_ends_with_one_line() -> None:
    reached: Any = Reached(files(), after=10**9)
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    said: list[str] = []
    with pytest.raises(InputError, match="router-0: still goes by other keys after 120 s"):
        router.effective(reached, "another", said.append, clock=lambda: now[0], sleep=sleep)
    assert 20 < len(reached.nudges) < 26 and len(said) == len(reached.nudges) - 1


def test_a_dry_run_changes_nothing(keys: Path) -> None:
    reached: Any = Reached(before := files())
    given = router.give(reached, files(*client_keys.read(keys)[1]), print, dry=True)
    assert given.changed and reached.kept == before and not reached.nudges


def test_only_engines_that_run_are_asked_for_their_key() -> None:
    reached: Any = Reached(None)
    assert router.engine_keys(reached, MODELS) == OWN
    gone = [group("gone", "gone-engine-key"), group("new", "")]
    assert router.engine_keys(reached, gone) == {}
    content = router.files(gone, {}, [], Terms())
    assert [content[name] for name in content if name.startswith("own-")] == [router.NO_KEY_YET] * 2


PAGE = """\
sparkloom_router_requests_total{person="alice",model="alpha",status="200"} 7
sparkloom_router_requests_total{person="alice",model="",status="429"} 2
sparkloom_router_prompt_tokens_total{person="alice",model="alpha"} 90
sparkloom_router_completion_tokens_total{person="alice",model="alpha"} 40
"""
MONDAY, TUESDAY = datetime.date(2026, 11, 23), datetime.date(2026, 11, 24)


def test_what_came_since_the_last_look_is_noted_by_day() -> None:
    reached: Any = Reached(files(), page=PAGE)
    usage.note(reached, MONDAY)
    reached.page = PAGE.replace(" 7", " 10").replace(" 90", " 100")
    usage.note(reached, TUESDAY)
    usage.note(reached, TUESDAY)
    days = json.loads(reached.maps[usage.NAME][usage.KEY])["days"]
    assert days["2026-11-23"]["alice alpha"] == {
        "requests": 7, "refused": 0, "prompt_tokens": 90, "completion_tokens": 40,
    }  # fmt: skip
    assert days["2026-11-23"]["alice "]["refused"] == days["2026-11-23"]["alice "]["requests"] == 2
    assert days["2026-11-24"] == {
        "alice alpha": {"requests": 3, "refused": 0, "prompt_tokens": 10, "completion_tokens": 0}
    }


def test_a_router_that_began_anew_takes_nothing_away() -> None:
    reached: Any = Reached(files(), page=PAGE)
    usage.note(reached, MONDAY)
    reached.container, reached.page = "containerd://2", PAGE.replace(" 7", " 9")
    rows = {(row["person"], row["model"]): row for row in usage.by_person(usage.of_the_router(reached, MONDAY))}
    assert rows["alice", "alpha"]["requests"] == 16 and rows["alice", "alpha"]["prompt_tokens"] == 180
    reached.page = PAGE.replace(" 7", " 1")  # in the same container: its script was read anew
    rows = {(row["person"], row["model"]): row for row in usage.by_person(usage.of_the_router(reached, MONDAY))}
    assert rows["alice", "alpha"]["requests"] == 17


def test_only_days_that_are_asked_for_count() -> None:
    reached: Any = Reached(files(), page=PAGE)
    usage.note(reached, MONDAY)
    assert usage.of_the_router(reached, TUESDAY) == {}
