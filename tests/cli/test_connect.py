"""`sparkloom connect`: lines to paste with a site's own values in them, never a key, and what is said instead."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sparkloom.render import clients
from sparkloom.site import endpoint
from tests.cli.window import piped, seen
from tests.places import REPO
from tests.site.test_endpoint import KEY, Balanced, Front, served

LISTED = [
    {"id": "glm-5", "root": "glm", "state": "up", "max_model_len": 8192},
    {"id": "asleep", "state": "sleeps", "max_model_len": 4096},
    {"id": "glm", "state": "up", "max_model_len": 8192},
]


def say(self: Front, status: int, body: dict[str, object]) -> None:
    Front._say(self, status, {"data": LISTED} if status == 200 else {"error": {"message": "no such key"}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A site whose endpoint nobody serves yet."""
    where = tmp_path / "kind"
    shutil.copytree(REPO / "inventories/kind", where)
    laptop = where / "group_vars/all/laptop.yml"
    laptop.write_text(laptop.read_text().replace(".build/rack/gateway", str(tmp_path / "gateway")))
    return where


@pytest.fixture
def site(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(endpoint.client, "of", lambda _: Balanced(["127.0.0.1"]))
    with served(tmp_path / "gateway", ["127.0.0.1"], _say=say) as place:
        laptop = folder / "group_vars/all/laptop.yml"
        laptop.write_text(f"{laptop.read_text()}gateway_port: {place.port}\n")
        key = tmp_path / "gateway/api-key"
        key.write_text(KEY)
        key.chmod(0o600)
        yield folder


def told(site: Path, client: str, *words: str) -> dict[str, str]:
    done = piped("connect", client, "-i", str(site), "--json", *words)
    assert done.code == 0, done.errors
    data: dict[str, str] = json.loads(done.text)
    return data


def test_without_a_client_it_lists_them_and_asks_for_no_site() -> None:
    done = seen(80, "connect")
    assert done.code == 0 and len(done.widest) <= 80
    assert {line.split()[0] for line in done.lines[: len(clients.every())]} == set(clients.every())


@pytest.mark.parametrize("client", clients.every())
def test_every_line_has_the_site_s_values_and_never_the_key(site: Path, client: str) -> None:
    done = piped("connect", client, "-i", str(site))
    assert done.code == 0 and "@" not in done.text.replace("@ai-sdk", "") and KEY not in done.text
    data = told(site, client)
    lines = "\n".join((data["shell"], data["text"], data["run"]))
    assert f"$(cat {data['key_file']})" in lines and data["ca"] in lines and "https://127.0.0.1:" in lines
    assert data["model"] == "glm", "of those that are up the one that is no alias"


def test_files_are_what_their_programs_read(site: Path) -> None:
    codex = tomllib.loads(told(site, "codex")["text"])
    assert codex["model_context_window"] == 8192 and codex["model_providers"][codex["model_provider"]]["base_url"]
    limit = json.loads(told(site, "opencode")["text"])["provider"]["sparkloom"]["models"]["glm"]["limit"]
    assert limit == {"context": 8192, "output": 512}
    (entry,) = yaml.safe_load(told(site, "llm", "--model", "glm-5")["text"])
    assert entry["model_name"] == "glm-5" and entry["api_base"].endswith("/v1")


def test_an_agent_is_told_beforehand_that_its_own_words_are_too_many(site: Path) -> None:
    (note,) = told(site, "codex", "--model", "asleep")["notes"]
    assert "asleep takes 4,096" in note and told(site, "curl", "--model", "asleep")["notes"] == []


def test_a_model_that_is_not_served_is_refused_with_those_that_are(site: Path) -> None:
    done = piped("connect", "curl", "-i", str(site), "--model", "nobody")
    assert done.code == 2 and "glm-5, asleep, glm" in done.errors


def test_a_wrong_key_is_said_with_the_lines(site: Path, tmp_path: Path) -> None:
    (tmp_path / "gateway/api-key").write_text("sk-another-key-0123456789")
    done = piped("connect", "codex", "-i", str(site))
    assert done.code == 1 and "it answered 401" in done.text and 'model = "MODEL"' in done.text


def test_a_site_that_does_not_answer_is_said_with_the_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint.client, "of", lambda _: Balanced(["127.0.0.1"]))
    laptop = folder / "group_vars/all/laptop.yml"
    laptop.write_text(f"{laptop.read_text()}gateway_port: 9\n")
    done = piped("connect", "openai", "-i", str(folder))
    assert done.code == 1 and "Connection refused" in done.text and "PATH-OF-YOUR-KEY" in done.text
    assert "SSL_CERT_FILE" not in done.text, "there is no authority of ours yet"


@pytest.mark.parametrize("words", [("connect", "codexx"), ("connect", "codex")])
def test_what_is_not_known_is_refused(words: tuple[str, ...]) -> None:
    """Nobody's site is the shipped example: it is not asked."""
    done = piped(*words)
    assert done.code == 2 and ("did you mean 'codex'" in done.errors or "-i names its inventory" in done.errors)
