"""K3s' own API server, weeks later: certificates that ended, and nodes whose clocks are off. No node runs here."""

from __future__ import annotations

import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from kubernetes.client import ApiException, CoreV1Api

from sparkloom.base.errors import InputError
from sparkloom.onnode.now.gather import Gatherer
from sparkloom.render.k3s import paths
from sparkloom.site import patience
from sparkloom.site.client import Client
from sparkloom.site.k3s import access
from sparkloom.site.now import FromHere
from testbed.make.real import k3s
from tests.journeys.sites import nobody_listens
from tests.later import LATER

pytestmark = [pytest.mark.slow, *LATER]
ENDED, NOW = timedelta(days=330), datetime.now(UTC)
OFF = "coredns,servicelb,traefik,local-storage,metrics-server"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Server:
    """`sparkloom`'s view of it is `kept`: an owner's kubeconfig, as playbooks/cluster.yml writes it."""

    def __init__(self, folder: Path) -> None:
        self.data, self.own, self.kept = folder / "data", folder / "k3s.yaml", folder / "kept"
        self.tls = self.data / "server/tls"
        self.port = nobody_listens()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["--disable-agent", "--data-dir", self.data, "--write-kubeconfig", self.own, "--disable", OFF,
                 "--https-listen-port", self.port, "--bind-address", "127.0.0.1", "--disable-network-policy",
                 "--disable-cloud-controller", "--disable-helm-controller", "--flannel-backend", "none"]  # fmt: skip
        with (self.data.parent / "log").open("ab") as log:
            self.process = subprocess.Popen([k3s.program(), "server", *map(str, words)], stdout=log, stderr=log)
        until = time.monotonic() + 300
        while not self._ready():
            assert time.monotonic() < until and self.process.poll() is None, (self.data.parent / "log").read_text()
            time.sleep(1)

    def _ready(self) -> bool:
        try:
            client = patience.api_client(str(self.own))
            client.configuration.retries = False
            return bool(client.call_api("/readyz", "GET", auth_settings=[], response_type="str")[1] == 200)
        except Exception:  # whatever it says while it starts
            return False

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(60)

    def keep(self) -> None:
        here = {paths.BINARY: k3s.program(), paths.KUBECONFIG: self.own, paths.AUTHORITY: self.tls / "server-ca.crt"}

        def execute(line: str, data: bytes | None) -> dict[str, str]:
            for place, mine in here.items():
                line = line.replace(place, str(mine))
            done = subprocess.run(["sh", "-c", line], input=data, capture_output=True)
            return {"stdout": done.stdout.decode(), "stderr": done.stderr.decode()}

        access.renew(str(self.kept), "sparkloom:me@here", f"https://127.0.0.1:{self.port}", "home", execute)

    def certificates(self) -> dict[Path, datetime]:
        """All but its authorities, and when each ends."""
        files = [file for file in (self.data / "server/tls").glob("*.crt") if "-ca." not in file.name]
        return {file: x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc for file in files}

    def age(self) -> None:
        """Each is signed again by its own authority, as of two years ago."""
        tls = self.data / "server/tls"
        for file in self.certificates():
            by = {"serving": "server-ca", "client-auth-proxy.crt": "request-header-ca"}
            authority = next((ca for name, ca in by.items() if file.name.startswith(name)), "client-ca")
            file.write_bytes(again(file, tls / f"{authority}.crt") + (tls / f"{authority}.crt").read_bytes())


def again(file: Path, authority: Path) -> bytes:
    old, by = (x509.load_pem_x509_certificate(one.read_bytes()) for one in (file, authority))
    key: Any = serialization.load_pem_private_key(authority.with_suffix(".key").read_bytes(), None)
    made = x509.CertificateBuilder(
        by.subject, old.subject, old.public_key(), x509.random_serial_number(), NOW - 2 * ENDED, NOW - ENDED
    )
    for one in old.extensions:
        made = made.add_extension(one.value, one.critical)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("k3s"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_a_node_whose_clock_is_off_is_told_from_one_that_is_away(server: Server) -> None:
    """The API keeps its own time of each kubelet's word."""
    server.keep()
    reached, owner = (Client.at(str(file), "default") for file in (server.kept, server.own))
    for node, behind in (("spark1", 0), ("spark2", 3600)):
        labels = {"kubernetes.io/hostname": node}
        owner.change("POST", "/api/v1/nodes", {"metadata": {"name": node, "labels": labels}})
        for _ in range(2):
            renewed = f"{datetime.now(UTC) - timedelta(seconds=behind):%Y-%m-%dT%H:%M:%S.%f}Z"
            body: dict[str, Any] = {"metadata": {"name": node}, "spec": {"renewTime": renewed}}
            try:
                kept = reached.api(f"{LEASES}/{node}", {}, "application/json")
                reached.change("PUT", f"{LEASES}/{node}", {**kept, "spec": body["spec"]})
            except ApiException:
                reached.change("POST", LEASES, body)
            time.sleep(2)
    look, _ = Gatherer(FromHere(reached), "default", {}).observe()
    assert {name: look.nodes[name]["away_since"] for name in ("spark1", "spark2")} == {"spark1": "", "spark2": ""}
    assert abs(look.nodes["spark1"]["clock_ahead"]) < 3 and abs(look.nodes["spark2"]["clock_ahead"] + 3600) < 3


def test_k3s_renews_what_ended_as_it_starts_and_an_owner_is_told_to_fetch_it(server: Server) -> None:
    server.keep()
    server.stop()
    server.age()
    assert max(server.certificates().values()) < NOW
    spoilt, mine = yaml.safe_load(server.kept.read_text()), server.data / "mine.crt"
    user = spoilt["users"][0]["user"]
    mine.write_bytes(b64decode(user["client-certificate-data"]))
    user["client-certificate-data"] = b64encode(again(mine, server.tls / "client-ca.crt")).decode()
    server.kept.write_text(yaml.safe_dump(spoilt))
    before, began = server.kept.read_text(), time.monotonic()
    server.start()
    print(f"K3s, whose certificates ended {ENDED.days} days ago, is ready after {time.monotonic() - began:.0f} s")
    assert min(server.certificates().values()) > NOW + timedelta(days=300), "each was renewed"
    with pytest.raises(ApiException) as refused:
        CoreV1Api(patience.api_client(str(server.kept))).list_node()
    assert refused.value.status == 401, "all that K3s says of it"
    with pytest.raises(InputError, match="its certificate ended on"):
        Client.at(str(server.kept), "default")
    server.keep()
    assert server.kept.read_text() != before, "as playbooks/cluster.yml does"
    Client.at(str(server.kept), "default").answers()
