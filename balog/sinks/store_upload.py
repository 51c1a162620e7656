"""Upload of finished files and their manifests from a staging folder to a storage."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from balog.sinks.store_part import MANIFESTS, describe, manifest_of
from balog.storage import Storage, StorageError
from balog.storage.local_files import is_at, lock


class Uploader:
    """Uploads the finished files of a topic's staging folder and deletes them. Not thread-safe.

    A file keeps its name and content, so a second upload replaces the first. It is locked during the upload, so that
    only one of several processes uploads it.
    """

    def __init__(self, folder: Path, storage: Storage) -> None:
        self._folder = folder
        self._storage = storage

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
                manifest = describe(file)
                if self._storage.size(name) != file.stat().st_size:
                    self._storage.upload(file, name)
                self._storage.upload(manifest, f"{MANIFESTS}/{manifest.name}")
                file.unlink()
                manifest.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove manifests of deleted files, and empty folders."""
        waiting = {manifest_of(file) for file in self.waiting()}
        for manifest in self._folder.glob(f"{MANIFESTS}/[!.]*.json"):
            if manifest not in waiting:
                manifest.unlink(missing_ok=True)
        for folder in [*self._folder.glob("date=*"), self._folder / MANIFESTS]:
            with suppress(OSError):
                folder.rmdir()

    def close(self) -> None:
        """Close the storage."""
        with suppress(StorageError):
            self._storage.close()
