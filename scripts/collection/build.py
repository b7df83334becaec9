"""The Ansible collection sparkloom.sparks out of this checkout: roles, playbooks, action plugins, callbacks.

`.venv/bin/python scripts/collection/build.py [FOLDER]` writes FOLDER/sparkloom-sparks-VERSION.tar.gz (default:
build/collection). Who installs it needs the package `sparkloom` of the same version beside ansible-core.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sparkloom.onnode import tasks as on_a_node
from sparkloom.site import executor
from sparkloom.site import tasks as here

REPO = Path(__file__).resolve().parents[2]
README = Path(__file__).with_name("README.md")
CARRIED = ("roles", "playbooks", "plugins/action", "plugins/callback", "LICENSE", "CHANGELOG.md")


def main(folder: Path) -> Path:
    """The file that `ansible-galaxy collection install` takes."""
    with tempfile.TemporaryDirectory() as made:
        gather(Path(made))
        program = [str(Path(sys.executable).with_name("ansible-galaxy")), "collection", "build", made]
        subprocess.run([*program, "--force", "--output-path", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return folder / f"sparkloom-sparks-{project()['version']}.tar.gz"


def project() -> dict[str, Any]:
    return dict(tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def gather(target: Path) -> None:
    """The collection as a folder."""
    for name in CARRIED:
        source = REPO / name
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target / name)
    shutil.copy2(README, target)
    site = (REPO / "site.yml").read_text(encoding="utf-8")
    (target / "playbooks/site.yml").write_text(site.replace("import_playbook: playbooks/", "import_playbook: "))
    _written(target / "galaxy.yml", galaxy())
    _written(target / "meta/runtime.yml", {"requires_ansible": ">=2.19.0,<2.20.0"})
    (target / "plugins/modules").mkdir()
    for file in sorted((REPO / "plugins/action").glob("*.py")):
        (target / "plugins/modules" / file.name).write_text(module(file), encoding="utf-8")


def galaxy() -> dict[str, Any]:
    ours = project()
    needed = yaml.safe_load((REPO / "requirements.yml").read_text(encoding="utf-8"))["collections"]
    return {
        "namespace": "sparkloom",
        "name": "sparks",
        "version": ours["version"],
        "readme": "README.md",
        "authors": ["The authors of Sparkloom"],
        "description": ours["description"],
        "license": [ours["license"]],
        "tags": ["infrastructure", "kubernetes", "nvidia", "networking"],
        "dependencies": {one["name"]: one["version"] for one in needed if one["name"] == "kubernetes.core"},
    }


def module(file: Path) -> str:
    """What ansible-doc reads; the action plugin of the same name does the work."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    texts = {node.targets[0].id: node.value.value for node in tree.body  # type: ignore[attr-defined]
             if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)}  # fmt: skip
    told = yaml.safe_load(texts["DOCUMENTATION"])
    functions = dict(of_nodes() if file.stem == "sparkloom_node" else of_this_machine())
    example = next(name for name in functions if name in ("files", "fabric.plan"))
    told |= {"author": ["The authors of Sparkloom"], "notes": [f"{name}{text}" for name, text in functions.items()]}
    task = [{"name": "Have it done", f"sparkloom.sparks.{file.stem}": {"do": example}}]
    return (
        f'DOCUMENTATION = r"""\n{yaml.safe_dump(told, sort_keys=False)}"""\n\n'
        f'EXAMPLES = r"""\n{yaml.safe_dump(task, sort_keys=False)}"""\n\n'
        'RETURN = r"""\nmsg: {type: str, returned: sometimes, description: What was found, or what to change.}\n"""\n'
    )


def of_this_machine() -> Iterator[tuple[str, str]]:
    """Each `do` of sparkloom.site.tasks."""
    for found in pkgutil.iter_modules(here.__path__):
        family = importlib.import_module(f"{here.__name__}.{found.name}")
        for name, function in inspect.getmembers(family, inspect.isfunction):
            first = next(iter(inspect.signature(function).parameters.values()), None)
            ours = function.__module__ == family.__name__ and not name.startswith("_")
            if ours and first and str(first.annotation).endswith("Context"):
                yield f"{found.name}.{name}", told(function)


def of_nodes() -> Iterator[tuple[str, str]]:
    """Each `do` of sparkloom.onnode.tasks."""
    for found in pkgutil.iter_modules(on_a_node.__path__):
        function = getattr(importlib.import_module(f"{on_a_node.__name__}.{found.name}"), "main", None)
        if found.name != "main" and function:
            yield found.name, told(function, sys.modules[function.__module__].__doc__ or "")


def told(function: Any, about: str = "") -> str:
    """Its parameters as Ansible's argument specification has them, and its first sentence."""
    words = [
        f"{name} ({option['type']}{', required' if option.get('required') else ''})"
        for name, option in executor.specification(function).items()
    ]
    sentence = (function.__doc__ or about).strip().split("\n")[0]
    return f": {sentence}" + (f" Takes {', '.join(words)}." if words else "")


def _written(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if sys.argv[1:] else REPO / "build/collection")))
