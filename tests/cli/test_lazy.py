"""Commands are imported when they are asked for: the list of them, and a hint, need no room of the house."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sparkloom.cli.commands import COMMANDS, MOVED, Command
from tests.places import REPO

# typer itself loads pydantic, once it has words to read
HEAVY = {"rich", "jinja2", "yaml", "ruamel.yaml", "kubernetes", "ansible", "requests", "sparkloom.case"}


def every(commands: tuple[Command, ...] = COMMANDS, above: tuple[str, ...] = ()) -> Iterator[tuple[str, Command]]:
    for command in commands:
        if command.below:
            yield from every(command.below, (*above, command.name))
        else:
            yield " ".join((*above, command.name)), command


def loaded_by(*words: str) -> tuple[set[str], str]:
    """The heavy modules that a call of the program has loaded, and what it printed."""
    code = (
        "import sys\nfrom sparkloom.cli.program import main\n"
        f"sys.argv[:] = {['sparkloom', *words]}\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print('loaded', *sorted({HEAVY} & set(sys.modules)))\n"
        "print('rooms', *sorted(m for m in sys.modules if m.startswith('sparkloom.') and m.count('.') == 1))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    *shown, heavy, rooms = done.stdout.splitlines()
    assert set(rooms.split()[1:]) <= {"sparkloom.base", "sparkloom.cli"} or words[0] in ("bench", "guard", "nccl-log")
    return set(heavy.split()[1:]), "\n".join(shown) + done.stderr


@pytest.mark.parametrize("words", [("--help",), ("evidence", "--help"), ("lnit",), ("--nope",)])
def test_lists_and_hints_load_no_room(words: tuple[str, ...]) -> None:
    heavy, shown = loaded_by(*words)
    assert not heavy and shown.strip()


def test_the_list_names_every_command_with_its_line() -> None:
    _, shown = loaded_by("--help")
    lines = {line.split()[0]: line for line in shown.splitlines() if line.startswith("  ") and line.split()}
    for command in COMMANDS:
        assert command.hidden or command.help[:30] in lines[command.name]
    assert not set(MOVED) & set(lines), "words of before are callable, and not listed"


@pytest.mark.parametrize("words", [("bench", "--help"), ("guard", "--help"), ("nccl-log", "--help")])
def test_what_reads_files_or_a_server_loads_no_profile(words: tuple[str, ...]) -> None:
    assert not loaded_by(*words)[0] - {"rich"}


@pytest.mark.parametrize(("name", "command"), list(every()), ids=[name for name, _ in every()])
def test_every_command_is_where_the_table_says(name: str, command: Command) -> None:
    function = command.load()
    assert inspect.isfunction(function) and command.help.endswith((".", "?"))


def test_a_misspelt_command_gets_a_hint() -> None:
    assert "Did you mean 'lint'" in loaded_by("lnit")[1]


def test_a_plain_command_is_found_behind_two_dashes() -> None:
    assert "--url names the server" in loaded_by("bench")[1]
    done = subprocess.run([sys.executable, "-m", "sparkloom.cli", "--", "bench"], capture_output=True, text=True)
    assert done.returncode == 2 and "--url names the server" in done.stderr


def test_render_loads_nothing_that_only_a_running_pod_needs() -> None:
    words = ["sparkloom", "render", "nvidia--nemotron-3-ultra-550b-a55b-nvfp4", "-i", str(REPO / "inventories/gb10")]
    code = (
        f"import sys\nfrom sparkloom.cli.program import main\nsys.argv[:] = {words}\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('loaded', *sorted({'asyncio', 'http.client', 'sparkloom.judge.diagnose'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert "kind: StatefulSet" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded"
