"""Where a node's Kubernetes comes from: kind's published image when a registry gives it soon, else built here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

from testbed.base import names, store
from testbed.base.shell import RackError, out, run
from testbed.base.steps import Say, Step

# kind's release names one image per Kubernetes version, by digest: change it together with names.KIND
IMAGE_NAME = "kindest/node"
IMAGE = f"{IMAGE_NAME}:v1.35.8@sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0"
WISH = "SPARKLOOM_RACK_NODE"  # `registry` or `own`: no question is asked
FILE = names.CACHE / "node-source.json"
PATIENCE_SECONDS = 5.0
REGISTRY, OWN = "registry", "own"
REPLACED = frozenset({"kubernetes", "etcd", "coredns", "pause"})  # builds that the published image makes needless


@dataclass(frozen=True)
class Choice:
    source: str
    why: str
    image: str = IMAGE  # the choice holds for this image


def choose(wish: str, *, already_built: bool, cgroup: str, ask: Callable[[], str]) -> Choice:
    """`ask` says why the registry does not give the image, or nothing when it does; it is the last resort."""
    if wish in (REGISTRY, OWN):
        return Choice(wish, f"{WISH} says so")
    if wish:
        raise RackError(f"found {WISH}={wish}, expected {REGISTRY}, {OWN}, or no such variable")
    if already_built:
        return Choice(OWN, "Kubernetes is already built here")
    if cgroup != "2":
        return Choice(OWN, f"{IMAGE_NAME} needs cgroup v2, Docker reports v{cgroup or '?'}")
    trouble = ask()
    return Choice(OWN, trouble) if trouble else Choice(REGISTRY, "the registry answers")


def recorded() -> Choice | None:
    """The choice of an earlier run, kept so that a registry that comes and goes does not change the nodes."""
    data = store.read_json(FILE).get("choice", {})
    choice = Choice(*(str(data.get(key, "")) for key in ("source", "why", "image")))
    wish = os.environ.get(WISH, "")
    return choice if choice.image == IMAGE and choice.source and wish in ("", choice.source) else None


def is_registry() -> bool:
    choice = recorded()
    return choice is not None and choice.source == REGISTRY


def replaced() -> frozenset[str]:
    """Names of the builds that are not needed."""
    return REPLACED if is_registry() else frozenset()


def ask_registry() -> str:
    """Why the image cannot be had in a few seconds; nothing when it can."""
    try:
        done = run(["docker", "manifest", "inspect", IMAGE], check=False, timeout=PATIENCE_SECONDS)
    except RackError:
        return f"no registry answered in {PATIENCE_SECONDS:.0f} s"
    if done.returncode == 0:
        return ""
    words = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
    return f"no registry gives {IMAGE_NAME}: {words[-1][:160]}"


def _pull(say: Say) -> str:
    say(f"docker pull {IMAGE.split('@')[0]} (about 400 MiB)")
    done = run(["docker", "pull", "--quiet", IMAGE], check=False, timeout=1800)
    return "" if done.returncode == 0 else f"docker pull ended with: {done.stderr.strip()[-160:]}"


def decide(say: Say, already_built: bool) -> None:
    wish = os.environ.get(WISH, "")
    cgroup = out(["docker", "info", "--format", "{{.CgroupVersion}}"], check=False)
    choice = choose(wish, already_built=already_built, cgroup=cgroup, ask=ask_registry)
    if choice.source == REGISTRY and (trouble := _pull(say)):
        if wish:
            raise RackError(f"{WISH}={wish}, but {trouble}; unset it to let the rack build Kubernetes itself")
        choice = Choice(OWN, trouble)
    store.write_json(FILE, {"choice": asdict(choice)})
    what = f"{IMAGE.split('@')[0]} with additions" if choice.source == REGISTRY else "built here from modules"
    say(f"the nodes' Kubernetes: {what} ({choice.why})")


def steps(already_built: Callable[[], bool]) -> list[Step]:
    def done() -> str:
        choice = recorded()
        return f"{choice.source}: {choice.why}" if choice else ""

    title = f"asks for {IMAGE_NAME}; without an answer in {PATIENCE_SECONDS:.0f} s Kubernetes is built here"
    return [Step("node-source", title, done, lambda say: decide(say, already_built()))]
