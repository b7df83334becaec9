"""The model hub as the source, through huggingface_hub: the client's answers, our hashes.

The client compares sizes only, and a stopped download of its own starts over. `http_get` goes on inside a file, and
what it writes is hashed and handed on as it comes.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from sparkloom.onnode.host import backup
from sparkloom.onnode.weights import names
from sparkloom.onnode.weights.intake import Intake
from sparkloom.onnode.weights.layout import FILES, Entry, Snapshot, Store, wanted
from sparkloom.onnode.weights.names import StoreError, shown

PUBLIC = "https://huggingface.co"
SMALL = 64 << 20  # bytes of the largest file that has no sha256 at the hub
PORTS = {"https": 443, "http": 80}


class Hub:
    def __init__(self, source: dict[str, Any]) -> None:
        self.endpoint, self.token = (source.get("endpoint") or PUBLIC).rstrip("/"), source.get("token") or False
        self.plain = set(source.get("plain_http") or ())
        os.environ |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        if source.get("client"):
            sys.path.insert(0, source["client"])
        self._where: dict[str, tuple[str, str, str]] = {}  # by sha256
        self._watch_requests()

    def _watch_requests(self) -> None:
        """Every request of the client, each hop of a redirect and each page of a listing too, is judged before it goes.

        The client's transport drops the token where a redirect leaves the host, but not where the listing's next page
        does; and it follows from https to http.
        """
        from huggingface_hub import set_client_factory
        from huggingface_hub.utils._http import default_client_factory

        def watched() -> Any:
            client = default_client_factory()
            hooks = client.event_hooks
            client.event_hooks = {**hooks, "request": [*hooks["request"], self._judge]}
            return client

        set_client_factory(watched)

    def _judge(self, request: Any) -> None:
        home, url = urlsplit(self.endpoint), request.url
        if url.scheme != "https" and url.host not in self.plain:
            raise StoreError(
                f"the hub at {self.endpoint} leads to {shown(url.scheme)}://{shown(url.host)}, expected https: anybody "
                "between could change what is sent; where it is meant to be so, list that host in "
                "model_store_plain_http of the inventory"
            )
        hub = home.scheme, home.hostname, home.port or PORTS.get(home.scheme)
        if (url.scheme, url.host, url.port or PORTS.get(url.scheme)) != hub:
            for name in ("authorization", "cookie"):  # the token is for the hub alone
                request.headers.pop(name, None)

    def manifest(self, store: Store, models: list[dict[str, Any]]) -> list[Snapshot]:
        """Resolve each model, and fetch the small files: the hub tells a sha256 of the large ones only."""
        snapshots = []
        for want in models:
            commit, rows = self._list(want)
            entries = []
            for row in rows:
                entries.append(self._entry(store, want["id"], commit, row))
                self._where[entries[-1].sha256] = (want["id"], commit, entries[-1].path)
            snapshots.append(Snapshot(want["id"], commit, tuple(entries)))
        return snapshots

    def _list(self, want: dict[str, Any]) -> tuple[str, list[Any]]:
        from huggingface_hub import HfApi, errors

        api = HfApi(endpoint=self.endpoint, token=self.token)
        model, revision = want["id"], want["revision"]
        page = f"{self.endpoint}/{model}"
        try:
            commit = names.commit(api.model_info(model, revision=revision).sha)
            listed = islice(api.list_repo_tree(model, revision=commit, recursive=True), 2 * FILES)
            rows = [row for row in listed if hasattr(row, "blob_id")]
        except StoreError as error:
            raise StoreError(f"{page}: {error}") from None
        except errors.GatedRepoError:
            raise StoreError(
                f"{model} is gated and this token may not read it: accept its licence at {page}, then give a token of "
                "that account as HF_TOKEN in the environment of ansible-playbook"
            ) from None
        except errors.RevisionNotFoundError:
            raise StoreError(
                f"{model} has no revision '{revision}'; set model.revision to a commit of {page}, "
                "or take its entry out of the site's model_lock"
            ) from None
        except errors.RepositoryNotFoundError:
            raise StoreError(f"there is no model {model} at {page}, or only for those with a token: model.id") from None
        except errors.HfHubHTTPError as error:
            raise StoreError(f"the hub refused {page}: {shown(str(error).splitlines()[0], 300)}") from None
        except Exception as error:  # the client raises its transport's own kinds here
            raise StoreError(
                f"the hub does not answer at {page} ({type(error).__name__}); give a route to it, HF_ENDPOINT for "
                "another hub, or model_store_import for a folder"
            ) from None
        kept = [row for row in rows if wanted(names.file_path(row.path), want)]
        if not kept:
            raise StoreError(f"{page} at {commit} has none of {', '.join(want['include'])}; correct model.file")
        return commit, kept

    def _entry(self, store: Store, model: str, commit: str, row: Any) -> Entry:
        """What the hub lists it as: a name that is none is refused before anything is asked for or opened by it."""
        path = names.file_path(row.path)
        if row.lfs is not None:
            return Entry(path, row.size, names.sha256(row.lfs.sha256), row.lfs.sha256)
        name = names.blob(row.blob_id)
        if type(row.size) is not int or not 0 <= row.size <= SMALL:
            raise StoreError(f"{model}: the hub lists {path} with {shown(row.size)} bytes and no sha256")
        blob = store.repository(model) / "blobs" / name
        data = blob.read_bytes() if blob.exists() and blob.stat().st_size == row.size else b""
        if _git(data) != name:
            target = _Small(row.size)
            self._get(model, commit, path, target, row.size)
            data = target.getvalue()
        if _git(data) != name:
            raise StoreError(f"{model}: {path} has git's hash {_git(data)}, the hub lists {name}")
        backup.write(blob, data, 0o644)
        return Entry(path, len(data), name, hashlib.sha256(data).hexdigest())

    def fetch(self, intake: Intake) -> None:
        model, commit, path = self._where[intake.entry.sha256]
        self._get(model, commit, path, _Into(intake), intake.entry.size, intake.have)

    def _get(self, model: str, commit: str, path: str, target: Any, size: int, have: int = 0) -> None:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils._headers import build_hf_headers

        url = hf_hub_url(model, path, revision=commit, endpoint=self.endpoint)
        try:
            http_get(url, target, resume_size=have, headers=build_hf_headers(token=self.token), expected_size=size)
        except StoreError:
            raise
        except Exception as error:
            raise StoreError(
                f"{model}: {path} did not arrive whole ({type(error).__name__}: {shown(error, 300)}); "
                "run this again, it goes on where it stopped"
            ) from None


class _Small(io.BytesIO):
    """A file in memory: no more of it than was listed."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def write(self, piece: Any) -> int:
        if self.tell() + len(piece) > self._size:
            raise StoreError(f"the hub sends more than the {self._size} bytes that it lists; its answer was dropped")
        return super().write(piece)


class _Into:
    """What `http_get` needs of a file. Its start is where the intake stands; going back is only ever to nought."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    def write(self, piece: bytes) -> int:
        return self._intake.write(piece)

    def tell(self) -> int:
        return self._intake.have

    def seek(self, position: int) -> int:
        if position == 0 and self._intake.have:
            self._intake.restart()
        return position

    def truncate(self) -> None:
        """`seek` has done it."""


def _git(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
