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
        "> vllm serve m \\\n>   --tp 2\n",  # a reply that quotes
        "vllm serve m `\n  --tp 2\n",  # PowerShell
        "vllm serve m ^\n  --tp 2\n",  # cmd
        "vllm serve m \\ --tp 2",  # lines that were made one
        "vllm&nbsp;serve m &#45;-tp 2",
    ],
)
def test_a_command_is_the_one_that_was_meant(text: str) -> None:
    assert words(text) == ["vllm", "serve", "m", "--tp", "2"]


def test_quotes_of_a_page_quote() -> None:
    assert words("vllm serve “a/b” --x=‘c d’") == ["vllm", "serve", '"a/b"', "--x='c", "d'"]
    assert words("vllm serve m –o 'it’s'") == ["vllm", "serve", "m", "-o", "'it’s'"]
    assert words("vllm serve m —max‑model‑len 8") == ["vllm", "serve", "m", "--max-model-len", "8"]


def test_a_pages_source_and_its_quotes_are_what_was_typed() -> None:
    """Red before: what stood behind the first `&quot;` was lost without a word."""
    json = 'vllm serve m -o \'{"a": "b"}\''
    for text in ("vllm serve m -o &#39;{&quot;a&quot;: &quot;b&quot;}&#39;", "vllm serve m -o ‘{“a”: “b”}’"):
        assert pasted.plain(text, "a") == json
    assert (
        pasted.plain("cd x &amp;&amp; vllm serve m &gt; log 2&gt;&amp;1 &amp;", "a")
        == "cd x && vllm serve m > log 2>&1 &"
    )


def test_a_containers_lost_backslashes_reach_its_image() -> None:
    """Red before: an image at the beginning of its line was a command of its own."""
    lines = ["docker run -d", "-e A=1", "image:1", "vllm serve m", "--tp 2"]
    assert pasted.plain("\n".join(lines), "a") == " \\\n".join(lines)
    apart = "docker run -d \\\n  -e A=1 \\\n  image:1 --model m\ndocker logs -f x"
    assert pasted.plain(apart, "a") == apart
    assert pasted.plain("docker run -d redis\nexport A=1\n", "a") == "docker run -d redis\nexport A=1\n"


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
    for text in ("(" * 200_000, "a@" * 100_000, "“" * 200_000, "—" * 200_000, "\\ \n" * 100_000,
                 "docker run -d\n" + "-p 1:1\n" * 20_000 + "x"):  # fmt: skip
        lex(pasted.plain(text, "a")[:10], 1)
