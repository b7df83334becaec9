"""Where a node comes from: the order in which the rack decides, and what it makes of kind's published image."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.base import names, store
from testbed.base.shell import RackError
from testbed.make import binaries, images, nodeimage, published, source


def never() -> str:
    raise AssertionError("the registry must not be asked")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(names, "CACHE", tmp_path)
    monkeypatch.setattr(source, "FILE", tmp_path / "node-source.json")
    monkeypatch.delenv(source.WISH, raising=False)
    return tmp_path


def keep(choice: str, image: str = source.IMAGE) -> None:
    store.write_json(source.FILE, {"choice": {"source": choice, "why": "test", "image": image}})


# --- the choice ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wish", [source.REGISTRY, source.OWN])
def test_a_wish_is_taken_without_a_question(wish: str) -> None:
    assert source.choose(wish, already_built=True, cgroup="1", ask=never).source == wish


def test_a_wish_that_is_no_source_is_refused_with_its_variable() -> None:
    with pytest.raises(RackError, match=rf"found {source.WISH}=mirror, expected registry, own"):
        source.choose("mirror", already_built=False, cgroup="2", ask=never)


def test_what_is_built_already_is_used() -> None:
    assert source.choose("", already_built=True, cgroup="2", ask=never).source == source.OWN


@pytest.mark.parametrize("cgroup", ["1", ""])
def test_the_published_image_is_not_asked_for_where_it_would_not_start(cgroup: str) -> None:
    choice = source.choose("", already_built=False, cgroup=cgroup, ask=never)
    assert choice.source == source.OWN and "cgroup v2" in choice.why


def test_a_registry_that_answers_is_preferred_and_one_that_does_not_is_named() -> None:
    assert source.choose("", already_built=False, cgroup="2", ask=lambda: "").source == source.REGISTRY
    silent = source.choose("", already_built=False, cgroup="2", ask=lambda: "no registry answered in 5 s")
    assert (silent.source, silent.why) == (source.OWN, "no registry answered in 5 s")


def test_a_slow_registry_costs_no_more_than_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(argv: list[str], timeout: float, **_: object) -> None:
        assert argv[-1] == source.IMAGE and timeout == source.PATIENCE_SECONDS
        raise RackError("no answer in 5 s: docker manifest inspect")

    monkeypatch.setattr(source, "run", slow)
    assert source.ask_registry() == "no registry answered in 5 s"


def test_the_registrys_last_words_are_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = subprocess.CompletedProcess(["docker"], 1, "", "trying\ndial tcp: no such host\n")
    monkeypatch.setattr(source, "run", lambda *a, **k: refusal)
    assert source.ask_registry() == "no registry gives kindest/node: dial tcp: no such host"


def answers(monkeypatch: pytest.MonkeyPatch, pull: int) -> None:
    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(argv, pull if argv[1] == "pull" else 0, "", "toomanyrequests")

    monkeypatch.setattr(source, "run", run)
    monkeypatch.setattr(source, "out", lambda *a, **k: "2")


def test_the_choice_is_kept_so_that_the_nodes_stay_the_same(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, pull=0)
    source.decide(lambda text: None, already_built=False)
    assert source.is_registry() and source.replaced() == source.REPLACED
    step = source.steps(lambda: True)[0]
    assert step.done() == "registry: the registry answers"


def test_a_pull_that_fails_after_the_answer_means_building(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, pull=1)
    source.decide(lambda text: None, already_built=False)
    choice = source.recorded()
    assert choice and choice.source == source.OWN and "toomanyrequests" in choice.why
    monkeypatch.setenv(source.WISH, source.REGISTRY)
    with pytest.raises(RackError, match="unset it to let the rack build"):
        source.decide(lambda text: None, already_built=False)


def test_a_kept_choice_ends_with_its_image_or_with_another_wish(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(source.REGISTRY, image="kindest/node:v1.34.0")
    assert source.recorded() is None
    keep(source.REGISTRY)
    assert source.is_registry()
    monkeypatch.setenv(source.WISH, source.OWN)
    assert source.recorded() is None and not source.is_registry()


# --- what follows from it --------------------------------------------------------------------------------------


def test_the_published_image_spares_the_long_builds_and_no_others(cache: Path) -> None:
    keep(source.REGISTRY)
    step, beside = binaries.steps()
    assert beside.aside and beside.name == binaries.TRAEFIK
    assert step.done() is False
    for name in ("kind", "gpu", "multus"):
        binaries.place(name).mkdir(parents=True)
        (binaries.place(name) / ".built").touch()
    done = step.done()
    assert isinstance(done, str) and "kindest/node" in done
    assert all(name in done for name in ("kubernetes", "etcd", "coredns", "pause"))


def test_the_two_sources_never_share_an_image(cache: Path) -> None:
    keep(source.OWN)
    own = (nodeimage.tag(), images.archive(), nodeimage.kubectl())
    keep(source.REGISTRY)
    other = (nodeimage.tag(), images.archive(), nodeimage.kubectl())
    assert not set(own) & set(other)


# --- the image ---------------------------------------------------------------------------------------------------

OURS = '[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "registry.k8s.io/pause:1"\n  other = true\n'


@pytest.mark.parametrize(
    "theirs",
    [
        '  sandbox_image = "registry.k8s.io/pause:9"\n',
        "[plugins.'io.containerd.cri.v1.images'.pinned_images]\n  sandbox = 'registry.k8s.io/pause:9'\n",
    ],
)
def test_the_pause_image_is_the_one_that_is_there_in_old_and_new_configurations(theirs: str) -> None:
    assert published.with_sandbox(OURS, theirs) == OURS.replace("pause:1", "pause:9")


def test_a_configuration_without_a_pause_image_is_refused_with_the_way_out() -> None:
    with pytest.raises(RackError, match=f"{source.WISH}={source.OWN}"):
        published.with_sandbox(OURS, "version = 3\n")


def test_the_nodes_own_configuration_has_a_place_for_it() -> None:
    ours = (names.NODE_FILES / published.CONTAINERD).read_text()
    assert "pause:9" in published.with_sandbox(ours, 'sandbox_image = "registry.k8s.io/pause:9"')


def test_the_published_images_runtime_is_not_replaced_by_an_older_one() -> None:
    chosen = published.packages()
    assert not {"containerd", "runc"} & set(chosen)
    assert {"python3", "netplan.io", "containernetworking-plugins", "iproute2"} <= set(chosen)


def test_the_script_that_adds_is_sound_bash() -> None:
    script = published.FILES / "enrich.sh"
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
