"""Upload of finished files and their manifests from a staging folder to a storage."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from balog.common.backoff import BackoffSequence
from balog.common.errors import complain
from balog.common.storage import Storage, StorageError
from balog.common.storage.local_files import is_at, lock
from balog.common.text import counted
from balog.sinks.archive.store_part import MANIFESTS, manifest_of
from balog.sinks.base import Retrying


class Uploader:
    """Uploads the finished files of a topic's staging folder and deletes them. Not thread-safe.

    A file keeps its name and content, so a second upload replaces the first. It is locked during the upload, so that
    only one of several processes uploads it. It reports the first of several failures.

    Attributes:
        error: the last failure as the end of a sentence; "" after a success.
    """

    def __init__(self, name: str, folder: Path, storage: Storage, retry: Retrying) -> None:
        self._name = name
        self._folder = folder
        self._storage = storage
        self._delays = BackoffSequence(retry.backoff())
        self._next = 0.0
        self.error = ""

    def waiting(self) -> list[Path]:
        """Return the finished files, oldest first."""
        return sorted(self._folder.glob("date=*/[!.]*"), key=lambda file: file.name)

    def staged_bytes(self) -> int:
        """Return the bytes of all files in the folder, finished or not."""
        total = 0
        for file in self._folder.glob("date=*/*"):
            with suppress(FileNotFoundError):
                total += file.stat().st_size
        return total

    def upload(self) -> None:
        """Upload the files that wait.

        Raises:
            StorageError: a file can't be uploaded; it and later ones still wait.
            OSError: a staged file can't be read.
        """
        for file in self.waiting():
            self._upload(file)

    def _upload(self, file: Path) -> None:
        with suppress(FileNotFoundError):  # another process has just uploaded it
            with open(file, "rb") as source:
                if not lock(source, wait=False) or not is_at(file, source.fileno()):
                    return  # another process is uploading it, or has done so
                name = f"{file.parent.name}/{file.name}"
                manifest = manifest_of(file)
                if not manifest.exists():
                    return  # `mend` makes it visible
                if self._storage.size(name) != file.stat().st_size:
                    self._storage.upload(file, name)
                self._storage.upload(manifest, f"{MANIFESTS}/{manifest.name}")
                file.unlink()
                manifest.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove manifests of deleted files, and empty folders."""
        for manifest in self._folder.glob(f"{MANIFESTS}/[!.]*.json"):
            if not any(self._folder.glob(f"date=*/{manifest.stem}.*")):  # a file is there before its manifest
                manifest.unlink(missing_ok=True)
        for folder in [*self._folder.glob("date=*"), self._folder / MANIFESTS]:
            with suppress(OSError):
                folder.rmdir()

    def run(self) -> float | None:
        """Upload the files that wait, unless it is too early for a retry.

        Returns:
            Seconds until the next attempt; None after a success.
        """
        wait = self._next - time.monotonic()
        if wait > 0:
            return wait
        try:
            self.upload()
        except (StorageError, OSError) as error:
            if not self.error:
                complain(f"{self._name}: {error}; what can't be uploaded waits in the staging folder, trying again")
            self.error = f": {error}"
            delay = self._delays.next()
            self._next = time.monotonic() + delay
            return delay
        if self.error:
            complain(f"{self._name}: uploads again")
        self.error = ""
        self._delays.reset()
        return None

    def close(self) -> str:
        """Upload once more, and close the storage. Return a line about files that remain; "" without any."""
        try:
            self.upload()
        except (StorageError, OSError) as error:
            files = counted(len(self.waiting()), "file", "stay")
            return f"{error}; {files} in the staging folder; the next sink that opens it uploads what is there"
        finally:
            with suppress(OSError):
                self.tidy()
            with suppress(StorageError):
                self._storage.close()
        return ""
