# ruff: noqa: RUF001 - the letters themselves are what is read here
"""Commands as they come out of terminals and web pages."""

from __future__ import annotations

import pytest

from sparkloom.base.errors import InputError
from sparkloom.inputs.importers import pasted
from sparkloom.inputs.importers.lexer import lex


def words(text: str) -> list[str]:
    return " ".join(pasted.plain(text, "a.txt").replace("\\\n", " ").split()).split(" ")


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve m --tp 2",
        "$ vllm serve m --tp 2",
        "user@spark-1:~$ vllm serve m \\\n> --tp 2\n",
        "(venv) [nvidia@spark1 models]$ vllm serve m \\\n>   --tp 2\n",
        "root@spark1:/home/x# vllm serve m \\  \n  --tp 2\n",
        "vllm serve m\n  --tp 2\n",
        "vllm serve m\n--tp 2\n",
        "vllm\u00a0serve m\u200b —tp 2",
        "vllm serve m ––tp 2",
        "vllm serve m ‑‑tp 2",
        "❯ vllm serve m –-tp 2",
    ],
)
def test_a_command_is_the_one_that_was_meant(text: str) -> None:
    assert words(text) == ["vllm", "serve", "m", "--tp", "2"]


def test_quotes_of_a_page_quote() -> None:
    assert words("vllm serve “a/b” --x=‘c d’") == ["vllm", "serve", '"a/b"', "--x='c", "d'"]
    assert words("vllm serve m –o 'it’s'") == ["vllm", "serve", "m", "-o", "'it’s'"]
    assert words("vllm serve m —max‑model‑len 8") == ["vllm", "serve", "m", "--max-model-len", "8"]


def test_options_on_lines_of_their_own_keep_their_lines() -> None:
    text = "docker run --gpus all\n  -e A=1\n  image:1\n  --model m\n\necho done\n"
    assert pasted.plain(text, "a") == "docker run --gpus all \\\n  -e A=1 \\\n  image:1 \\\n  --model m\n\necho done\n"


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/bash\nvllm serve m\n  --tp 2\n",
        "if true; then\n  vllm serve m\n  --tp 2\nfi\n",
        "cat <<EOF\nvllm serve m\n  --tp 2\nEOF\n",
        "vllm serve m &\n  echo x\n",
        "sleep 1\n  vllm serve m\n",
        "# vllm serve m\n",
    ],
)
def test_a_script_stays_as_it_is(text: str) -> None:
    assert pasted.plain(text, "a") == text


def test_an_address_alone_is_no_recipe() -> None:
    with pytest.raises(InputError, match="nothing is fetched"):
        pasted.plain("https://example.invalid/recipe.yaml\n", "a")


def test_long_nonsense_is_read_at_once() -> None:
    for text in ("(" * 200_000, "a@" * 100_000, "“" * 200_000, "—" * 200_000, "\\ \n" * 100_000):
        lex(pasted.plain(text, "a")[:10], 1)
