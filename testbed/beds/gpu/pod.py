"""A rendered rank as a kubelet runs it: command, environment, mounts and rights are the object's, none is ours."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from testbed.beds.gpu import place
from testbed.beds.gpu.container import Container

KEY, FILES, CACHES = "k" * 40, Path("/run/sparkloom-files"), Path("/run/sparkloom-cache")
SECRETS = {"engine.yaml": f"api-key: {KEY}\n", "key": KEY, "keys": "c" * 40 + "\n", "secret": "s" * 64}
API, PROBES = 30000, 20101
BENCH = "import sys; from sparkloom.measure.bench.command import bench; sys.exit(bench(sys.argv[1:]))"


def rendered(profile: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all((place.RENDERED / f"{profile}.yaml").read_text()) if one]


class Pod:
    """`plan`: what a test changes of the group's plan; `env`: what the machine's network or a test's fault wants."""

    def __init__(
        self, profile: str, rank: int, tag: str, *, plan: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None, gpu: str | None = None, words: Callable[[list[str]], list[str]] = list,
        extra: tuple[tuple[Path, str, bool], ...] = (),
    ) -> None:  # fmt: skip
        self.rank, self.name = rank, f"{tag}{rank}"
        self.address = f"10.99.{rank}.10"
        self.objects = rendered(profile)
        template = [one for one in self.objects if one["kind"] == "StatefulSet"][rank]["spec"]["template"]
        self.meta, self.spec = template["metadata"], template["spec"]
        assert self.spec["runtimeClassName"] == "nvidia"
        told = self.spec["containers"][0]
        self.files = FILES / self.name
        shutil.rmtree(self.files, ignore_errors=True)
        self.run = self.files / "tmp"
        self.run.mkdir(parents=True)
        (self.files / "words").touch()
        binds = [self._mounted(mount, plan or {}) for mount in told["volumeMounts"] if mount["mountPath"] != "/dev/shm"]
        binds += [(self.run, "/tmp", False), (self.files / "words", "/dev/termination-log", False), *extra]
        variables = {one["name"]: self._value(one) for one in told["env"]}
        self.container = Container(
            self.name, words([*told["command"], *told["args"]]),
            {**variables, "PYTHONPATH": str(place.SITE), **place.QUIET, **(env or {})},
            gpu=str(rank) if gpu is None else gpu, security=told["securityContext"], binds=binds,
            netns=f"/var/run/netns/rank{rank}", hostname=f"{profile[:30]}-rank{rank}-0", shm="10g",
        )  # fmt: skip
        self.container.log.unlink(missing_ok=True)
        self.begun = time.monotonic()
        self.container.start()

    def _value(self, variable: Mapping[str, Any]) -> str:
        if "value" in variable:
            return str(variable["value"])
        path = variable["valueFrom"]["fieldRef"]["fieldPath"]
        if match := re.fullmatch(r"metadata\.annotations\['(.+)'\]", path):
            return str(self.meta["annotations"][match[1]])
        return {"status.podIP": self.address}[path]

    def _mounted(self, mount: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[Path, str, bool]:
        volume = next(one for one in self.spec["volumes"] if one["name"] == mount["name"])
        read = bool(mount.get("readOnly"))
        if "hostPath" in volume:
            source = Path(volume["hostPath"]["path"])
            if source != place.MODELS:  # one for all profiles of a model: what one start compiled the next one has
                source = CACHES / f"{self.rank}" / f"{source.name.split('--')[0]}{source.suffix}"
            source.mkdir(parents=True, exist_ok=True)
            return source, mount["mountPath"], read
        folder = self.files / mount["name"]
        folder.mkdir(exist_ok=True)
        if "configMap" in volume:
            self._fill(folder, volume["configMap"]["name"], plan)
        else:
            for name, text in SECRETS.items():
                (folder / name).write_text(text)
        return folder / mount.get("subPath", ""), mount["mountPath"], read

    def _fill(self, folder: Path, name: str, plan: Mapping[str, Any]) -> None:
        (one,) = [one for one in self.objects if one["kind"] == "ConfigMap" and one["metadata"]["name"] == name]
        for key, text in (one.get("data") or {}).items():
            changed = json.dumps({**json.loads(text), **plan}) if key == "plan.json" and plan else text
            (folder / key).write_text(changed)
        for key, text in (one.get("binaryData") or {}).items():
            (folder / key).write_bytes(base64.b64decode(text))

    @property
    def status(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.run / "sparkloom/status.json").read_text()))
        except (OSError, ValueError):
            return {}

    @property
    def said(self) -> str:
        return self.container.said()

    @property
    def lines(self) -> str:
        """The supervisor's own."""
        return "\n".join(line[:300] for line in self.said.splitlines() if "[sparkloom" in line)

    def until(self, what: Callable[[], Any], seconds: float) -> float:
        """Seconds until it was so."""
        begun = time.monotonic()
        while not what():
            late = time.monotonic() - begun > min(seconds, place.left())
            assert not late and self.container.process.poll() is None, f"{self.name}: {self.status}\n{self.end()}"
            time.sleep(0.2)
        return time.monotonic() - begun

    def end(self) -> str:
        return "\n".join(line[:300] for line in self.said.splitlines()[-60:])

    def serves(self, epoch: int = 1) -> bool:
        return bool(self.status.get("serving")) and self.status.get("epoch", 0) >= epoch

    def ask(
        self, path: str, port: int = API, body: Mapping[str, Any] | None = None, timeout: float = 60
    ) -> tuple[int, str]:
        data = json.dumps(body).encode() if body else None
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.address}:{port}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def bench(self, *words: str) -> list[dict[str, Any]]:
        """What `sparkloom bench` says of each level."""
        folder, key = place.OUT / f"bench-{self.name}", place.OUT / "key"
        key.write_text(KEY)
        shutil.rmtree(folder, ignore_errors=True)
        asked = ["--url", f"http://{self.address}:{API}", "--api-key-file", str(key), "-o", str(folder), *words]
        paths = {"PYTHONPATH": f"{place.PRODUCT / 'scripts'}:{place.SITE}"}
        code, said = place.done([sys.executable, "-c", BENCH, *asked], 150, **paths)
        assert code in (0, 1), said
        (file,) = folder.rglob("*.json")
        told = ("concurrency", "sum_tok_s", "decode_tok_s", "guard")
        return [{name: level[name] for name in told} for level in json.loads(file.read_text())["levels"]]

    def schedulers(self) -> list[int]:
        """Their pids on this machine."""
        said = place.done("ps -eo pid,args | grep -E 'sglang::scheduler' | grep -v grep")[1]
        return [int(line.split()[0]) for line in said.splitlines()]

    def stop(self) -> float:
        return self.container.stop()
