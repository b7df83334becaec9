"""A registry on loopback with one image of two layers, of which one can be held back: it stands in for a way out."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(name: str, size: int) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = size
        archive.addfile(entry, io.BytesIO(os.urandom(size)))
    return raw.getvalue()


class Registry:
    """`push` gives the tag another image; the last layer is held back until `gate` is set."""

    def __init__(self, size: int = 400_000) -> None:
        self.size, self.held, self.gate = size, "", threading.Event()
        self.gate.set()
        self.blobs: dict[str, bytes] = {}
        self.manifest = ""
        self.push()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.image = f"127.0.0.1:{self._server.server_address[1]}/some-org/an_engine:1.0-x"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def push(self) -> str:
        layers = [layer(f"file{number}", self.size) for number in range(2)]
        config = json.dumps(
            {"architecture": "amd64", "os": "linux", "config": {}}
            | {"rootfs": {"type": "layers", "diff_ids": [digest(one) for one in layers]}}
        ).encode()
        parts = [
            {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest(one), "size": len(one)}
            for one in layers
        ]
        about = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config), "size": len(config)}
        text = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": about, "layers": parts}).encode()
        self.blobs |= {digest(one): one for one in [*layers, config, text]}
        self.manifest, self.held = digest(text), digest(layers[-1])
        return self.manifest

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                asked = self.path.rpartition("/")[2]
                manifest = "/manifests/" in self.path
                known = registry.blobs.get(registry.manifest if manifest and ":" not in asked else asked)
                body = b"{}" if self.path == "/v2/" else known
                self.send_response(404 if body is None else 200)
                self.send_header("content-type", MANIFEST if manifest else "application/octet-stream")
                self.send_header("content-length", str(len(body or b"")))
                self.send_header("docker-content-digest", digest(body or b""))
                self.end_headers()
                if self.command == "GET":
                    registry.gate.wait(60 if asked == registry.held else 0)
                    self.wfile.write(body or b"")

            do_HEAD = do_GET

            def log_message(self, *words: object) -> None:
                """Nothing."""

        return Handler
