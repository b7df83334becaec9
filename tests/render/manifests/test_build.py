"""What the manifests promise, object by object."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import pytest

from sparkloom.inputs import profile
from sparkloom.inputs.cluster import Destination
from sparkloom.launch import engines, fabric, patience, ports
from sparkloom.launch.resolve import Launch
from sparkloom.launch.values import EnvVar, Origin
from sparkloom.onnode.now.labels import NETWORKS
from sparkloom.onnode.rank.plan import GroupPlan
from sparkloom.render import pack
from sparkloom.render.manifests import attachments, names, pod, supervision
from tests.render.manifests import case
from tests.slow_truth.world import TRUTHS

EVERY = profile.names()


def with_variable(launch: Launch, variable: EnvVar, rank: int = 0) -> Launch:
    ranks = list(launch.ranks)
    ranks[rank] = dataclasses.replace(ranks[rank], env=(*ranks[rank].env, variable))
    return dataclasses.replace(launch, ranks=tuple(ranks))


def test_order_is_the_order_to_apply() -> None:
    kinds = [item["kind"] for item in case.build()]
    assert kinds[0] == "Namespace"
    last_network = len(kinds) - 1 - kinds[::-1].index("NetworkAttachmentDefinition")
    assert last_network < kinds.index("ConfigMap") < kinds.index("Service") < kinds.index("StatefulSet")
    assert kinds[-4:] == ["StatefulSet"] * 4


@pytest.mark.parametrize("name", EVERY)
def test_what_refers_exists(name: str) -> None:
    """Selectors pick pods, mounts name volumes, volumes name ConfigMaps, annotations name attachments."""
    objects = case.build(name)
    maps = {
        item["metadata"]["name"]: item["data"].keys() | item.get("binaryData", {}).keys()
        for item in case.of_kind(objects, "ConfigMap")
    }
    networks = {item["metadata"]["name"] for item in case.of_kind(objects, "NetworkAttachmentDefinition")}
    services = {item["metadata"]["name"] for item in case.of_kind(objects, "Service")}
    labels = [template["metadata"]["labels"] for template in case.pods(objects)]
    for item in case.of_kind(objects, "Service"):
        chosen = [pod for pod in labels if item["spec"]["selector"].items() <= pod.items()]
        assert len(chosen) == (1 if "ports" in item["spec"] else len(labels))
    for item in case.of_kind(objects, "StatefulSet"):
        template = item["spec"]["template"]
        assert item["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        assert item["spec"]["serviceName"] in services
        volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
        for mount in template["spec"]["containers"][0]["volumeMounts"]:
            volume = volumes[mount["name"]]
            if "subPath" in mount:
                assert mount["subPath"] in maps[volume["configMap"]["name"]]
            else:
                assert "configMap" not in volume
        asked = json.loads(template["metadata"]["annotations"].get(NETWORKS, "[]"))
        assert {entry["name"] for entry in asked} <= networks


@pytest.mark.parametrize("name", EVERY)
def test_ranks_have_fixed_nodes_and_addresses(name: str) -> None:
    where, objects = case.cluster(), case.build(name)
    rails = fabric.plan(where)
    for index, item in enumerate(case.of_kind(objects, "StatefulSet")):
        node, template = where.nodes[index], item["spec"]["template"]
        assert item["metadata"]["name"].endswith(f"-rank{index}")
        assert template["spec"]["nodeSelector"] == {"kubernetes.io/hostname": node.kubernetes_node}
        asked = json.loads(template["metadata"]["annotations"].get(NETWORKS, "[]"))
        if len(case.of_kind(objects, "StatefulSet")) == 1:
            assert asked == []
            continue
        expected = [
            {"name": f"rail-{e.rail}-vf{e.vf}", "interface": f"net{number}", "ips": [e.cidr]}
            for number, e in enumerate(rails.of(node.name, where.fabric.serving_vf), 1)
        ]
        assert asked == expected


@pytest.mark.parametrize("name", EVERY)
def test_pod_runs_exactly_the_launch(name: str) -> None:
    launch = case.launch(name)
    for rank, engine in zip(launch.ranks, case.engines(case.build(name)), strict=True):
        words = [*engine["command"], *engine["args"]]
        assert words[:3] == ["python3", "/sparkloom/rank", "--"]
        words = words[3:]
        key = engines.get(launch.engine).key_words if rank.index == 0 else ()
        assert tuple(words) == (*rank.argv, *key)
        given = {entry["name"]: entry.get("value") for entry in engine["env"]}
        own = {key: given.pop(key) for key in list(given) if key.startswith("SPARKLOOM_")}
        assert given == {v.name: v.value for v in rank.env}
        assert own == {"SPARKLOOM_RANK": str(rank.index), "SPARKLOOM_CONFIG": None, "SPARKLOOM_ADDRESS": None}
        assert engine["image"] == launch.image
        assert engine["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_llama_cpp_lives_under_the_supervisor_which_waits_for_what_the_others_lend() -> None:
    told = supervision.plan(case.launch(case.RPC), "refuse")
    assert told["lends"] == 50052 and ["/app/rpc-server", "/app/ggml-rpc-server"] in told["programs"]
    assert told["cache"] == "", "it compiles nothing, so no start is called the first"
    assert told["metrics"] == "/metrics" and told["moves"] and "--metrics" in case.launch(case.RPC).ranks[0].argv
    assert supervision.plan(case.launch(case.ULTRA), "refuse")["lends"] == 0
    head, lender = case.engines(case.build(case.RPC))
    assert head["args"][-2:] == ["--api-key-file", "/sparkloom/key/key"] and "--api-key-file" not in lender["args"]


@pytest.mark.parametrize("name", EVERY)
def test_every_pod_is_bounded(name: str) -> None:
    for template in case.pods(case.build(name)):
        spec = template["spec"]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        assert spec["enableServiceLinks"] is False
        assert spec["automountServiceAccountToken"] is False
        assert spec["runtimeClassName"] == "nvidia"
        assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "10Gi"}
        mounts = {mount["name"]: mount for mount in spec["containers"][0]["volumeMounts"]}
        assert mounts["models"] == {"name": "models", "mountPath": "/models", "readOnly": True}
        assert "hostNetwork" not in spec and "hostIPC" not in spec and "hostPID" not in spec


def test_privileged_is_for_ranks_on_rdma_only() -> None:
    def privileged(name: str, **changes: str) -> list[bool]:
        return [
            engine["securityContext"]["privileged"]
            for engine in case.engines(case.build(name, case.cluster(**changes)))
        ]

    assert privileged(case.ULTRA) == [True] * 4
    assert privileged(case.ULTRA, security_mode="device-plugin") == [False] * 4
    assert privileged(case.SOLO) == [False]
    assert privileged(case.RPC) == [False] * 2, "llama.cpp speaks TCP over the rails"


def test_without_a_plugin_nvidia_s_runtime_hands_the_devices_out() -> None:
    """No plugin of ours or anybody's: a resource that nobody offers left every rank Pending."""

    def told(engine: case.Object) -> bool:
        return {"name": "NVIDIA_MOFED", "value": "enabled"} in engine["env"]

    where = case.cluster(security_mode="device-plugin")
    ranks = case.engines(case.build(case.ULTRA, where))
    assert all(told(engine) and engine["resources"]["limits"] == {"nvidia.com/gpu": "1"} for engine in ranks)
    plugin = case.cluster(security_mode="device-plugin", rdma_resource="rdma/rails")
    for objects in (case.build(case.SOLO, where), case.build(case.ULTRA), case.build(case.ULTRA, plugin)):
        assert not any(told(engine) for engine in case.engines(objects))


def test_an_engine_that_is_not_privileged_keeps_two_capabilities() -> None:
    where = case.cluster(security_mode="device-plugin")
    for engine in (*case.engines(case.build(case.SOLO)), *case.engines(case.build(case.ULTRA, where))):
        assert engine["securityContext"] == {
            "privileged": False, "allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"},
            "capabilities": {"add": ["IPC_LOCK", "SYS_PTRACE"], "drop": ["ALL"]},
        }  # fmt: skip


def test_device_plugin_mode_asks_for_the_devices_instead() -> None:
    where = case.cluster(security_mode="device-plugin", rdma_resource="rdma/rails")
    for engine in case.engines(case.build(case.ULTRA, where)):
        assert engine["resources"]["limits"] == {"nvidia.com/gpu": "1", "rdma/rails": "1"}
        assert "IPC_LOCK" in engine["securityContext"]["capabilities"]["add"]
        assert engine["securityContext"]["allowPrivilegeEscalation"] is False
    assert all("rdma/rails" not in e["resources"]["limits"] for e in case.engines(case.build(case.SOLO, where)))


def test_attachments_for_every_vf_in_use() -> None:
    networks = {item["metadata"]["name"]: item for item in case.of_kind(case.build(), "NetworkAttachmentDefinition")}
    assert sorted(networks) == ["rail-a-vf0", "rail-a-vf1", "rail-b-vf0", "rail-b-vf1"]
    config = json.loads(networks["rail-b-vf1"]["spec"]["config"])
    assert config["plugins"] == [
        {
            "type": "host-device",
            "kernelpath": "/sys/devices/../bus/pci/devices/0002:01:00.0/virtfn1",
            "capabilities": {"ips": True},
            "ipam": {"type": "static"},
        },
        {"type": "sparkloom-rails", "mtu": 9000},
    ]
    rails = case.cluster().fabric.model_copy(update={"attach_by": "name"})
    (by_name,) = attachments.definitions(case.cluster(fabric=rails))[3:]
    plugin = json.loads(by_name["spec"]["config"])["plugins"][0]
    assert plugin["device"] == "enP2p1s0f0v1" and "kernelpath" not in plugin
    assert networks["rail-b-vf1"]["metadata"]["annotations"]["sparkloom/mtu"] == "9000"
    assert case.of_kind(case.build(case.SOLO), "NetworkAttachmentDefinition") == []


def test_every_rank_is_asked_through_its_supervisor() -> None:
    for engine in case.engines(case.build()):
        asked = {what: engine[f"{what}Probe"]["httpGet"] for what in ("startup", "readiness", "liveness")}
        paths = {what: get["path"] for what, get in asked.items()}
        assert paths == {"startup": "/started", "readiness": "/ready", "liveness": "/live"}
        assert {get["port"] for get in asked.values()} == {"probes"}
        assert {"name": "probes", "containerPort": ports.PROBES} in engine["ports"]
        assert {"name": "SPARKLOOM_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}} in engine["env"]


@pytest.mark.parametrize("name", [case.ULTRA, case.SOLO, case.TRTLLM, case.RPC])
def test_no_probe_starts_a_program_and_none_kills_within_an_engine_s_own_silence(name: str) -> None:
    """A node at load 60 let exec probes time out, and four healthy ranks were killed for it."""
    longest = max(truth["seconds"] for truth in TRUTHS["prefills"].values())
    for engine in case.engines(case.build(name)):
        for what in ("startup", "liveness"):
            if probe := engine.get(f"{what}Probe"):
                assert "exec" not in probe and probe["timeoutSeconds"] >= 30
                assert probe["periodSeconds"] * probe["failureThreshold"] > longest


def test_no_policy_of_a_group_opens_its_probes_port() -> None:
    """The kubelet comes from the node itself, which every policy lets in; the router has a policy of its own."""
    policy, _ = case.of_kind(case.build(), "NetworkPolicy")
    opened = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    assert not opened & {ports.CONTROL, ports.PROBES}


def plan_of(objects: list[case.Object]) -> dict[str, Any]:
    (data,) = [m["data"] for m in case.of_kind(objects, "ConfigMap") if "plan.json" in m["data"]]
    return dict(json.loads(data["plan.json"]))


def test_the_supervisor_s_plan_is_what_the_pods_get() -> None:
    launch, objects = case.launch(), case.build()
    told = GroupPlan.of(plan_of(objects))
    for rank, member, template in zip(launch.ranks, told.members, case.pods(objects), strict=True):
        asked = json.loads(template["metadata"]["annotations"][NETWORKS])
        assert [(e["interface"], e["ips"]) for e in asked] == [
            (rail.interface, [f"{rail.address}/{rail.prefix}"]) for rail in member.rails
        ]
        hcas = next(variable.value for variable in rank.env if variable.name == "NCCL_IB_HCA")
        assert hcas == "=" + ",".join(rail.hca for rail in member.rails)
    assert plan_of(objects)["program"] == pack.program("rank").stamp
    assert (told.rdma, told.rails, told.policy, told.port) == (True, 2, "refuse", launch.port)
    assert GroupPlan.of(plan_of(case.objects(launch, case.cluster(), "warn"))).policy == "warn"


def test_the_supervisor_drains_within_the_pod_s_grace() -> None:
    limits = GroupPlan.of(plan_of(case.build())).limits
    assert limits.drain + limits.stop < pod.GRACE_SECONDS


def test_the_program_and_its_plan_fit_into_a_config_map() -> None:
    for name in EVERY:
        for item in case.of_kind(case.build(name), "ConfigMap"):
            values = [*item["data"].values(), *item.get("binaryData", {}).values()]
            assert sum(len(value) for value in values) < 1_000_000


def test_a_longer_measured_load_gets_a_longer_start() -> None:
    launch = case.launch()
    model = launch.profile.profile.model
    slow = model.model_copy(update={"measured": model.measured.model_copy(update={"load_seconds": 1800.0})})
    loaded = dataclasses.replace(launch.profile, profile=launch.profile.profile.model_copy(update={"model": slow}))
    objects = case.objects(dataclasses.replace(launch, profile=loaded), case.cluster())
    assert plan_of(objects)["limits"] == {"start": 3 * 1800 + patience.FIRST_COMPILE + patience.START_OVER}


@pytest.mark.parametrize(
    ("name", "change"),
    [(case.ULTRA, "launch.chunked_prefill_size=-1"), (case.SOLO, "launch.enable_chunked_prefill=false")],
)
def test_a_prefill_in_one_piece_is_given_its_time(name: str, change: str) -> None:
    """None of the engine's counters moves in it."""
    longest = max(truth["seconds"] for truth in TRUTHS["prefills"].values())
    assert plan_of(case.build(name, None, change))["limits"]["silence"] > longest
    assert "silence" not in plan_of(case.build(name))["limits"]


def test_engine_files_and_an_empty_nccl_conf_are_mounted_where_they_are_read() -> None:
    mounts = {
        m["mountPath"]: m["subPath"]
        for m in case.engines(case.build(case.TRTLLM))[0]["volumeMounts"]
        if m["name"] == "files"
    }
    assert list(mounts) == list(case.launch(case.TRTLLM).files) != []
    data = {key: text for item in case.of_kind(case.build(), "ConfigMap") for key, text in item["data"].items()}
    ultra = {
        m["mountPath"]: m["subPath"] for m in case.engines(case.build())[0]["volumeMounts"] if m["name"] == "files"
    }
    assert data[ultra["/etc/nccl.conf"]].startswith("#") and "=" not in data[ultra["/etc/nccl.conf"]]


def test_kubernetes_expands_nothing() -> None:
    variable = EnvVar("SECRET_WORD", "$(HOME) costs $5", Origin("profile"))
    assert pod.environment(variable)["value"] == "$$(HOME) costs $5"


def test_unchanged_profile_keeps_its_hash_and_any_change_renews_all_ranks() -> None:
    before = case.hashes(case.build())
    assert len(before) == 1 and before == case.hashes(case.build())
    launch, where = case.launch(), case.cluster()
    serving = where.fabric.model_copy(update={"serving_vf": 1, "check_vf": 0})
    changed = [
        case.build(case.ULTRA, where, "launch.mem_fraction_static=0.89"),
        case.build(case.ULTRA, where, "env.NCCL_DEBUG=WARN"),
        case.build(case.ULTRA, where, "engine.image=elsewhere/sglang:0.5.12"),
        case.build(case.ULTRA, case.cluster(security_mode="device-plugin")),
        case.build(case.ULTRA, case.cluster(fabric=serving)),
        case.build(case.ULTRA, case.one_rail()),
        case.objects(with_variable(launch, EnvVar("ONE_RANK", "1", Origin("profile")), rank=3), where),
        case.objects(dataclasses.replace(launch, image=f"{launch.image}@sha256:{'0' * 64}"), where),
        case.objects(launch, where, "warn"),
    ]
    after = [case.hashes(objects) for objects in changed]
    assert all(len(found) == 1 for found in after)
    assert len(set.union(before, *after)) == len(changed) + 1


def test_what_ranks_do_not_see_leaves_them_alone() -> None:
    no_check = case.cluster().fabric.model_copy(update={"check_vf": None})
    assert case.hashes(case.build(case.ULTRA, case.cluster(fabric=no_check))) == case.hashes(case.build())


def test_policy_closes_the_engine_port() -> None:
    policy, _ = case.of_kind(case.build(), "NetworkPolicy")
    (rule,) = policy["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 30000}]
    assert {} not in rule["from"], "an empty peer is everybody"
    assert all(peer.keys() <= {"podSelector", "namespaceSelector"} for peer in rule["from"])
    assert policy["spec"]["podSelector"]["matchLabels"]["sparkloom/profile"] == case.ULTRA


def test_an_engine_asks_for_names_and_reaches_what_the_site_opens() -> None:
    site = case.cluster(egress=[Destination(cidr="0.0.0.0/0", ports=[443]), Destination(cidr="169.254.20.10/32")])
    for where, opened in ((case.cluster(), []), (site, ["0.0.0.0/0", "169.254.20.10/32"])):
        _, policy = case.of_kind(case.build(case.ULTRA, where), "NetworkPolicy")
        assert policy["spec"]["policyTypes"] == ["Egress"] and "ingress" not in policy["spec"]
        dns, *rest = policy["spec"]["egress"]
        assert dns["to"][0]["podSelector"]["matchLabels"] == {"k8s-app": "kube-dns"}
        assert {(port["protocol"], port["port"]) for port in dns["ports"]} == {("UDP", 53), ("TCP", 53)}
        assert [rule["to"] for rule in rest] == [[{"ipBlock": {"cidr": cidr}}] for cidr in opened]
        assert [rule.get("ports") for rule in rest] == ([[{"protocol": "TCP", "port": 443}], None] if rest else [])


def test_drains_are_refused_for_a_whole_group_only_while_it_works() -> None:
    (budget,) = case.of_kind(case.build(), "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 0
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_only_our_namespace_is_privileged() -> None:
    objects = case.build(case.ULTRA, case.cluster(namespace="models"))
    (space,) = case.of_kind(objects, "Namespace")
    assert space["metadata"]["name"] == "models"
    assert space["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert {item["metadata"].get("namespace", "models") for item in objects} == {"models"}


def test_an_engine_goes_last_when_a_node_is_in_need_and_takes_nobodys_place() -> None:
    objects = case.build()
    (priority,) = case.of_kind(objects, "PriorityClass")
    assert priority["value"] > 0 and priority["preemptionPolicy"] == "Never" and not priority["globalDefault"]
    pods = [item["spec"]["template"]["spec"] for item in case.of_kind(objects, "StatefulSet")]
    assert {pod["priorityClassName"] for pod in pods} == {priority["metadata"]["name"]}
    kinds = [item["kind"] for item in objects]
    assert kinds.index("PriorityClass") < kinds.index("StatefulSet"), "a pod of an unknown class is refused"


def test_record_says_what_runs() -> None:
    (record,) = [m for m in case.of_kind(case.build(), "ConfigMap") if m["metadata"]["name"].endswith("-record")]
    data = json.loads(record["data"]["record.json"])
    assert {data["config_hash"]} == case.hashes(case.build())
    assert data["profile"] == case.ULTRA and [rank["node"] for rank in data["ranks"]] == [
        n.name for n in case.cluster().nodes
    ]


@pytest.mark.parametrize(
    "name",
    [
        *EVERY,
        "org--Model_With.Everything--and-a-very-long-variant-name-that-goes-on",
        "01-ai--yi",
        "a b/ä",
        "---",
        "x" * 200,
    ],
)
def test_names_fit_kubernetes(name: str) -> None:
    group = names.group(name)
    assert len(f"{group}-rank7") <= 51
    assert group.strip("-") == group and group[0].isalpha()
    assert all(letter.isascii() and (letter.islower() or letter.isdigit() or letter == "-") for letter in group)


def test_names_stay_apart() -> None:
    alike = ["a-b", "A-b", "a_b", "x" * 60, "x" * 61, "x" * 60 + "-y"]
    assert len({names.group(name) for name in alike}) == len(alike)


def kernels(objects: list[case.Object]) -> str:
    volumes = {volume["name"]: volume for volume in case.pods(objects)[0]["spec"]["volumes"]}
    return str(volumes["cache"]["hostPath"]["path"])


def test_kernel_caches_of_two_images_never_mix() -> None:
    assert kernels(case.build()) != kernels(case.build(case.ULTRA, None, "engine.image=elsewhere/sglang:0.5.12"))


def test_kernel_caches_of_two_profiles_never_mix() -> None:
    """An engine executes what lies there, so what another profile's left must not; also where group names meet."""
    launch, where = case.launch(), case.cluster()
    called = ["one--m2.5", "one--m2-5", "two"]
    assert names.group(called[0]) == names.group(called[1])
    named = [dataclasses.replace(launch, profile=dataclasses.replace(launch.profile, name=name)) for name in called]
    assert len({kernels(case.objects(one, where)) for one in named}) == len(called)
    assert kernels(case.objects(named[0], where)) == kernels(case.objects(named[0], where))


def test_kernel_caches_of_before_are_not_executed() -> None:
    """A folder of an image alone was writable for every profile: none is called like one."""
    launch = case.launch()
    image = hashlib.sha256(launch.image.encode()).hexdigest()[:12]
    assert not kernels(case.build()).endswith(f"/{launch.engine}-{image}")
