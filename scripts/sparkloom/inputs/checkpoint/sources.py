"""Where a checkpoint's files are: in a folder of this machine, or on the hub. Of large files only a header is read."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sparkloom.base.errors import InputError
from sparkloom.base.visible import visible
from sparkloom.onnode.weights.hub import PUBLIC

SMALL = 64 << 20  # bytes of a file that is read whole
SECONDS = 8.0  # that one answer may take
FOLDER = (
    "without a way to the hub, name a folder with the model's config.json (and its index and weights, if you have them)"
)


class Source(ABC):
    """Where a checkpoint's files are: a folder, or the hub."""

    shown: str

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, int]: ...

    @abstractmethod
    def part(self, name: str, start: int, stop: int) -> bytes: ...

    def read(self, name: str) -> bytes | None:
        """A small file as a whole, where it is there."""
        if name not in self.sizes:
            return None
        if self.sizes[name] > SMALL:
            message = f"has {self.sizes[name]:,} bytes; expected a small file"
            raise InputError.single(f"{self.shown}/{name}", message, rule="unreadable")
        return self.part(name, 0, self.sizes[name])


class Folder(Source):
    """No network is asked. `snapshots/` of the hub's cache are followed to their one commit. A config.json stands for
    its folder; a file of another name is one that was saved alone.
    """

    def __init__(self, path: Path) -> None:
        self.config = path if path.is_file() else path / "config.json"
        self.path = path = self.config.parent
        self.shown = str(path)
        self.commit = path.name if len(path.name) == 40 and path.parent.name == "snapshots" else None
        if not self.config.is_file():
            message = "no config.json here; name one, or the folder that has one"
            raise InputError.single(self.shown, message, rule="missing-file")

    @cached_property
    def sizes(self) -> dict[str, int]:
        try:
            if self.config.name != "config.json":
                return {"config.json": self.config.stat().st_size}
            return {
                str(file.relative_to(self.path)): file.stat().st_size for file in self.path.iterdir() if file.is_file()
            }
        except OSError as error:
            raise InputError.single(self.shown, f"cannot be read: {error}", rule="unreadable") from None

    def part(self, name: str, start: int, stop: int) -> bytes:
        file = self.config if name == "config.json" else self.path / name
        try:
            with file.open("rb") as source:
                source.seek(start)
                return source.read(stop - start)
        except OSError as error:
            raise InputError.single(str(file), f"cannot be read: {error}", rule="unreadable") from None


class Hub(Source):
    """Through huggingface_hub. The commit is settled first, so that all files are of the same one."""

    def __init__(self, model: str, revision: str | None = None) -> None:
        self.model, self.asked = model, revision
        self.endpoint = (os.environ.get("HF_ENDPOINT") or PUBLIC).rstrip("/")
        try:
            self.host = urlsplit(self.endpoint).hostname or self.endpoint
        except ValueError:
            message = f"'{self.endpoint}' is no address of a hub; write one as https://hub.example.org"
            raise InputError.single("HF_ENDPOINT", message, rule="hub-address") from None
        self.shown = model
        self.page = f"{self.endpoint}/{model}"
        os.environ |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}

    @cached_property
    def _info(self) -> Any:
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
        return str(self._info.sha) if self._info.sha else None

    @property
    def gated(self) -> bool:
        return bool(self._info.gated)

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {str(one.rfilename): one.size if isinstance(one.size, int) else 0 for one in self._info.siblings or ()}

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
        said = visible(str(error).splitlines()[0] if str(error) else "")[:200]
        return self._refusal(
            f"the hub does not answer at {what} ({type(error).__name__}: {said}); {self.host}: {FOLDER}"
        )

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
