"""What runs is what was verified once: commits and digests locked at the first deploy, and foreign code by name only.

On 00336b1 no shipped profile had a commit, `main` was asked anew wherever a store was empty, a plain profile with
trust_remote_code passed lint, and load_format pt, LD_PRELOAD and HF_HUB_OFFLINE 0 were no findings: each case but the
images' was red there (no lock, no rule, no refusal to assert on).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkloom import case
from sparkloom.base.errors import InputError
from sparkloom.inputs import lock_file, profile
from sparkloom.judge import rules
from sparkloom.judge.rules.computed.settings import PLUGINS
from sparkloom.launch import pins
from sparkloom.onnode.images import reference
from sparkloom.onnode.weights import check
from sparkloom.onnode.weights.folder import Folder
from sparkloom.onnode.weights.layout import Store, StoreError
from sparkloom.render.k3s import config
from sparkloom.render.k3s import options as k3s_options
from sparkloom.site import images as images_
from sparkloom.site.store.locking import Lock
from tests import inventories
from tests.places import REPO

ULTRA = "nvidia--nemotron-3-ultra-550b-a55b-nvfp4"
ID = "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4"
ON_VLLM = "deepseek-ai--deepseek-v4-flash"
A, B = "a" * 40, "b" * 40
ENTRY = lock_file.Model(ID, A, "2026-11-22T20:00:00+00:00", "spark1")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The shipped inventory, its lock in it."""
    return inventories.own(tmp_path, "home")


def lock(folder: Path, accept: str = "") -> Lock:
    return Lock.of(profile.load(ULTRA), lock_file.place(folder), accept)


def errors(name: str | Path, inventory: Path | None = None, **options: Any) -> set[str]:
    return {finding.rule for finding in case.judge(str(name), inventory, **options).errors}


def test_the_first_deploy_locks_and_the_second_changes_nothing(site: Path) -> None:
    found = {"spark1": {ID: A}, "spark2": {ID: A}}
    entries, refusal = lock(site).found(found, ENTRY.when)
    assert (entries, refusal) == ([ENTRY], "")
    later = lock(site).found(found, "later")[0]
    assert lock_file.keep(lock_file.place(site), entries[0]) and not lock_file.keep(lock_file.place(site), later[0])
    assert case.cluster(site).models == {ID: A}


def test_one_file_holds_images_and_models_and_either_is_kept_without_the_other(site: Path) -> None:
    file = lock_file.place(site)
    digest = "sha256:" + "0" * 64
    image = lock_file.Image("org/image", "1", digest, "now", "spark1")
    assert lock_file.keep(file, ENTRY) and lock_file.keep(file, image)
    assert lock_file.meanings(file, lock_file.Model) == {ID: A} and lock_file.meanings(file, lock_file.Image) == {
        image.of: digest
    }
    assert list(yaml.safe_load(file.read_text())) == ["image_lock", "model_lock"]


@pytest.mark.parametrize("text", ["model_lock: 7", "model_lock: [{id: a}]", "other: []"])
def test_a_lock_that_is_none_is_refused_by_name(text: str, site: Path) -> None:
    lock_file.place(site).write_text(text)
    with pytest.raises(InputError, match=r"images\.yml.*expected"):
        case.cluster(site)


def test_a_locked_commit_that_is_none_is_refused_with_its_line(site: Path) -> None:
    lock_file.keep(lock_file.place(site), ENTRY)
    lock_file.place(site).write_text(lock_file.place(site).read_text().replace(A, "main"))
    with pytest.raises(InputError, match=r"images\.yml:\d+.*'main' is no commit"):
        case.cluster(site)


def test_a_launch_names_the_locked_commit_everywhere(site: Path) -> None:
    """The engine is told, the rank's own check of the weights, and the record."""
    before = case.render(ULTRA, site, force=True)
    lock_file.keep(lock_file.place(site), ENTRY)
    after = case.render(ULTRA, site, force=True)
    assert before.digest != after.digest
    argv = after.case.launch.ranks[0].argv
    assert argv[argv.index("--revision") + 1] == A
    record = next(item for item in after.objects if item["metadata"]["name"].endswith("-record"))
    assert json.loads(record["data"]["record.json"])["revision"] == A
    assert f'"revision": "{A}"' in json.dumps(after.objects).replace('\\"', '"')


def test_a_profile_that_pins_is_not_the_lock_s_to_decide(site: Path) -> None:
    lock_file.keep(lock_file.place(site), ENTRY)
    loaded = profile.load("qwen--qwen3.6-27b-fp8")
    assert pins.pinned(loaded, {loaded.profile.model.id: A}).profile.model.revision == loaded.profile.model.revision
    assert Lock.of(loaded, lock_file.place(site), "").open == ()


def held(current: str | None, node: str = "spark2") -> dict[str, list[dict[str, Any]]]:
    return {node: [{"id": ID, "commit": A, "current": current, "ok": current == A}]}


def test_drift_is_refused_with_file_value_and_fix(site: Path) -> None:
    lock_file.keep(lock_file.place(site), ENTRY)
    said = lock(site).drift(held(B))
    assert f"spark2 holds {ID} at {B}" in said and f"{lock_file.place(site)} locks it as {A}" in said
    assert "model_store_accept=locked" in said and "model_store_accept=held" in said and "delete its entry" in said
    assert not lock(site).drift(held(A)) and not lock(site).drift(held(None)), "nothing there is no drift"
    for accept in ("locked", "held", "new"):
        assert not lock(site, accept).drift(held(B))


def test_what_was_brought_at_another_commit_is_refused_and_taken_where_somebody_said_so(site: Path) -> None:
    """A hub that answers another commit than it was asked for."""
    lock_file.keep(lock_file.place(site), ENTRY)
    assert f"was brought at {B}" in lock(site).found({"spark1": {ID: B}}, "now")[1]
    entries, refusal = lock(site, "held").found({"spark1": {ID: B}}, "now")
    assert not refusal and lock_file.keep(lock_file.place(site), entries[0]) and case.cluster(site).models == {ID: B}
    assert "not the same on every node" in lock(site).found({"spark1": {ID: A}, "spark2": {ID: B}}, "now")[1]


def test_the_lock_decides_what_is_asked_of_the_hub_and_an_update_asks_anew(site: Path) -> None:
    lock_file.keep(lock_file.place(site), ENTRY)
    loaded = profile.load(ULTRA)
    assert lock(site).pinned(loaded).profile.model.revision == A
    assert lock(site, "new").pinned(loaded).profile.model.revision is None


def test_a_hub_cache_with_another_commit_is_not_imported_as_the_pinned_one(tmp_path: Path) -> None:
    """Its files were taken, hashed, and named after the commit that was asked for."""
    cache = Store(tmp_path / "usb")
    cache.snapshot(ID, B).mkdir(parents=True)
    (cache.snapshot(ID, B) / "model.safetensors").write_bytes(b"x")
    (cache.repository(ID) / "refs").mkdir()
    (cache.repository(ID) / "refs" / "main").write_text(B)
    want = {"id": ID, "revision": A, "include": ["*"], "exclude": []}
    with pytest.raises(StoreError, match=f"holds {ID} at {B}, expected {A}"):
        Folder({"path": str(cache.root)}).manifest(Store(tmp_path / "store"), [want])


def test_a_node_tells_which_commit_engines_get_by_name(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (store.repository(ID) / "refs").mkdir(parents=True)
    (store.repository(ID) / "refs" / "main").write_text(B)
    assert check.check(store, ID, A)["current"] == B


def consenting(folder: Path, **model: Any) -> Path:
    data = yaml.safe_load((REPO / "model_profiles" / f"{ULTRA}.yml").read_text())
    data["model"].pop("runs_unpinned_code_of")
    data["model"] |= model
    path = folder / "own.yml"
    path.write_text(yaml.safe_dump(data))
    return path


def test_foreign_code_needs_a_commit_or_a_consent_by_name(site: Path) -> None:
    rule = "remote-code-unpinned"
    assert rule in errors(consenting(site))
    assert rule in errors(consenting(site, revision="main")), "a branch is what its publisher makes of it"
    assert rule in errors(consenting(site, runs_unpinned_code_of=["org/another"])), "consent is for one by name"
    assert rule not in errors(consenting(site, revision=A))
    assert rule not in errors(consenting(site, runs_unpinned_code_of=[ID]))
    lock_file.keep(lock_file.place(site), ENTRY)
    assert rule not in errors(consenting(site), site), "the first deploy locked it"


def test_consent_stays_in_sight_until_the_lock_has_a_commit(site: Path) -> None:
    def seen() -> set[str]:
        return {finding.rule for finding in case.judge(ULTRA, site).findings}

    assert "remote-code-by-consent" in seen()
    lock_file.keep(lock_file.place(site), ENTRY)
    assert "remote-code-by-consent" not in seen()


def test_a_child_of_another_model_has_neither_the_commit_nor_the_consent(tmp_path: Path) -> None:
    child = tmp_path / "child.yml"
    for parent in (ULTRA, "qwen--qwen3.6-27b-fp8"):
        child.write_text(f"extends: {parent}\nsummary: other\nmodel: {{id: evil/Other}}\n")
        model = profile.load(child).profile.model
        assert model.revision is None and model.runs_unpinned_code_of == []


@pytest.mark.parametrize(
    ("override", "rule"),
    [
        ("launch.load_format=pt", "pickled-weights"),
        ("env.LD_PRELOAD=/models/x.so", "loader-variables"),
        ("env.LD_LIBRARY_PATH=/models", "loader-folders"),
        ("env.PYTHONSTARTUP=/models/x.py", "loader-variables"),
        ("env.PYTHONPATH=/models", "loader-folders"),
        ("env.SGLANG_EXTERNAL_MODEL_PACKAGE=models.mine", "loader-variables"),
        ("env.NCCL_NET_PLUGIN=/models/libnet.so", "loader-variables"),
        ("env.NCCL_TUNER_PLUGIN=/models/libtuner.so", "loader-variables"),
        ("env.CUDA_INJECTION64_PATH=/models/x.so", "loader-variables"),
        ("env.GCONV_PATH=/models", "loader-variables"),
        ("env.HF_HUB_OFFLINE='0'", "hub-online"),
        ("env.TRANSFORMERS_OFFLINE='0'", "hub-online"),
    ],
)
def test_ways_to_foreign_code_are_findings(override: str, rule: str) -> None:
    assert rule in errors(ULTRA, overrides=[override]) and rule not in errors(ULTRA)


@pytest.mark.parametrize(
    ("folders", "foreign"),
    [
        ("/usr/local/cuda/lib64:/opt/hpcx/ucx/lib/", False),  # public commands have such; it was refused
        ("/usr/lib:/models/org", True),
        ("/usr/../models", True),
        ("/usr/lib::/opt/x", True),
        ("lib", True),
        ("/usrlib", True),
        ("/cache", True),
    ],
)
def test_only_folders_outside_of_the_image_are_foreign(folders: str, foreign: bool) -> None:
    assert ("loader-folders" in errors(ULTRA, overrides=[f"env.LD_LIBRARY_PATH={folders}"])) is foreign


@pytest.mark.parametrize("name", ["VLLM_ALLOW_INSECURE_SERIALIZATION", "VLLM_SERVER_DEV_MODE"])
def test_a_door_for_developers_is_a_finding(name: str) -> None:
    assert "debug-doors" in errors(ON_VLLM, overrides=[f"env.{name}='1'"])


@pytest.mark.parametrize("flag", PLUGINS)
def test_a_flag_that_names_code_is_a_finding(flag: str) -> None:
    of = ULTRA if flag == "custom_weight_loader" else ON_VLLM
    found = {finding.rule for finding in case.judge(of, overrides=[f"launch.{flag}=/tmp/mine.py"]).findings}
    assert "code-by-flag" in found


def test_a_plugin_among_the_model_s_files_is_pinned_with_them(tmp_path: Path) -> None:
    child = tmp_path / "child.yml"

    def of(plugin: str) -> set[str]:
        child.write_text(f"extends: {ON_VLLM}\nsummary: other\nmodel: {{id: org/other}}\n")
        overrides = [f"launch.reasoning_parser_plugin='{plugin}'", "launch.trust_remote_code=false"]
        return {finding.rule for finding in case.judge(str(child), overrides=overrides).findings}

    assert of("{model_folder}/parser.py") >= {"remote-code-unpinned"}
    assert "code-by-flag" not in of("{model_folder}/parser.py")
    assert "remote-code-unpinned" not in of("/tmp/parser.py")


def test_every_shipped_profile_is_pinned_or_consents_where_it_runs_foreign_code() -> None:
    """Five of 30 models have a commit that two sources name; the others are locked at the first deploy."""
    known = {profile.load(name).profile.model.id: profile.load(name).profile.model for name in profile.names()}
    pinned = {name for name, model in known.items() if not pins.moving(model)}
    assert (len(pinned), len(known)) == (5, 30)
    assert {rule.id for rule in rules.every()} >= {"remote-code-unpinned", "remote-code-by-consent"}


def test_nodes_share_images_of_the_registries_that_ours_come_from_and_of_no_other() -> None:
    """`*` served whatever any pod of any namespace had pulled, with a password, to every node without one."""
    options = k3s_options.Options.model_construct(registries={})
    assert set(config.registries(options)["mirrors"]) == set(config.SHARED)
    pinned = yaml.safe_load((REPO / "inventories/gb10/group_vars/all/versions.yml").read_text())
    images = [value for name, value in pinned.items() if name.endswith("_image")]
    images += [profile.load(name).profile.engine.image for name in profile.names()]
    hosts = {reference.parse(image).name.partition("/")[0] for image in images}
    assert hosts - {"localhost"} <= set(config.SHARED) and "ghcr.io" in hosts


def test_a_tag_that_means_another_digest_now_is_refused_before_anything_is_pulled_or_made() -> None:
    """Was so already, stated here: the decision comes before pulls, the plan and every pod (roles/model_serving)."""
    image = "org/image:1"
    digests = ["sha256:" + letter * 64 for letter in "01"]
    entry = lock_file.Image("org/image", "1", digests[0], "2026-11-22", "spark1")
    asked = images_.wanted(image, {entry.of: entry}, "", "images.yml")
    decided = images_.decide(asked, {"spark1": {"tag": digests[1], "digests": [digests[1]]}}, may_pull=True)
    assert "is locked as " + digests[0] in decided.refusal and not decided.pulls
    tasks = REPO / "roles/model_serving/tasks"
    main = yaml.safe_load((tasks / "main.yml").read_text())
    order = [task.get("ansible.builtin.include_tasks") or ("block" if "block" in task else "") for task in main]
    assert order.index("ready.yml") < order.index("block"), "for every group, before anything ends"
    block = yaml.safe_load((tasks / "ready.yml").read_text())[-1]["block"][1:]
    said = [task.get("sparkloom_node", task.get("sparkloom"))["do"] for task in block]
    assert said == ["image.ask", "images.decide", "image.pull", "images.keep", "image.hold"], (
        "both refuse, one before the pulls and one after"
    )
