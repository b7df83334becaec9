"""A site on loopback: an API server that does with StatefulSets as Kubernetes does, ranks 0, a router's figures.

Each group's Service is an address of 127/8 of its own, so that all have the ports that they have in a cluster.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import random
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from sparkloom.onnode.now.labels import ENGINES, PART_OF, PROFILE, ROUTER
from sparkloom.render import certificates, pack
from tests.until import until

NAMESPACE = "site"
ENGINE, SUPERVISOR, FIGURES = 8000, 20101, 9090
CHAT = "/v1/chat/completions"


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def give(self, status: int, body: bytes | dict[str, Any], **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    @property
    def content(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))


class Listening:
    """A server that can be there, or not."""

    def __init__(self, address: str, port: int, handler: type[Quiet], owner: Any) -> None:
        self.place, self.handler, self.owner = (address, port), handler, owner
        self.server: http.server.ThreadingHTTPServer | None = None

    def open(self) -> None:
        if self.server is None:
            kind = type("Server", (http.server.ThreadingHTTPServer,), {"request_queue_size": 256})
            self.server = kind(self.place, self.handler)
            self.server.daemon_threads = True
            self.server.owner = self.owner  # type: ignore[attr-defined]
            threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        server, self.server = self.server, None
        if server is not None:
            server.shutdown()
            server.server_close()


class Model:
    """A group: its StatefulSets, and what its rank 0 does once its pod is there."""

    def __init__(self, name: str, address: str, ranks: int, load: float) -> None:
        self.name, self.address, self.load = name, address, load
        self.sets = [f"{name}-rank{number}" for number in range(ranks)]
        self.supervisor = Listening(address, SUPERVISOR, Supervisor, self)
        self.engine = Listening(address, ENGINE, Engine, self)
        self.ready = False
        self.status: dict[str, Any] = {"phase": "engine", "text": "loads"}
        self.open = 0  # requests that its engine has
        self.clients = 0  # connections that the supervisor tells of beside those
        self.asked: list[tuple[dict[str, str], bytes]] = []
        self.left = 0  # clients that went away in an answer
        self.tokens, self.pause = 3, 0.02
        self.answer: tuple[int, bytes] | None = None  # in place of a stream
        self.dies_after = -1  # tokens
        self.drain = 0.2
        self.born = 0

    def described(self, **more: Any) -> dict[str, Any]:
        return {
            "name": self.name, "label": self.name, "model": self.name, "address": self.address,
            "sets": self.sets, "idle_seconds": 3600, "turn": "", "load_seconds": 490,
            "limit_seconds": 60, **more,
        }  # fmt: skip

    def start(self) -> None:
        born = self.born
        self.supervisor.open()

        def loads() -> None:
            time.sleep(self.load)
            if self.born == born and self.status["phase"] == "engine":
                self.ready = True
                self.engine.open()

        threading.Thread(target=loads, daemon=True).start()

    def stop(self) -> None:
        self.born += 1
        self.ready = False
        time.sleep(self.drain)
        self.engine.close()
        self.supervisor.close()


class Supervisor(Quiet):
    def do_GET(self) -> None:
        model: Model = self.server.owner  # type: ignore[attr-defined]
        if self.path == "/ready":
            return self.give(200 if model.ready else 503, b"rank 0 says\n")
        if self.path == "/status":
            return self.give(200, model.status)
        own = f'group="{model.name}",rank="0",node="spark1"'
        return self.give(200, f"sparkloom_rank_connections{{{own}}} {model.open + model.clients}\n".encode())


class Engine(Quiet):
    def do_POST(self) -> None:
        model: Model = self.server.owner  # type: ignore[attr-defined]
        self.close_connection = True
        body = self.content
        model.asked.append(({name.lower(): value for name, value in self.headers.items()}, body))
        if model.answer:
            return self.give(*model.answer, content_type="application/json")
        model.open += 1
        try:
            self._stream(model)
        except OSError:
            model.left += 1
        finally:
            model.open -= 1

    def _stream(self, model: Model) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(model.tokens):
            if number == model.dies_after:
                return
            self._chunk(b'data: {"token": %d}\n\n' % number)
            time.sleep(model.pause)
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))


class Figures(Quiet):
    """The router's, as Envoy writes them."""

    def do_GET(self) -> None:
        router: Router = self.server.owner  # type: ignore[attr-defined]
        lines = []
        for name, (total, active) in router.counts.items():
            own = f'{{envoy_cluster_name="{name}"}}'
            lines += [
                f"envoy_cluster_upstream_rq_total{own} {total}",
                f"envoy_cluster_upstream_rq_active{own} {active}",
                f"envoy_cluster_upstream_rq_pending_active{own} 0",
                f"envoy_cluster_membership_healthy{own} {int(name not in router.away)}",
            ]
        self.give(200, ("\n".join(lines) + "\n").encode())


class Router:
    def __init__(self, name: str, address: str) -> None:
        self.name, self.address = name, address
        self.counts: dict[str, tuple[int, int]] = {}
        self.away: set[str] = set()  # groups that its health checks do not find
        self.listening = Listening(address, FIGURES, Figures, self)
        self.listening.open()


class Cluster:
    """What the API server knows; pods come and go a little after a StatefulSet says so."""

    def __init__(self, models: Sequence[Model], routers: list[Router]) -> None:
        self.models, self.routers = {model.name: model for model in models}, routers
        self.replicas = {name: 0 for model in models for name in model.sets}
        self.stops: dict[str, str] = {}  # by whom and when each group was
        self.pods: set[str] = set()
        self.lease: dict[str, Any] = {"metadata": {"name": "waker", "resourceVersion": "1"}}
        self.changes: list[tuple[str, int]] = []
        self.away = False
        self.tokens: list[str] = []
        self.lock = threading.Lock()

    def scale(self, name: str, replicas: int) -> None:
        with self.lock:
            self.changes.append((name, replicas))
            was, self.replicas[name] = self.replicas[name], replicas
        if was != replicas:
            threading.Thread(target=self._follow, args=(name, replicas), daemon=True).start()

    def _follow(self, name: str, replicas: int) -> None:
        model = next(one for one in self.models.values() if name in one.sets)
        head = name == model.sets[0]
        if replicas:
            time.sleep(0.1)
            self.pods.add(f"{name}-0")
            if head:
                model.start()
        else:
            if head:
                model.stop()
            else:
                time.sleep(model.drain)
            self.pods.discard(f"{name}-0")

    def up(self, name: str) -> int:
        return sum(self.replicas[one] for one in self.models[name].sets)

    def gone(self, name: str) -> bool:
        return not any(f"{one}-0" in self.pods for one in self.models[name].sets)

    def listed(self, kind: str) -> dict[str, Any]:
        if kind == "statefulsets":
            groups = {name: model.name for model in self.models.values() for name in model.sets}
            return {"items": [{"metadata": {"name": name, "labels": {PROFILE: groups[name]}}, "spec": {"replicas": n}}
                              for name, n in self.replicas.items()]}  # fmt: skip
        if kind == "configmaps":
            return {"items": [{"metadata": {"name": "stopped"}, "data": self.stops}]}
        ranks = [
            {"metadata": {"name": f"{name}-0", "uid": f"{name}-0", "labels": {**ENGINES, PROFILE: model.name}},
             "status": {"phase": "Running", "podIP": model.address}}
            for model in self.models.values() for name in model.sets if f"{name}-0" in self.pods
        ]  # fmt: skip
        routers = [
            {"metadata": {"name": one.name, "uid": one.name, "labels": dict(ROUTER)},
             "status": {"phase": "Running", "podIP": one.address}}
            for one in self.routers
        ]  # fmt: skip
        return {"items": [*ranks, *routers]}


class Api(Quiet):
    def _cluster(self) -> Cluster | None:
        cluster: Cluster = self.server.owner  # type: ignore[attr-defined]
        cluster.tokens.append(self.headers["Authorization"] or "")
        if cluster.away:
            self.content  # noqa: B018 - read
            self.give(503, {"message": "away"})
            return None
        return cluster

    def do_GET(self) -> None:
        if cluster := self._cluster():
            kind = self.path.partition("?")[0].rpartition("/")[2]
            label = "labelSelector=" + "%2C".join(
                f"{key}%3D{value}".replace("/", "%2F") for key, value in PART_OF.items()
            )
            if "/leases/" in self.path:
                return self.give(200, cluster.lease)
            assert label in self.path or "=metadata.name%3Dstopped" in self.path, self.path
            self.give(200, cluster.listed(kind))

    def do_PATCH(self) -> None:
        if cluster := self._cluster():
            assert self.headers["Content-Type"] == "application/merge-patch+json"
            replicas = json.loads(self.content)["spec"]["replicas"]
            name = self.path.split("/")[-2]
            assert self.path == f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{name}/scale"
            cluster.scale(name, replicas)
            self.give(200, {})

    def do_PUT(self) -> None:
        if cluster := self._cluster():
            told = json.loads(self.content)
            with cluster.lock:
                version = cluster.lease["metadata"]["resourceVersion"]
                if told["metadata"]["resourceVersion"] != version:
                    return self.give(409, {"reason": "Conflict"})
                told["metadata"]["resourceVersion"] = str(int(version) + 1)
                cluster.lease = told
            self.give(200, cluster.lease)


class Site:
    """All of it, with wakers as their pods start them."""

    def __init__(self, folder: Path, models: Sequence[str], ranks: int = 2, load: float = 1.0) -> None:
        self.folder = folder
        self.net = f"127.{random.randint(2, 250)}.{random.randint(0, 250)}"
        self.models = {
            name: Model(name, f"{self.net}.{number + 10}", ranks, load) for number, name in enumerate(models)
        }
        self.routers = [Router("router-1", f"{self.net}.200")]
        for name in models:
            self.routers[0].counts[name] = (0, 0)
        self.cluster = Cluster(list(self.models.values()), self.routers)
        self.file = folder / "groups.json"
        self.wakers: list[Waker] = []
        self.figures = FIGURES
        self._api(folder)

    def _api(self, folder: Path) -> None:
        """With an authority of its own and a token, as a kubelet gives them."""
        pair = certificates.own(folder / "authority", "site", ["127.0.0.1"])
        chain = folder / "chain.pem"
        chain.write_text(pair.certificate + pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        self.api.daemon_threads = True
        self.api.owner = self.cluster  # type: ignore[attr-defined]
        self.api.socket = context.wrap_socket(self.api.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.api.serve_forever, args=(0.02,), daemon=True).start()
        self.given = folder / "given"
        self.given.mkdir()
        (self.given / "ca.crt").write_text(Path(pair.trust).read_text())
        (self.given / "token").write_text("first")

    def tell(self, **more: dict[str, Any]) -> None:
        """groups.json, swapped as a whole."""
        new = self.file.with_suffix(".new")
        listed = [model.described(**more.get(model.name, {})) for model in self.models.values()]
        new.write_text(json.dumps({"groups": listed}))
        new.replace(self.file)

    def waker(self, port: int = 0) -> Waker:
        self.wakers.append(Waker(self, port))
        return self.wakers[-1]

    def close(self) -> None:
        for one in self.wakers:
            one.process.kill()
            one.process.wait()
        for model in self.models.values():
            model.supervisor.close()
            model.engine.close()
        for router in self.routers:
            router.listening.close()
        self.api.shutdown()
        self.api.server_close()


class Told(NamedTuple):
    """What the router hears: that the group is awake, or what it passes on to its client."""

    status: int
    awake: bool
    code: str
    words: str
    again: str | None

    @classmethod
    def of(cls, connection: HTTPConnection) -> Told:
        answer = connection.getresponse()
        error = json.loads(answer.read())["error"]
        headers = answer.headers
        awake = headers["x-sparkloom-awake"] == "true"
        return cls(answer.status, awake, error["code"], error["message"], headers["retry-after"])


class Waker:
    def __init__(self, site: Site, port: int = 0) -> None:
        self.port = port or _free()
        program = pack.program("waker").keep(site.folder)
        environment = {
            **os.environ, "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(site.api.server_address[1]), "HOSTNAME": "waker-0",
        }  # fmt: skip
        words = ["--groups", str(site.file), "--namespace", NAMESPACE, "--address", "127.0.0.1"]
        words += ["--probes", str(SUPERVISOR), "--figures", str(site.figures)]
        start = f"import runpy, sys\nsys.path.insert(0, {str(program)!r})\nfrom pathlib import Path\n"
        start += "from sparkloom.onnode import kube\n"
        start += f"kube.InCluster.__init__.__defaults__ = (Path({str(site.given)!r}),)\n"
        start += "from sparkloom.onnode.waker.main import main\nsys.exit(main(sys.argv[1:]))\n"
        self.log = (site.folder / f"waker-{self.port}.log").open("w+")
        command = [sys.executable, "-I", "-B", "-c", start, *words, "--port", str(self.port)]
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=subprocess.STDOUT)
        until(lambda: self.get("/ready")[0] == 200, 20)

    def said(self) -> str:
        return Path(self.log.name).read_text()

    def get(self, path: str) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def series(self, name: str) -> float:
        lines = (line.rpartition(" ") for line in self.get("/metrics")[1].splitlines())
        return next((float(value) for series, _, value in lines if series == name), float("nan"))

    def state(self, name: str) -> str:
        mine = re.compile(rf'^sparkloom_waker_state{{group="[^"]+",model="{re.escape(name)}",state="(\w+)"}} 1$', re.M)
        return next(iter(mine.findall(self.get("/metrics")[1])), "")

    def ask(self, group: str, *, stream: bool = True, body: bytes = b"{}", key: str = "sk-own") -> HTTPConnection:
        """As the router does; the answer is still to come."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        told = {"x-sparkloom-stream": "true"} if stream else {}
        connection.request("POST", CHAT, body, {"x-sparkloom-group": group, "Authorization": f"Bearer {key}", **told})
        return connection

    def whole(self, group: str, **more: Any) -> Told:
        with contextlib.closing(self.ask(group, **more)) as connection:
            return Told.of(connection)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


def _free() -> int:
    with contextlib.closing(__import__("socket").socket()) as plug:
        plug.bind(("127.0.0.1", 0))
        return int(plug.getsockname()[1])


@contextlib.contextmanager
def site(folder: Path, *models: str, **more: Any) -> Iterator[Site]:
    made = Site(folder, models, **more)
    made.tell()
    try:
        yield made
    finally:
        made.close()
