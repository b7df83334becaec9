"""Scripts and command lines: what a shell would make of them, without one, and nothing of them executed."""

from __future__ import annotations

import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkloom.base.errors import InputError
from sparkloom.inputs.importers import shell
from sparkloom.inputs.importers.expansion import Variables
from sparkloom.inputs.importers.found import Found, Leftover, Started, short
from sparkloom.inputs.importers.lexer import Word, lex
from sparkloom.launch import engines

PROGRAMS = engines.programs()


def read(text: str) -> Found:
    found = shell.read(text, "start.sh", PROGRAMS)
    assert found is not None
    return found


def start(text: str) -> Started:
    return read(text).starts[0]


def words(text: str) -> list[str]:
    return Variables().expand([token for token in lex(text) if isinstance(token, Word)])


def test_a_condition_is_a_command_that_runs() -> None:
    """Red before: an engine that is started in one was not found."""
    assert start("if ! vllm serve a/b; then echo no; fi").words == ["a/b"]
    assert start("if docker run vllm/vllm-openai --model a/b; then echo up; else exit 1; fi").words == [
        "--model",
        "a/b",
    ]


OPTIONS = """\
MODEL="${MODEL:-a/b}" TP=2 CONTEXT=""
options() {
  while [[ $# -gt 0 ]]; do
    case "$1" in --model) MODEL="$2"; shift 2 ;; --tp) TP="$2"; shift 2 ;; --context) CONTEXT="$2"; shift 2 ;; esac
  done
}
options "$@"
vllm serve "$MODEL" -tp "$TP" --max-model-len "$CONTEXT"
"""


def test_a_script_is_read_as_run_without_options_of_its_own() -> None:
    """Red before: whatever the loop over them sets did not follow from the file, and the model had no name."""
    found = read(OPTIONS)
    assert found.starts[0].words == ["a/b", "-tp", "2", "--max-model-len", "${CONTEXT}"], "what it demands stays open"
    assert [left.why for left in found.leftover if "while [[ $# -gt 0 ]]" in left.what] == [shell.TYPED]
    given = read(OPTIONS.replace('options "$@"', "options --tp 4"))
    assert given.starts[0].words[1:3] == ["-tp", "${TP}"], "here something is typed"


def test_a_function_that_a_condition_asks_is_given_what_it_says() -> None:
    """Red before: `launch a/b` of an `if` was passed over, and the start within had `${1}` for a model."""
    text = 'launch() { vllm serve "$1" --seed "$2" & }\nif ! launch a/b 7; then exit 1; fi\n'
    assert start(text).words == ["a/b", "--seed", "7"]


def test_a_list_of_words_that_is_sent_elsewhere_is_a_start() -> None:
    """Red before: "no engine is started in it". Three public launchers of four and eight Sparks have this form."""
    text = """\
NODES=(10.0.0.1 10.0.0.2)
SERVE=(vllm serve a/b -tp 2 --master-addr "${NODES[0]}")
told() {
  local cmd=(docker run --gpus all vllm/vllm-openai:v0.25.1 "${SERVE[@]}" --node-rank "$1")
  printf '%q ' "${cmd[@]}"
}
for r in 1 0; do ssh "${NODES[$r]}" "$(told $r)"; done
"""
    found = start(text)
    assert found.words[:5] == ["a/b", "-tp", "2", "--master-addr", "10.0.0.1"] and found.image.startswith("vllm/")
    assert shell.LISTED in [left.why for left in found.leftover]


def test_a_rank_that_is_typed_on_each_node_is_read_as_rank_0() -> None:
    """Red before: what the case sets for each rank did not follow from the file."""
    ranks = (
        'NODE_RANK="${1:?0 or 1}"\ncase "$NODE_RANK" in 0) MODEL=a/b; HEADLESS="" ;; 1) HEADLESS=--headless ;; esac\n'
    )
    assert start(f"{ranks}vllm serve $MODEL --node-rank $NODE_RANK $HEADLESS").words == ["a/b", "--node-rank", "0"]
    assert start('LORA_RANK="$1"\nvllm serve a/b --max-lora-rank $LORA_RANK').words[2] == "${1}"


def test_what_a_mount_calls_its_sides_is_no_part_of_a_folder() -> None:
    """Red before: `-v /x/src:/target:ro` was read as a mount by name."""
    image = "vllm/vllm-openai --model /target"
    assert start(f"docker run -v /x/src:/target:ro {image}").mounts == {"/target": "/x/src"}
    assert start(f"docker run --mount type=bind,src=/x,dst=/target {image}").mounts == {"/target": "/x"}


def test_an_image_of_somebody_s_is_given_a_model_by_its_path() -> None:
    """Red before: "no engine is started in it"."""
    docker = "docker run --gpus all ghcr.io/acme/vllm-glm53:sm121"
    assert start(f"{docker} /models/glm --tensor-parallel-size 2").words[0] == "/models/glm"
    assert shell.read(f"{docker} /bin/bash -lc ls", "start.sh", PROGRAMS) is None
    assert shell.read(f"{docker} /app/serve.sh --port 8000", "start.sh", PROGRAMS) is None


def test_a_loop_over_words_is_read_with_the_first() -> None:
    """Red before: no model."""
    found = start('MODELS=(a/b c/d)\nfor model in "${MODELS[@]}"; do vllm serve "$model"; done\n')
    assert found.words == ["a/b"]
    assert any("read as with a/b, the first of these words" in left.why for left in found.leftover)
    assert start('for one in /models/*; do vllm serve "$one"; done').words == ["${one}"]


@pytest.mark.parametrize(
    "text",
    [
        "a 'b c' \"d e\" f\\ g",
        "a\\\n  b   # a comment\n",
        '--x \'{"a": {"b": 1}}\' --y="q\'r" \'\'',
        "x\"y\"'z'w  '#no' no#comment",
        '"a\\"b\\\\c" \'a\\b\'',
    ],
)
def test_words_are_a_shells_own(text: str) -> None:
    said = subprocess.run(["bash", "-c", f"printf '%s\\0' {text}"], capture_output=True, text=True, check=True).stdout
    assert words(text) == said.split("\0")[:-1]


@settings(max_examples=300)
@given(st.text(alphabet="ab \t\n\\'\"$(){}[];&|<>#=-@*!`:,.", max_size=60))
def test_any_text_is_read_to_its_end(text: str) -> None:
    shell.read(f"{text}\nvllm serve m/x", "any", PROGRAMS)


def test_variables_defaults_lists_and_sums() -> None:
    text = """
    #!/bin/bash
    MODEL="${MODEL:-org/name}"
    N=$(( 4 * 2 ))
    ARGS=(--max-num-seqs "$N")
    [[ "$N" == "8" ]] && ARGS+=(--seed 3)
    (( N > 9 )) && ARGS+=(--seed 4)
    case "${MODE:-fast}" in
      slow) LEN=1 ;;
      fast) LEN=2 ;;
    esac
    exec vllm serve "$MODEL" "${ARGS[@]}" "${EMPTY[@]}" --max-model-len $LEN
    """
    found = read(text)
    assert found.starts[0].words == [
        "org/name", "--max-num-seqs", "8", "--seed", "3", "${EMPTY[@]}", "--max-model-len", "2",
    ]  # fmt: skip
    assert {left.what for left in found.leftover} == {"${MODEL}", "${MODE}"}


def test_a_container_gives_image_and_variables_and_its_options_are_named() -> None:
    found = start(
        "sudo docker run -d --gpus all -p 8000:8000 --env-file x.env -e A=1 -e HF_TOKEN=hf_abcdefghijk --ipc=host \\\n"
        "  vllm/vllm-openai:v0.19.0 --model org/name --max-num-seqs 4"
    )
    assert (found.engine, found.image, found.env) == ("vllm", "vllm/vllm-openai:v0.19.0", {"A": "1"})
    named = {left.what for left in found.leftover}
    assert {"container option --gpus all", "container option -p 8000:8000", "env HF_TOKEN"} <= named
    assert "hf_abcdefghijk" not in str(found.leftover)


def test_wrappers_lead_to_the_engine() -> None:
    inner = 'docker exec box bash -lc "export B=2; cd /x && python3 -m sglang.launch_server --model-path m/x --tp 2"'
    for text in (inner, f"ssh spark2 '{inner}'", f"tmux new-session -d -s s '{inner}'"):
        found = start(text)
        assert found.engine == "sglang" and found.words == ["--model-path", "m/x", "--tp", "2"]
        assert found.env == {"B": "2"} or "docker" in text


def test_a_container_started_apart_and_entered_later_is_one() -> None:
    found = start("docker run -d --name box -e A=1 org/image:v1 sleep infinity\ndocker exec box vllm serve m/x")
    assert (found.image, found.env, found.words) == ("org/image:v1", {"A": "1"}, ["m/x"])


def test_a_containers_variables_are_known_to_its_shell() -> None:
    found = start("docker exec -e MODEL=m/x box bash -c 'vllm serve $MODEL'")
    assert found.words == ["m/x"] and found.env == {"MODEL": "m/x"}


def test_the_name_of_a_container_that_is_asked_for_is_one_word() -> None:
    """Red before: braces in the question made several of it, and nothing was started."""
    found = start("BOX=$(docker ps --format '{{.Names}}' | grep node)\ndocker exec -it $BOX bash -c 'vllm serve m/x'")
    assert found.words == ["m/x"]


def test_words_around_one_that_is_not_known_are_words() -> None:
    assert start('OPTS="--port $PORT --seed 1"\nvllm serve m/x $OPTS').words[1:] == ["--port", "${PORT}", "--seed", "1"]


@pytest.mark.parametrize(
    "text",
    [
        'ssh spark2 "docker run vllm/vllm-openai:v0.19.0 m/x --seed 1"',
        "ssh spark2 'bash -s' <<'EOF'\ndocker run vllm/vllm-openai:v0.19.0 m/x --seed 1\nEOF",
        "cat > /tmp/a.sh <<'EOF'\nvllm serve m/x --seed 1\nEOF\n"
        "docker run -v /tmp/a.sh:/b.sh --entrypoint bash vllm/vllm-openai:v0.19.0 /b.sh",
        'go() {\n  local model=$1; shift\n  docker run vllm/vllm-openai:v0.19.0 "$model" "$@"\n}\ngo m/x --seed 1',
        'main() { docker run $IMAGE vllm serve m/x "${ARGS[@]}"; }\nARGS=(--seed 1)\n'
        'IMAGE=vllm/vllm-openai:v0.19.0\nmain "$@"',
        "bash run_cluster.sh vllm/vllm-openai:v0.19.0 10.0.0.1 --head ~/hf\n"
        "docker exec -it $NODE bash -c 'vllm serve m/x --seed 1'",
        "./launch-cluster.sh -t vllm/vllm-openai:v0.19.0 exec vllm serve m/x --seed 1",
    ],
    ids=["ssh", "standard input", "its own script", "a function", "main", "run_cluster.sh", "launch-cluster.sh"],
)
def test_what_others_wrap_around_a_container_leads_to_its_engine(text: str) -> None:
    (found,) = read(text).starts
    assert (found.image, found.words) == ("vllm/vllm-openai:v0.19.0", ["m/x", "--seed", "1"])


def test_a_command_that_is_put_together_keeps_its_quotes() -> None:
    spec = """SPEC='{"method": "mtp"}'\nCMD="vllm serve m/x --speculative-config '$SPEC'"\neval $CMD"""
    assert start(spec).words == ["m/x", "--speculative-config", '{"method": "mtp"}']


def test_what_is_only_added_on_a_condition_is_left_out_and_named() -> None:
    """Red before: `[ test ] &&` was believed, and behind an `if` the whole list was unknown."""
    for text in (
        'A=(--seed 1)\nif [ "$X" = 1 ]; then A+=(--enforce-eager); fi\nvllm serve m/x "${A[@]}"',
        'A="--seed 1"\n[ "$X" = 1 ] && A="$A --enforce-eager"\nvllm serve m/x $A',
    ):
        found = read(text)
        assert found.starts[0].words == ["m/x", "--seed", "1"]
        assert Leftover("start.sh:2: --enforce-eager", shell.UNDECIDED) in found.leftover


def test_variables_before_a_shell_are_its_engines() -> None:
    assert start("VLLM_A=1 bash -c 'vllm serve m/x'").env == {"VLLM_A": "1"}
    assert start("uv run --with vllm==0.24.0 -- vllm serve m/x").env == {}


def test_files_of_variables_and_words_cut_off_are_named() -> None:
    found = read("source cluster.env\nsource venv/bin/activate\nvllm serve m/x \\\n  # --seed 1 \\\n  --dtype auto\n")
    told = {left.what: left.why for left in found.leftover}
    assert "variables" in told["start.sh:1: source cluster.env"] and told["start.sh:5: --dtype auto"] == shell.CUT_OFF
    assert not any("activate" in what for what in told)


def test_a_makefiles_variables_have_their_values() -> None:
    make = "MODEL ?= m/x\nPORT := 8000\nserve:\n\t@vllm serve $(MODEL) --port $(PORT)\n"
    just = "model := 'm/x'\nserve port='8000':\n    vllm serve {{model}} --port 8000\n"
    assert start(make).words == start(just).words == ["m/x", "--port", "8000"]


def test_a_flag_is_no_secret() -> None:
    found = read("vllm serve m/x\nvllm serve m/y --hf_overrides {}")
    assert short(" ".join(found.starts[1].words)) == "m/y --hf_overrides {}"
    assert short("--hf_config_path x") == "--hf_config_path x" and short("hf_" + "a1" * 9) == "(secret)"


def test_several_letters_of_a_container_are_its_options() -> None:
    (option,) = start("docker run -itd image:1 vllm serve m/x").leftover
    assert option.why == start("docker run -d image:1 vllm serve m/x").leftover[0].why


def test_what_runs_on_a_condition_that_nobody_decided_says_so() -> None:
    found = start('if [ -f /etc/x ]; then MODEL=a/b; vllm serve "$MODEL"; else vllm serve c/d; fi')
    assert found.words == ["a/b"] and any("if [ -f /etc/x ]" in left.what for left in found.leftover)


def test_talk_of_an_engine_starts_none(tmp_path: object) -> None:
    assert shell.read("echo vllm serve m/x; pkill -f 'vllm serve'; # vllm serve m/x\n", "x", PROGRAMS) is None


def test_nothing_is_executed(tmp_path: object) -> None:
    read(f"touch {tmp_path}/made; X=$(touch {tmp_path}/made) vllm serve m/x `touch {tmp_path}/made`")
    assert not __import__("pathlib").Path(f"{tmp_path}/made").exists()


def test_what_grows_without_end_is_no_value() -> None:
    doubled = "A=x\nL=(x)\n" + 'A="$A$A"\nL+=("${L[@]}")\n' * 60
    assert start(f'{doubled}vllm serve m/x --dtype "$A"').words[:2] == ["m/x", "--dtype"]
    with pytest.raises(InputError, match="words; expected 1,000 at most"):
        read(f'{doubled}vllm serve m/x --served-model-name "${{L[@]}}"')


def test_other_commands_are_named_and_secrets_in_them_are_not() -> None:
    found = read("hf login --token hf_0123456789abcdef\npip install vllm\nvllm serve m/x --api-key sk-12345678")
    assert Leftover("start.sh:1: hf login --token (secret)", shell.NOT_RUN) in found.leftover
    assert any("pip install vllm" in left.what for left in found.leftover)


def test_a_file_that_the_script_writes_and_mounts_is_known_inside() -> None:
    found = start(
        "cat > opts.yml <<'EOF'\na: 1\nEOF\n"
        'docker run -v "$PWD/opts.yml:/etc/opts.yml:ro" image:1 trtllm-serve m/x --extra_llm_api_options /etc/opts.yml'
    )
    assert found.files["/etc/opts.yml"] == "a: 1\n"


BIG = 256 << 10  # bytes: what `sparkloom import` reads at most


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vllm serve m/x " + "--flag v " * (BIG // 9), "started with 58,2"),
        (
            "".join(f"A{n}=b\n" for n in range(9_000)) + "if x; then y; fi\n" * 9_000 + "vllm serve m/x",
            "1,000 variables",
        ),
        ("vllm serve m/x\n" * (BIG // 15), ""),
        ("f() {" + " f;" * 100 + "}\nf\nvllm serve m/x", ""),
        ("cat > a.sh <<E\n" + "./a.sh\n" * 2_000 + "vllm serve m/x\nE\n" + "./a.sh\n" * 2_000, ""),
    ],
)
def test_what_no_recipe_holds_is_told_so_at_once(text: str, said: str) -> None:
    """Red with a limit of 4 MiB and none of words: minutes."""
    begun = time.process_time()
    if said:
        with pytest.raises(InputError, match=said):
            read(text)
    else:
        assert read(text)
    assert time.process_time() - begun < 4  # 2 on a quiet machine
