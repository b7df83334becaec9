"""The wheel carries what the package works with: profiles, playbooks, roles, plugins, the inventory to copy.

In a checkout they lie beside the package and nothing is copied; `sparkloom.base.repository` finds either.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
CARRIED = (
    "ansible.cfg", "docs", "image_recipes", "inventories/gb10", "model_profiles", "playbooks", "plugins",
    "pyproject.toml", "requirements.yml", "roles", "site.yml",
)  # fmt: skip


class WithTree(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        tree = Path(self.build_lib) / "sparkloom" / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        for name in CARRIED:
            source, target = HERE / name, tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, target)


setup(cmdclass={"build_py": WithTree})
