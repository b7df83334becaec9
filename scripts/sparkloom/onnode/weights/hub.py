"""The model hub as the source, through huggingface_hub: the client's answers, our hashes.

The client compares sizes only, and a stopped download of its own starts over. `http_get` goes on inside a file, and
what it writes is hashed and handed on as it comes.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
from typing import Any

from sparkloom.onnode.weights.intake import Intake
from sparkloom.onnode.weights.layout import Entry, Snapshot, Store, StoreError, wanted, write

SMALL = 64 << 20


class Hub:
    def __init__(self, source: dict[str, Any]) -> None:
        self.endpoint, self.token = source.get("endpoint") or None, source.get("token") or False
        os.environ |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        if source.get("client"):
            sys.path.insert(0, source["client"])
        self._where: dict[int, tuple[str, str, str]] = {}

    def manifest(self, store: Store, models: list[dict[str, Any]]) -> list[Snapshot]:
        """Resolve each model, and fetch the small files: the hub tells a sha256 of the large ones only."""
        snapshots, number = [], 0
        for want in models:
            commit, rows = self._list(want)
            entries = []
            for row in rows:
                entries.append(self._entry(store, want["id"], commit, row))
                self._where[number] = (want["id"], commit, row.path)
                number += 1
            snapshots.append(Snapshot(want["id"], commit, tuple(entries)))
        return snapshots

    def _list(self, want: dict[str, Any]) -> tuple[str, list[Any]]:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import (
            GatedRepoError,
            HfHubHTTPError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        api = HfApi(endpoint=self.endpoint, token=self.token)
        model, revision = want["id"], want["revision"]
        page = f"{(self.endpoint or 'https://huggingface.co').rstrip('/')}/{model}"
        try:
            commit = api.model_info(model, revision=revision).sha or ""
            rows = [
                row for row in api.list_repo_tree(model, revision=commit, recursive=True) if hasattr(row, "blob_id")
            ]
        except GatedRepoError:
            raise StoreError(
                f"{model} is gated and this token may not read it: accept its licence at {page}, then give a token of "
                "that account as HF_TOKEN in the environment of ansible-playbook"
            ) from None
        except RevisionNotFoundError:
            raise StoreError(
                f"{model} has no revision '{revision}'; set model.revision to a commit of {page}, "
                "or take its entry out of the site's model_lock"
            ) from None
        except RepositoryNotFoundError:
            raise StoreError(f"there is no model {model} at {page}, or only for those with a token: model.id") from None
        except HfHubHTTPError as error:
            raise StoreError(f"the hub refused {page}: {str(error).splitlines()[0]}") from None
        except Exception as error:  # the client raises its transport's own kinds here
            raise StoreError(
                f"the hub does not answer at {page} ({type(error).__name__}); give a route to it, HF_ENDPOINT for "
                "another hub, or model_store_import for a folder"
            ) from None
        kept = [row for row in rows if wanted(row.path, want)]
        if not kept:
            raise StoreError(f"{page} at {commit} has none of {', '.join(want['include'])}; correct model.file")
        return commit, kept

    def _entry(self, store: Store, model: str, commit: str, row: Any) -> Entry:
        if row.lfs is not None:
            return Entry(row.path, row.size, row.lfs.sha256, row.lfs.sha256)
        blob = store.repository(model) / "blobs" / row.blob_id
        data = blob.read_bytes() if blob.exists() else b""
        if _git(data) != row.blob_id:
            target = io.BytesIO()
            self._get(model, commit, row.path, target, row.size)
            data = target.getvalue()
        if _git(data) != row.blob_id:
            raise StoreError(f"{model}: {row.path} has git's hash {_git(data)}, the hub lists {row.blob_id}")
        write(blob, data)
        return Entry(row.path, row.size, row.blob_id, hashlib.sha256(data).hexdigest())

    def fetch(self, number: int, intake: Intake) -> None:
        model, commit, path = self._where[number]
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
                f"{model}: {path} did not arrive whole ({type(error).__name__}: {str(error).splitlines()[0]}); "
                "run this again, it goes on where it stopped"
            ) from None


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
