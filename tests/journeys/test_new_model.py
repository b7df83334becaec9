"""A model that nobody has shipped: from its config.json to a manifest."""

from __future__ import annotations

import json
import shutil

from tests.journeys.terminal import Terminal
from tests.journeys.test_recipes import RECIPES


def test_from_its_config_to_a_manifest(terminal: Terminal) -> None:
    (terminal.home / "wren").mkdir()
    shutil.copy(RECIPES / "config.json", terminal.home / "wren")
    terminal.type("sparkloom profile new ./wren -o mine.yml").has("fits on", "wrote mine.yml", "next: sparkloom lint")
    terminal.type("sparkloom profile check mine.yml ./wren", None)
    terminal.type("sparkloom lint mine.yml").has("1 profile: ")
    terminal.type("sparkloom plan mine.yml").has("fits", "what a Spark has", "predicted")
    terminal.type("sparkloom plan mine.yml --explain").has("from")
    told = json.loads(terminal.type("sparkloom plan mine.yml --json", copied=True).text)
    assert told["fits"] is True and told["speed"]["predicted"]["1"] > 1
    terminal.type("sparkloom render mine.yml -o out").has("wrote out/mine.yaml")
    terminal.type("sparkloom render mine.yml > mine.yaml; cmp mine.yaml out/mine.yaml")
    terminal.type("grep 'kind:' mine.yaml | sort | uniq -c").has("kind: Pod")


def test_what_is_wrong_with_its_files_is_said_by_file(terminal: Terminal) -> None:
    folder = terminal.home / "wren"
    folder.mkdir()
    terminal.type("sparkloom profile new ./wren", 2).has("config.json")
    config = json.loads((RECIPES / "config.json").read_text())
    for broken, words in (("{", "config.json:1:"), ("[]", "config.json"), ("{}", "config.json")):
        (folder / "config.json").write_text(broken)
        terminal.type("sparkloom profile new ./wren", 2).has(words)
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": "many"}))
    terminal.type("sparkloom profile new ./wren", 2).has("num_hidden_layers", "many")
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["NobodyKnowsForCausalLM"]}))
    terminal.type("sparkloom profile new ./wren", None).has("NobodyKnowsForCausalLM")
    terminal.type("sparkloom profile new ./nowhere", 2).has("nowhere")
