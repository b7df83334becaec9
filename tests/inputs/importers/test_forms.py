"""Recipes, compose files and cells: what each form means, and that nothing beside the command is lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs.importers import cookbook, source
from sparkloom.inputs.importers.expansion import OPEN
from sparkloom.inputs.importers.found import Found
from sparkloom.launch import engines

V1 = """
recipe_version: "1"
name: Some
model: org/name
container: vllm-node
build_args: [--exp-b12x]
mods: [mods/fix-this]
cluster_only: true
volumes: [/a:/b]
defaults: {port: 8000, tensor_parallel: 2, spec: 5, idle: 3}
env: {A: "1", HF_TOKEN: x}
command: |
  vllm serve org/name \\
    --port {port} \\
    -tp {tensor_parallel} \\
    --speculative-config '{{"method":"mtp","num_speculative_tokens":{spec}}}'
"""
V2 = """
recipe_version: "2"
model: org/name
runtime: sglang
container: scitrera/dgx-spark-sglang:0.5.12
min_nodes: 2
metadata: {description: Words, model_params: 8B}
executor_config: {shm_size: 20gb}
post_exec: ["curl x"]
defaults:
  tensor_parallel: 2
  max_model_len: 4096
  served_model_name: alias
  text: '{"a": {"b": 1}}'
command: |
  sglang serve --model-path {model} --tp {tensor_parallel} --context-length {max_model_len} \\
    --json-model-override-args '{text}' --dtype {nowhere}
"""
COMPOSE = """
services:
  engine:
    image: vllm/vllm-openai:v0.19.0
    command: --model ${MODEL:-org/name} --max-num-seqs ${SEQS:-4}
    environment: [A=1, "B=$$x", NCCL_IB_HCA]
    volumes: ["~/.cache:/root/.cache"]
    ports: ["8000:8000"]
  ui:
    image: open-webui:1
"""
CELL = """
export const config = {
  modelNames: { "default|nvfp4": "org/name-NVFP4" },
  dockerImages: { "dgx-spark": "lmsysorg/sglang:spark" },
  cells: [
    { match: { hw: "b200", variant: "default", quant: "nvfp4", strategy: "x", nodes: "single" },
      env: [], flags: ["--model-path {{MODEL_NAME}}", "--tp 4"] },
    { match: { hw: "dgx-spark", variant: "default", quant: "nvfp4", strategy: "x", nodes: "multi-2" },
      verified: true, // green
      env: ["SGLANG_X=1"],
      flags: [ "--model-path {{MODEL_NAME}}", "--tp 2", "--port {{PORT}}", '--json {"a":1}', ], },
  ],
};
"""


def read(text: str, pick: str = "") -> Found:
    return source.read(text, "file", engines.programs(), pick)


def named(found: Found) -> dict[str, str]:
    return {left.what: left.why for left in [*found.leftover, *found.starts[0].leftover]}


def test_version_one_is_filled_and_its_doubled_braces_are_json() -> None:
    found = read(V1)
    assert found.form == "spark-vllm-docker recipe, version 1" and found.least_nodes == 2
    assert found.starts[0].words[-1] == '{"method":"mtp","num_speculative_tokens":5}'
    assert found.starts[0].env == {"A": "1"} and found.starts[0].image == "vllm-node"
    told = named(found)
    for what in ("build_args: --exp-b12x", "mods: mods/fix-this", "volumes: /a:/b", "defaults: idle 3", "env HF_TOKEN"):
        assert told.get(what), what


def test_a_recipe_may_name_its_model_in_the_command_alone() -> None:
    """As spark-vllm-docker allows: `model:` is for downloading beforehand."""
    found = read(V1.replace("model: org/name\n", "", 1))
    assert found.model == "" and found.starts[0].words[0] == "org/name"


def test_version_two_keeps_what_no_default_fills_and_appends_the_served_name() -> None:
    found = read(V2)
    words = found.starts[0].words
    assert words[words.index("--json-model-override-args") + 1] == '{"a": {"b": 1}}'
    assert words[-4:] == ["--dtype", "{nowhere}", "--served-model-name", "alias"]
    told = named(found)
    for what in ("{nowhere}", "post_exec: curl x", "metadata: model_params 8B", "executor_config: shm_size 20gb"):
        assert told.get(what), what


def test_a_recipe_without_a_command_is_its_runtimes() -> None:
    found = read(
        "model: org/name\nruntime: vllm\ncontainer: i:1\ndefaults: {tensor_parallel: 2, odd: 3, enforce_eager: true}"
    )
    assert found.starts[0].words == ["org/name", "--tensor-parallel-size", "2", "--enforce-eager"]
    assert "defaults: odd 3" in named(found)


def test_compose_services_and_their_defaults() -> None:
    found = read(COMPOSE)
    assert found.starts[0].words == ["--model", "org/name", "--max-num-seqs", "4"]
    assert found.starts[0].env == {"A": "1", "B": "$x"}
    told = named(found)
    for what in (
        "${MODEL}",
        "${SEQS}",
        "service ui: open-webui:1",
        "env NCCL_IB_HCA",
        "service engine: ports 8000:8000",
    ):
        assert told.get(what), what


def test_a_cell_for_a_spark_goes_before_the_others() -> None:
    found = read(CELL)
    assert found.model == "org/name-NVFP4" and found.least_nodes == 2 and found.claim == "verified"
    assert found.starts[0].words == [
        "--model-path",
        "org/name-NVFP4",
        "--tp",
        "2",
        "--port",
        "30000",
        "--json",
        "{a:1}",
    ]
    assert found.starts[0].image == "lmsysorg/sglang:spark" and found.starts[0].env == {"SGLANG_X": "1"}
    assert any("another cell: b200" in what for what in named(found))
    assert read(CELL, "b200").starts[0].words[-1] == "4"


def test_a_page_with_code_in_it_is_its_code() -> None:
    found = read("# Title\nSome `vllm serve` talk.\n```bash\n$ vllm serve org/name --seed 1\n```\nmore\n")
    assert found.starts[0].words == ["org/name", "--seed", "1"] and found.starts[0].where == "file:4"


def test_a_site_s_data_is_the_first_command_of_its_page() -> None:
    code = "".join(f"  ```bash\n  vllm serve org/name -tp {ranks}\n  ```\n" for ranks in (2, 8))
    found = read(f"meta: {{title: X}}\nmodel: {{model_id: org/name}}\nguide: |\n  ## Start\n{code}")
    assert [(start.words, start.where) for start in found.starts] == [
        (["org/name", "-tp", "2"], "file:6"),
        (["org/name", "-tp", "8"], "file:9"),
    ]
    assert "builder" in named(found)["model: {'model_id': 'org/name'}"]


def test_a_key_that_stands_twice_is_told() -> None:
    assert any("stands twice" in why for why in named(read(V1 + "container: other\n")).values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no engine is started"),
        ("hello world", "no engine is started"),
        ("( " * 20_000 + "vllm serve a/b", "nested too deep"),
        ("recipe_version: '1'\nmodel: a/b\ncontainer: c\ncommand: |\n  echo hi\n", "no engine's program"),
        ("recipe_version: '2'\nmodel: [\n", "not valid YAML"),
        ("services: {a: {image: b}}", "no service starts an engine"),
        ("model: {id: x}\nengine: {name: vllm}\nlaunch: {}\n", "is a profile of sparkloom already"),
        ("{ match: {hw: f()}, flags: [] }", "no literal"),
        ("{ match: {hw: " + "1" * 5000 + "}, flags: [] }", "no literal"),
        ("{ match: {hw: [1 2]}, flags: [] }", "no literal"),
        ("model: a/b\ncontainer: c\ndefaults: [1]\n", "expected a mapping"),
    ],
)
def test_what_cannot_be_read_says_what_was_found(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(text)


def test_a_literal_is_data_and_never_an_expression() -> None:
    value, _ = cookbook.literal("{a: [1, -2.5, 'x\\'y', `t`, true, null,], /* c */ \"b-c\": {d: 0x10}}", 0)
    assert value == {"a": [1, -2.5, "x'y", "t", True, None], "b-c": {"d": 16}}
    with pytest.raises(cookbook.NoLiteral):
        cookbook.literal("{a: process.exit(1)}", 0)


MANIFEST = """
# two objects
apiVersion: v1
kind: PersistentVolumeClaim
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
spec:
  leaderWorkerTemplate:
    leaderTemplate:
      spec:
        containers:
        - name: leader
          image: vllm/vllm-openai:v0.19.0
          command: [sh, -c, "vllm serve $MODEL -tp 2"]
          env:
          - {name: MODEL, value: org/name}
          - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}
          resources: {limits: {nvidia.com/gpu: 1}}
    workerTemplate:
      spec:
        containers: [{name: worker, image: some/image}]
"""


def test_containers_of_kubernetes_are_read_as_services() -> None:
    found = read(MANIFEST)
    (start,) = found.starts
    assert (found.form, start.where) == ("Kubernetes manifest", "file:13")
    assert (start.image, start.words, start.env["MODEL"]) == (
        "vllm/vllm-openai:v0.19.0",
        ["org/name", "-tp", "2"],
        "org/name",
    )
    told = named(found)
    for what in (
        "file:4: PersistentVolumeClaim",
        "file:7: LeaderWorkerSet",
        "env HF_TOKEN",
        "service worker: some/image",
    ):
        assert told.get(what), what
    assert any("resources" in what for what in told)


COMMAND = "vllm serve org/name --seed 1"
WITHIN = {
    "a fence of tildes": f"# Head\n```\ncurl x\n```\n~~~bash\n{COMMAND}\n~~~\n",
    "a sentence": f"I run `{COMMAND}` and it is fine.\n",
    "a table": f"| model | command |\n|--|--|\n| x | `{COMMAND}` |\n",
    "a compose file in a page": f"# Head\n```yaml\nservices:\n  one:\n    image: i:1\n    command: {COMMAND}\n```\n",
    "a compose file in a script": f"cat > c.yml <<EOF\nservices:\n  one:\n    image: i:1\n    command: {COMMAND}\nEOF\n"
    "docker compose up -d\n",
    "a unit in a script": "M=org/name\nsudo tee /etc/x.service >/dev/null <<EOF\n[Service]\n"
    "ExecStart=vllm serve $M --seed 1\nEOF\n",
}


@pytest.mark.parametrize("text", WITHIN.values(), ids=WITHIN)
def test_a_start_inside_of_something_else_is_found(text: str) -> None:
    (start,) = read(text).starts
    assert start.words == ["org/name", "--seed", "1"] and start.image == ("i:1" if "services" in text else "")


def test_of_two_recipes_on_a_page_the_other_is_named() -> None:
    page = "```yaml\nservices:\n  a: {image: i, command: vllm serve a/b}\n```\n```\nvllm serve c/d\n```\n"
    found = read(page)
    assert found.starts[0].words == ["a/b"] and "what stands beside file:3" in named(found)


def test_a_start_in_a_form_that_is_not_read_is_told_so() -> None:
    for text in ('cmd = ["vllm", "serve", "a/b"]', '{"source": ["!vllm serve a/b\\n"]}'):
        with pytest.raises(InputError, match="`vllm serve` stands in it"):
            read(text)
    with pytest.raises(InputError, match=r"no engine is started in it.*\(llamacpp, sglang, trtllm, vllm\)"):
        read("ollama run x")


@pytest.mark.parametrize("to", ["> /tmp/x.log 2>&1 &", "> x.log", '>> "$LOG" 2>&1', "> ~/x 2>&1"])
@pytest.mark.parametrize("more", ["", "  --max-model-len 8 \\\n"])
def test_a_redirection_on_a_line_of_its_own_is_no_prompt(more: str, to: str) -> None:
    """Red before: the log's file was a word of the engine, which `belongs to no flag`, in most scripts with nohup."""
    found = read(f"nohup vllm serve a/b \\\n  -tp 2 \\\n{more}  {to}\n")
    assert found.starts[0].words == ["a/b", "-tp", "2", *more.split()[:2]]
    assert read(f"vllm serve a/b -tp 2 \\\n  {to}\n").starts[0].words == ["a/b", "-tp", "2"]


def test_a_value_that_a_command_computes_is_open_in_a_shell_within_too() -> None:
    """Red before: `expected a number, found '${(awk -v a="$MEM...`, of a public script."""
    computed = 'G=$(awk -v a="${X:-0}" \'BEGIN { if (a) { print "0.8" } }\')'
    text = f"{computed}\ndocker run i bash -c \"vllm serve a/b -x '${{G}}' -tp 2\"\n"
    words = read(text).starts[0].words
    assert words[:2] == ["a/b", "-x"] and OPEN.fullmatch(words[2]) and words[3:] == ["-tp", "2"]


def test_a_program_that_a_comment_names_is_no_start() -> None:
    """Red before: a profile of `unknown/unnamed`, of a public script whose comments explain what it does."""
    script = "#!/bin/bash\n# the SAME `vllm serve` command runs on both nodes\nprintf 'vllm serve %q ' \"$MODEL\"\n"
    for text in (script, "Then run `vllm serve` on both.", "| Launch | direct `vllm serve ... method:dspark` |"):
        with pytest.raises(InputError, match="`vllm serve` stands in it"):
            read(text)


def test_a_program_that_is_ended_or_told_of_is_no_start() -> None:
    """Red before: `vllm serve` "in a form that is not read", of public scripts that kill it and say what to type."""
    script = 'ps aux | grep -E "vllm serve|flux" | xargs kill\npkill -f "vllm serve"\necho "  vllm serve a/b"\n'
    with pytest.raises(InputError, match="no engine is started in it"):
        read(f"#!/bin/bash\n{script}bash install.sh --start\n")
    with pytest.raises(InputError, match="`vllm serve` stands in it"):
        read(f"#!/bin/bash\n{script}echo vllm serve >>run.sh\n")


def test_a_script_that_runs_a_recipe_by_its_path_leads_to_it() -> None:
    """Red before: no engine is started in it."""
    with pytest.raises(InputError, match=r"runs the recipe \$BASE/recipes/4x-spark/glm-5\.2 of another file"):
        read('#!/bin/bash\nBASE=x\n"$BASE/run-recipe.sh" $BASE/recipes/4x-spark/glm-5.2 \\\n  -n $HOST_1\n')


@pytest.mark.parametrize(
    "text",
    ['"$BASE_PATH/run-recipe.sh" glm-5.2 \\\n  -n $HOST_1', "./run-recipe.py glm-5.2 --solo", "sparkrun run glm-5.2"],
)
def test_a_script_that_runs_a_recipe_by_its_name_leads_to_it(text: str) -> None:
    with pytest.raises(InputError, match=r"runs the recipe glm-5\.2 of another file: import that one"):
        read(f"#!/bin/bash\nHOST_1=a\n{text}\n")


IMAGE = "ghcr.io/somebody/vllm-node:1"
PASTED = {
    "behind sudo": f"sudo -u me docker run --gpus all {IMAGE} vllm serve a/b --max-num-seqs 4",
    "behind a prompt": f"me@spark:~$ docker run {IMAGE} vllm serve a/b --max-num-seqs 4",
    "to another machine": f"docker --context spark container run {IMAGE} vllm serve a/b --max-num-seqs 4",
    "over ssh": f"ssh spark1 docker run {IMAGE} vllm serve a/b --max-num-seqs 4",
    "in a shell of the container": f"docker run -it --gpus all {IMAGE} bash\nvllm serve a/b --max-num-seqs 4",
    "by a name that is asked for": f"docker run -d {IMAGE} sleep 9\ndocker exec $ID vllm serve a/b --max-num-seqs 4",
    "flags for the image": f"docker run {IMAGE} --model a/b --max-num-seqs 4",
    "a model for the image": f"docker run {IMAGE} a/b --max-num-seqs 4",
    "words for the image": f"docker run {IMAGE} serve a/b --max-num-seqs 4",
    "a systemd unit": f"[Unit]\nAfter=docker.service\n[Service]\nExecStart=-/usr/bin/docker run {IMAGE} \\\n"
    "  vllm serve a/b --max-num-seqs 4\nRestart=always",
    "a compose file that merges": f"x-all: &all\n  image: {IMAGE}\nservices:\n  one:\n    <<: *all\n"
    "    command: vllm serve a/b --max-num-seqs 4",
}


@pytest.mark.parametrize("text", PASTED.values(), ids=PASTED)
def test_an_image_that_is_named_is_never_lost(text: str) -> None:
    (start,) = read(text).starts
    assert start.image == IMAGE and start.engine == "vllm"
    assert "a/b" in start.words and start.words[-2:] == ["--max-num-seqs", "4"]


def test_a_units_variables_are_the_engines() -> None:
    unit = f'[Service]\nEnvironment=VLLM_A=1\nEnvironment="VLLM_B=b c"\nExecStart=vllm serve {IMAGE}\n[Install]\n'
    assert read(unit).starts[0].env == {"VLLM_A": "1", "VLLM_B": "b c"}
    told = named(read(unit.replace("[Install]", "EnvironmentFile=-/etc/x\nUser=me\n[Install]")))
    assert {"file:5: source /etc/x", "file:6: systemd User=me"} <= set(told)


def test_a_page_with_a_recipe_in_it_is_a_page() -> None:
    found = read("# Head\n\nservices:\n\n```bash\nvllm serve a/b\n```\n\nmodel: [\n")
    assert [start.words for start in found.starts] == [["a/b"]]
    assert read("```\nvllm serve a/b --seed 1\n").starts[0].words == ["a/b", "--seed", "1"]  # its end was not copied


def beside(folder: Path, variables: str, text: str) -> Found:
    (folder / ".env").write_text(variables)
    return source.read(text, str(folder / "compose.yml"), engines.programs())


def test_compose_takes_variables_from_the_file_beside_it_but_no_secret(tmp_path: Path) -> None:
    variables = "# mine\nMODEL=org/name # the small one\nexport TAG='v0.19.0'\nLENGTH=\nAPI_KEY=abc\nFAR=\"a b\"\n"
    text = (
        "services:\n  a:\n    image: vllm/vllm-openai:${TAG:?}\n    env_file: [.env, ../.env, /etc/hostname]\n"
        "    command: --model ${MODEL} --max-model-len ${LENGTH:-4096} --api-key ${API_KEY} --seed ${SEED}\n"
    )
    found = beside(tmp_path, variables, text)
    [start] = found.starts
    assert start.image == "vllm/vllm-openai:v0.19.0"
    assert " ".join(start.words).endswith("--model org/name --max-model-len 4096 --api-key ${API_KEY} --seed ${SEED}")
    assert start.env == {"FAR": "a b", "LENGTH": ""}, "what compose itself took is no engine's"
    told = {one.what: one.why for one in [*found.leftover, *start.leftover]}
    assert told["${MODEL}"] == "org/name, from .env beside it"
    assert {"env API_KEY", "service a: env_file ../.env", "service a: env_file /etc/hostname"} <= told.keys()
    assert "abc" not in str(found)


@pytest.mark.parametrize("name", ["-", "elsewhere/compose.yml"])
def test_a_recipe_from_a_pipe_or_another_folder_reads_no_file_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / ".env").write_text("MODEL=org/name\n")
    monkeypatch.chdir(tmp_path)
    text = "services:\n  a:\n    image: vllm/vllm-openai:v0.19.0\n    command: --model ${MODEL}\n"
    [start] = source.read(text, name, engines.programs()).starts
    assert "${MODEL}" in start.words


def test_a_script_that_sources_a_file_beside_it_has_its_values(tmp_path: Path) -> None:
    (tmp_path / "mine.env").write_text("MODEL=org/name\nHF_TOKEN=hf_abc\n")
    text = (
        "if [ -f mine.env ]; then\n  . ./mine.env\nfi\nsource /etc/other.env\n"
        "vllm serve $MODEL --max-model-len $LENGTH --api-key $HF_TOKEN\n"
    )
    found = source.read(text, str(tmp_path / "run.sh"), engines.programs())
    assert found.starts[0].words == ["org/name", "--max-model-len", "${LENGTH}", "--api-key", "${HF_TOKEN}"]
    whys = [one.why for one in found.leftover]
    assert sum("from beside" in why for why in whys) == 1 and sum("not known here" in why for why in whys) == 1


def script(folder: Path, text: str) -> Found:
    return source.read(f"{text}\nvllm serve org/name\n", str(folder / "run.sh"), engines.programs())


@pytest.mark.parametrize("command", ["rm -f mine.env", "tail -f mine.env"])
def test_a_command_about_a_file_beside_it_is_no_test_of_it(tmp_path: Path, command: str) -> None:
    (tmp_path / "mine.env").write_text("A=1\n")
    assert any(command in one.what for one in script(tmp_path, command).leftover)


def test_a_test_of_more_than_a_file_beside_it_is_not_decided(tmp_path: Path) -> None:
    (tmp_path / "mine.env").write_text("A=1\n")
    found = script(tmp_path, "MODEL=a\n[ -f mine.env -a -n $NOBODY ] && MODEL=b\nvllm serve $MODEL")
    assert found.starts[0].words == ["${MODEL}"]


@pytest.mark.parametrize(
    "text", ["if [ $1 ]; then\n  MODEL=a\nelse\n  MODEL=b\nfi\n", "MODEL=$OTHER/a\n", "MODEL=`pwd`\n"]
)
def test_what_only_a_shell_can_say_of_a_sourced_file_is_not_believed(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.env").write_text(text)
    assert script(tmp_path, "source mine.env\nvllm serve $MODEL").starts[0].words == ["${MODEL}"]


@pytest.mark.parametrize("name", ["x" * 5000, "x\\ny", ""])
def test_a_name_that_no_file_has_is_no_fault_of_the_script(tmp_path: Path, name: str) -> None:
    assert script(tmp_path, f"[ -f '{name}' ] && source '{name}'").starts


def test_a_line_that_never_ends_is_read_in_no_time(tmp_path: Path) -> None:
    begun = time.process_time()
    beside(tmp_path, f"A=x{' ' * 60_000}y z\n{' ' * 60_000}\n", COMPOSE)
    assert time.process_time() - begun < 2


def test_a_file_of_variables_refers_to_others_as_compose_lets_it(tmp_path: Path) -> None:
    (tmp_path / "mine.env").write_text("CACHE=${ROOT}/cache\nELSEWHERE=${NOBODY}/x\n")
    text = (
        "services:\n  a:\n    image: vllm/vllm-openai:v0.19.0\n    env_file: mine.env\n    command: --model org/name\n"
    )
    [start] = beside(tmp_path, "ROOT=/data\n", text).starts
    assert start.env == {"CACHE": "/data/cache"}
    assert "env ELSEWHERE=${NOBODY}/x" in {one.what for one in start.leftover}
