"""The Docker Engine: used when it answers, else installed and started; its configuration is put back by `down`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from testbed.base import machine, names
from testbed.base.shell import RackError, ok, out, run
from testbed.base.steps import Say, Step

CONFIG = Path("/etc/docker/daemon.json")
SAVED = Path("/etc/docker/daemon.json.before-sparkloom")
WRAPPER = Path("/usr/local/lib/sparkloom-testbed/runc-wrapper")
RUNTIME = "sparkloom-runc"
LOG = Path("/var/log/sparkloom-dockerd.log")
NOTHING = ""  # content of SAVED when there was no daemon.json


def answers() -> bool:
    return shutil.which("docker") is not None and ok(["docker", "info"], timeout=15)


def _ready() -> bool:
    return answers() and (not machine.lacks_sys_resource() or _wrapped())


def _wrapped() -> bool:
    same = WRAPPER.exists() and WRAPPER.read_bytes() == (names.KIND_DIR / "runc-wrapper").read_bytes()
    return same and out(["docker", "info", "--format", "{{.DefaultRuntime}}"], check=False) == RUNTIME


def _provide(say: Say) -> None:
    machine.require_root()
    if not answers():
        if not shutil.which("dockerd"):
            machine.apt_install(["docker.io", "iptables"], say)
            if not shutil.which("docker"):  # newer releases keep the client apart
                machine.apt_install(["docker-cli"], say)
        _start(say)
    if machine.lacks_sys_resource() and not _wrapped():
        say(f"this machine lacks CAP_SYS_RESOURCE: default runtime becomes {RUNTIME} ({CONFIG}; `down` puts it back)")
        _install_wrapper()


def _start(say: Say) -> None:
    if Path("/run/systemd/system").is_dir():
        say("starting Docker by systemd")
        run(["systemctl", "start", "docker"])
    else:
        say(f"starting dockerd in the background (log: {LOG})")
        with LOG.open("ab") as log:
            # a session of its own: it outlives this command and the shell it was typed in
            subprocess.Popen(["dockerd"], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    _wait(answers, 60, f"Docker was started but does not answer after 60 s; see {LOG} or `journalctl -u docker`")


def _install_wrapper() -> None:
    WRAPPER.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(names.KIND_DIR / "runc-wrapper", WRAPPER)
    before = CONFIG.read_text() if CONFIG.exists() else NOTHING
    if not SAVED.exists():
        SAVED.parent.mkdir(parents=True, exist_ok=True)
        SAVED.write_text(before)
    _write_config(merged(before))
    _reload()
    _wait(
        _wrapped,
        20,
        f"dockerd did not take the runtime {RUNTIME} from {CONFIG}; restart it by hand, then run this again",
    )


def merged(before: str) -> str:
    """A daemon.json with our runtime as the default and everything else as it was."""
    try:
        config = json.loads(before or "{}")
    except ValueError as error:
        raise RackError(f"{CONFIG} is not valid JSON ({error}): mend it, then run this again") from None
    config.setdefault("runtimes", {})[RUNTIME] = {"path": str(WRAPPER)}
    config["default-runtime"] = RUNTIME
    return json.dumps(config, indent=2) + "\n"


def others_left() -> bool:
    """Whether containers remain that our runtime may have started."""
    return bool(out(["docker", "ps", "-aq"], check=False)) if answers() else False


def put_back() -> bool:
    """Undo `_install_wrapper`; tells whether there was something to undo."""
    if not SAVED.exists():
        return False
    before = SAVED.read_text()
    config = json.loads(before or "{}")
    # dockerd keeps a default runtime that a reload no longer names: name it once, then restore the file
    config.setdefault("default-runtime", "runc")
    _write_config(json.dumps(config))
    if answers():
        _reload()
        time.sleep(1)
    if before == NOTHING:
        CONFIG.unlink(missing_ok=True)
    else:
        _write_config(before)
    SAVED.unlink()
    shutil.rmtree(WRAPPER.parent, ignore_errors=True)
    return True


def _write_config(text: str) -> None:
    aside = CONFIG.with_name(".daemon.json.new")
    aside.write_text(text)
    aside.replace(CONFIG)


def _reload() -> None:
    pid_file = Path("/run/docker.pid")
    if not pid_file.exists():
        raise RackError(
            f"expected dockerd's process id in {pid_file} to reload it: restart Docker by hand, then run this again"
        )
    os.kill(int(pid_file.read_text()), signal.SIGHUP)


def _wait(condition: object, seconds: float, complaint: str) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if callable(condition) and condition():
            return
        time.sleep(0.5)
    raise RackError(complaint)


def image_id(reference: str) -> str:
    return out(["docker", "image", "inspect", "--format", "{{.Id}}", reference], check=False)


def containers() -> dict[str, str]:
    """The rack's containers and their state (running, exited, …)."""
    label = f"label=io.x-k8s.kind.cluster={names.CLUSTER}"
    text = out(["docker", "ps", "-a", "--filter", label, "--format", "{{.Names}}\t{{.State}}"], check=False)
    return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)


def pid_of(container: str) -> int:
    return int(out(["docker", "inspect", "--format", "{{.State.Pid}}", container]))


def steps() -> list[Step]:
    title = "finds the Docker Engine, or installs docker.io with apt-get and starts it"
    return [Step("docker", title, _ready, _provide, warm=lambda: shutil.which("dockerd") is not None)]
