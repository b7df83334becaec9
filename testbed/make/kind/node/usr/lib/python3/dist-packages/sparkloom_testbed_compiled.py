"""Keeps the compiled code of what Python imports from an archive, as it does for what it imports from a folder.

Ansible sends each module as an archive, and the node compiles sixty files of it anew every time: a third of what four
nodes on one small machine do in a playbook. Nothing else of a module's run differs.
"""

# ruff: noqa: PTH103, PTH105, PTH123
# (pathlib costs more to import than this saves)
import hashlib
import marshal
import os
import zipimport

FOLDER = f"/dev/shm/sparkloom-testbed-compiled-{os.getuid()}"  # nobody runs what another user compiled
_compile_source = zipimport._compile_source


def _kept(pathname, source):
    path = f"{FOLDER}/{hashlib.blake2b(source, digest_size=16).hexdigest()}"
    try:
        with open(path, "rb") as file:
            return marshal.load(file)
    except (OSError, ValueError, EOFError, TypeError):
        pass
    code = _compile_source(pathname, source)
    try:
        os.makedirs(FOLDER, mode=0o700, exist_ok=True)
        with open(f"{path}.{os.getpid()}", "wb") as file:
            marshal.dump(code, file)
        os.replace(file.name, path)
    except OSError:
        pass  # no room: compiled as ever
    return code


zipimport._compile_source = _kept
