"""`python -m tests.security.guided.one NAME SECONDS FOLDER`: one parser under atheris, in a process of its own.

What the product has not declared as its refusal is kept by its place, with its input, and fuzzing goes on. A hang is
counted in this process's own processor time, as the machine is shared; one that no signal ends, and memory, libFuzzer
ends, and whoever started this sees that by the exit status.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

from tests.security.guided.target import SCRATCH

LONGEST, SLOWEST = 64 << 10, 5.0  # bytes of an input, seconds of processor time for it
STUCK, MEMORY = 60, 512  # seconds on the clock, MiB over what the process has when it begins
RESULT = "result.json"
WRITTEN = 5.0  # seconds after which the result is written anew


class Hang(BaseException):
    """Raised into what takes too long: nothing of the product's catches it."""


def _late(number: int, frame: Any) -> NoReturn:
    raise Hang


class Run:
    def __init__(self, name: str, target: Any, seconds: float, folder: Path) -> None:
        self.name, self.target, self.folder = name, target, folder
        self.begun, self.told, self.executions = time.monotonic(), 0.0, 0
        self.until = self.begun + seconds
        self.found: dict[str, dict[str, str]] = {}
        self.slowest = 0.0

    def once(self, data: bytes) -> None:
        self.executions += 1
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SLOWEST)
        try:
            self.target.reads(data)
        except self.target.refusals:
            pass
        except (Exception, Hang) as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._keep(error, data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self.slowest = max(self.slowest, time.process_time() - begun)
        now = time.monotonic()
        if now - self.told > WRITTEN or now > self.until:
            self.told = now
            self.write()
        if now > self.until:
            shutil.rmtree(SCRATCH, ignore_errors=True)
            os._exit(0)

    def _keep(self, error: BaseException, data: bytes) -> None:
        """One of each kind and place: the innermost line of the product's, or of whoever it called with that."""
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/sparkloom/" in frame.filename] or frames
        where = ours[-1].filename.partition("/scripts/")[2] or ours[-1].filename
        place = f"{type(error).__name__} at {where}:{ours[-1].lineno}"
        if place in self.found:
            return
        file = self.folder / "findings" / hashlib.sha256(place.encode()).hexdigest()[:12]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        said = "".join(traceback.format_exception(error))[-3000:]
        file.with_suffix(".txt").write_text(f"{place}\n{said}", errors="replace")
        self.found[place] = {"input": str(file), "said": str(error)[:200]}
        self.write()

    def write(self) -> None:
        told = {
            "executions": self.executions,
            "seconds": round(time.monotonic() - self.begun, 1),
            "slowest": round(self.slowest, 2),
            "findings": self.found,
        }
        (self.folder / RESULT).write_text(json.dumps(told))


def _resident() -> int:
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024


def main(name: str, seconds: str, place: str) -> None:
    atheris = importlib.import_module("atheris")
    atheris.enabled_hooks.add("str")
    hook = atheris.instrument_imports(include=["sparkloom"])
    hook.__enter__()  # for good: modules that are imported late count too
    targets = importlib.import_module("tests.security.guided.targets").TARGETS
    importlib.import_module("tests.security.guided.peers").still(setattr)
    target, folder = targets[name], Path(place)
    corpus, seeds, words = folder / "corpus", folder / "seeds", folder / "words"
    for one in (corpus, seeds):
        one.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (seeds / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed[:LONGEST])
    spelled = ("".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "replace")) for word in target.words)
    words.write_text("".join(f'"{word}"\n' for word in spelled))
    signal.signal(signal.SIGPROF, _late)
    for seed in list(target.seeds())[:20]:  # what is imported by the first call only
        with contextlib.suppress(*target.refusals):
            target.reads(seed)
    run = Run(name, target, float(seconds), folder)
    options = [
        f"-max_len={LONGEST}", f"-timeout={STUCK}", f"-rss_limit_mb={_resident() + MEMORY}", "-use_value_profile=0",
        f"-dict={words}", f"-artifact_prefix={folder}/ended-", "-verbosity=0", str(corpus),
        str(seeds),
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options], run.once)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
