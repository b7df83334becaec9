"""A checkpoint's files on the hub, through huggingface_hub: small files whole, of the others a header's bytes only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from sparkloom.base.errors import InputError
from sparkloom.base.visible import visible
from sparkloom.inputs.checkpoint.headers import Source
from sparkloom.onnode.weights.hub import PUBLIC

SECONDS = 8.0  # that one answer may take
FOLDER = (
    "without a way to the hub, name a folder with the model's config.json (and its index and weights, if you have them)"
)


class Hub(Source):
    """The commit is settled first, so that all files are of the same one."""

    def __init__(self, model: str, revision: str | None = None) -> None:
        self.model, self.asked = model, revision
        self.endpoint = (os.environ.get("HF_ENDPOINT") or PUBLIC).rstrip("/")
        self.shown = model
        self.page = f"{self.endpoint}/{model}"
        os.environ |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

    @cached_property
    def _told(self) -> Any:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

        try:
            api = HfApi(endpoint=self.endpoint)
            return api.model_info(self.model, revision=self.asked, files_metadata=True, timeout=SECONDS)
        except GatedRepoError:
            raise self._gated() from None
        except RevisionNotFoundError:
            raise self._refusal(f"has no revision '{self.asked}'; name a branch or a commit of {self.page}") from None
        except RepositoryNotFoundError:
            raise self._refusal(
                f"no such model at {self.page}, or only for those with a token: correct the id, or set HF_TOKEN"
            ) from None
        except Exception as error:  # the client raises its transport's own kinds here
            raise self._silent(error) from None

    @property
    def commit(self) -> str | None:
        return str(self._told.sha) if self._told.sha else None

    @property
    def gated(self) -> bool:
        return bool(self._told.gated)

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {file.rfilename: int(file.size or 0) for file in self._told.siblings or ()}

    def part(self, name: str, start: int, stop: int) -> bytes:
        """Bytes of a file by range; what comes beyond is dropped."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.errors import GatedRepoError
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]

        if stop <= start:
            return b""
        url = hf_hub_url(self.model, name, revision=self.commit, endpoint=self.endpoint)
        asked = {**build_hf_headers(), "range": f"bytes={start}-{stop - 1}", "accept-encoding": "identity"}
        try:
            with get_session().stream("GET", url, headers=asked, timeout=SECONDS, follow_redirects=True) as answer:
                hf_raise_for_status(answer)
                skipped = 0 if answer.status_code == 206 else start  # a server that takes no ranges begins at the start
                return _first(answer.iter_bytes(), skipped, stop - start)
        except GatedRepoError:
            raise self._gated() from None
        except Exception as error:
            raise self._silent(error, name) from None

    def _gated(self) -> InputError:
        return self._refusal(
            f"is gated and your token may not read it: accept its licence at {self.page}, then set HF_TOKEN to a token "
            "of that account"
        )

    def _silent(self, error: Exception, name: str = "") -> InputError:
        what = f"{self.page}{f' ({name})' if name else ''}"
        host = urlsplit(self.endpoint).hostname or self.endpoint
        said = visible(str(error).splitlines()[0] if str(error) else "")[:200]
        return self._refusal(f"the hub does not answer at {what} ({type(error).__name__}: {said}); {host}: {FOLDER}")

    def _refusal(self, message: str) -> InputError:
        return InputError.single(self.model, message, rule="hub")


def _first(pieces: Iterator[bytes], skipped: int, wanted: int) -> bytes:
    """So many bytes behind the skipped ones; the rest is never read."""
    held = bytearray()
    for piece in pieces:
        held += piece
        if len(held) >= skipped + wanted:
            break
    return bytes(held[skipped : skipped + wanted])
