"""The hub's HTTP side: model info, tree, resolve with redirects and ranges, gates and revisions. No Xet."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from testbed.standins.hub import repository
from testbed.standins.hub.catalog import Catalog
from testbed.standins.hub.faults import Counters, Faults
from testbed.standins.hub.repository import File, Repository

PIECE = 1 << 18
INFO = re.compile(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?")
TREE = re.compile(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)(?:/(.*))?")
RESOLVE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
STORAGE = re.compile(r"/_storage/([^/]+/[^/]+)/([0-9a-f]{40})/(.+)")


class Hub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        data: Path,
        faults: Faults,
        tokens: tuple[str, ...] = (),
        catalog: Catalog | None = None,
    ) -> None:
        super().__init__(address, Handler)
        self.data, self.faults, self.tokens, self.counters = data, faults, tokens, Counters()
        self.catalog = catalog

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no event."""


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: requests may carry tokens."""

    def do_HEAD(self) -> None:
        self._handle()

    def do_GET(self) -> None:
        self._handle()

    def _handle(self) -> None:
        self.server.counters.asked(bool(self._token()))
        url = urlsplit(self.path)
        path, query = unquote(url.path), parse_qs(url.query)
        try:
            if path == "/_stats":
                return self._json(self.server.counters.as_dict())
            for pattern, answer in ((TREE, self._tree), (RESOLVE, self._resolve), (INFO, self._info)):
                if match := pattern.fullmatch(path):
                    return answer(query, *match.groups())
            if match := STORAGE.fullmatch(path):
                return self._storage(*match.groups())
            raise Refusal(404, "EntryNotFound", f"nothing here is called {path}")
        except Refusal as refusal:
            headers = {"X-Error-Code": refusal.code, "X-Error-Message": refusal.message}
            self._json({"error": refusal.message}, refusal.status, headers)

    def _find(self, model: str, revision: str | None, *, content: bool) -> tuple[Repository, str]:
        """The repository and commit, or the refusal that the real hub would give."""
        if self.server.catalog:
            self.server.catalog.ensure(model)
        repo = repository.every(self.server.data).get(model)
        if repo is None:
            raise Refusal(404 if self._token() else 401, "RepoNotFound", "Repository not found")
        if repo.gated and content:
            url = f"http://{self.headers.get('Host')}/{model}"
            if not self._token():
                text = f"Access to model {model} is restricted. You must have access to it and be authenticated"
                raise Refusal(401, "GatedRepo", f"{text} to access it. Please log in.")
            if self._token() not in self.server.tokens:
                raise Refusal(
                    403, "GatedRepo", f"Access to model {model} is restricted: visit {url} to ask for access."
                )
        commit = repo.commit(revision or "main")
        if commit is None:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return repo, commit

    def _token(self) -> str:
        return str(self.headers.get("Authorization") or "").removeprefix("Bearer ").strip()

    def _info(self, query: dict[str, list[str]], model: str, revision: str | None) -> None:
        repo, commit = self._find(model, revision, content=False)
        detailed = "blobs" in query
        files = [
            {"rfilename": f.path, **({"size": f.size, "blobId": f.oid, **_lfs(f, "sha256")} if detailed else {})}
            for f in repo.commits[commit]
        ]
        self._json(
            {
                "_id": commit[:24],
                "id": model,
                "modelId": model,
                "sha": commit,
                "private": False,
                "gated": "manual" if repo.gated else False,
                "disabled": False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "lastModified": "2026-01-01T00:00:00.000Z",
                "createdAt": "2026-01-01T00:00:00.000Z",
                "siblings": files,
            }
        )

    def _tree(self, query: dict[str, list[str]], model: str, revision: str, under: str | None) -> None:
        repo, commit = self._find(model, revision, content=True)
        prefix = f"{under.rstrip('/')}/" if under else ""
        files = [f for f in repo.commits[commit] if f.path.startswith(prefix)]
        folders = sorted({parent for f in files for parent in _parents(f.path) if parent.startswith(prefix)})
        rows = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in folders]
        rows += [{"type": "file", "oid": f.oid, "size": f.size, "path": f.path, **_lfs(f, "oid")} for f in files]
        if query.get("recursive", ["false"])[0].lower() not in {"true", "1"}:
            rows = [row for row in rows if "/" not in str(row["path"])[len(prefix) :]]
        self._json(rows)

    def _resolve(self, query: dict[str, list[str]], model: str, revision: str, path: str) -> None:
        repo, commit = self._find(model, revision, content=True)
        file = repo.file(commit, path)
        if file is None or self.server.faults.is_missing(path):
            raise Refusal(404, "EntryNotFound", f"Entry not found: {path}")
        headers = {"X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if file.sha256 is None:
            return self._content(repo, commit, file, {**headers, "ETag": f'"{file.oid}"'})
        linked = {"X-Linked-Size": str(file.size), "X-Linked-ETag": f'"{file.sha256}"'}
        location = f"http://{self.headers.get('Host')}/_storage/{model}/{commit}/{path}"
        self._empty(302, {**headers, **linked, "Location": location})

    def _storage(self, model: str, commit: str, path: str) -> None:
        """Where the hub redirects large files to, without asking for a token again.

        The real one's storage is another host, whose answers the client does not ask for metadata. This one is on the
        same host, so they carry what the redirect said.
        """
        repo = repository.every(self.server.data).get(model)
        file = repo.file(commit, path) if repo and commit in repo.commits else None
        if repo is None or file is None:
            raise Refusal(404, "EntryNotFound", f"Entry not found: {path}")
        headers = {"X-Repo-Commit": commit, "X-Linked-Size": str(file.size), "Accept-Ranges": "bytes"}
        self._content(repo, commit, file, {**headers, "ETag": f'"{file.sha256}"'})

    def _content(self, repo: Repository, commit: str, file: File, headers: dict[str, str]) -> None:
        start, stop = 0, file.size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked:
            start, stop = int(asked[1]), min(file.size, int(asked[2]) + 1 if asked[2] else file.size)
            if start >= file.size:
                return self._empty(416, {"Content-Range": f"bytes */{file.size}"})
            headers = {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{file.size}"}
        self.send_response(206 if asked else 200)
        for name, value in {**headers, "Content-Length": str(stop - start)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self._send(repo.location(commit, file.path), file, start, stop)

    def _send(self, location: Path, file: File, start: int, stop: int) -> None:
        faults = self.server.faults
        spoilt = faults.spoilt(file.path, file.size)
        last = start + faults.allowance(stop - start)
        with location.open("rb") as source:
            source.seek(start)
            while start < last:
                piece = source.read(min(PIECE, last - start))
                if spoilt is not None and start <= spoilt < start + len(piece):
                    flipped = bytearray(piece)
                    flipped[spoilt - start] ^= 1
                    piece = bytes(flipped)
                faults.pace(len(piece))
                self.wfile.write(piece)
                self.server.counters.sent(file.path, len(piece))
                start += len(piece)
        if last < stop:
            self.close_connection = True

    def _json(self, data: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _empty(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": "0"}.items():
            self.send_header(name, value)
        self.end_headers()


def _lfs(file: File, key: str) -> dict[str, Any]:
    if file.sha256 is None:
        return {}
    return {"lfs": {key: file.sha256, "size": file.size, "pointerSize": file.pointer_size}}


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
