"""What of Traefik's source is changed before it is compiled with the other Go programs.

Three things differ from upstream's own build. Its module archive lacks a small package that its repository replaces
(`dynamic/ext`, empty types): ours stands in. What speaks to clouds is left out: the list of 180 DNS providers of the
ACME library, as nothing here asks an authority for a certificate, and the provider of ECS, whose SDK is a fifth of all
the source. So is what nothing here configures and the compiler takes longest for: Redis, InfluxDB, and the interpreters
of plugins.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from testbed.base import store
from testbed.base.shell import run
from testbed.make import golang

VERSION = "3.7.8"  # of K3s v1.35.8+k3s1, by its release notes
OWN = golang.SOURCE / "traefik"
ITSELF = golang.Module(
    "github.com/traefik/traefik/v3", f"v{VERSION}", "h1:fgLRGI4WQFjvSaxoscyV4pjBu+rBdtc24NWgyTy4na0="
)
ACME = golang.Module("github.com/go-acme/lego/v5", "v5.2.2", "h1:KqFas/Ak2QDdU+Qm7MO9OEnS35zC000kPmM+5tLdZKk=")
INTERPRETERS = ("middlewareyaegi", "middlewarewasm", "providers", "wasip", "wasip_mock")
# {what is left out of it: the file of ours in its place}
LEFT_OUT = {
    ("pkg/provider/ecs",): "pkg/provider/ecs/ecs.go",
    ("pkg/provider/kv/redis",): "pkg/provider/kv/redis/redis.go",
    tuple(f"pkg/middlewares/ratelimiter/{name}.go" for name in ("redis_limiter", "lua")): (
        "pkg/middlewares/ratelimiter/limiter.go"
    ),
    ("pkg/observability/metrics/influxdb2.go",): "pkg/observability/metrics/influx.go",
    (
        "pkg/observability/logs/wasm.go",
        *(
            f"pkg/plugins/{name}.go"
            for name in ("middlewareyaegi", "middlewarewasm", "providers", "wasip", "wasip_mock")
        ),
    ): "pkg/plugins/none.go",
}
DEFINITIONS = "itself/docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml"


def inputs() -> list[store.Part]:
    return [OWN, Path(__file__)]


def place(go: Path, env: Mapping[str, str], source: Path) -> None:
    """The changed modules beside a go.mod, which then takes them instead of the proxy's."""
    for module, name in ((ACME, "acme"), (ITSELF, "itself")):
        module.copy(go, env, source / name)
        run([go, "mod", "edit", f"-replace={module.path}=./{name}"], env=env, cwd=source)
    _without_providers(source / "acme")
    _without(source / "itself")


def _without_providers(acme: Path) -> None:
    """Less the packages that speak to clouds; what calls them finds ours, which knows none."""
    for folder in (acme / "providers/dns").iterdir():
        if folder.is_dir() and folder.name != "internal":
            shutil.rmtree(folder)
    shutil.copy2(OWN / "dns.go.txt", acme / "providers/dns/zz_gen_dns_providers.go")


def _without(itself: Path) -> None:
    for paths, ours in LEFT_OUT.items():
        for path in paths:
            store.remove_tree(itself / path)
        target = itself / ours
        target.parent.mkdir(exist_ok=True)
        shutil.copy2(OWN / f"{target.stem}.go.txt", target)
