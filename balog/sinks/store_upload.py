"""Finished files on their way from a staging folder to a storage, each with its manifest, until they are there."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from balog.sinks.store_part import MANIFESTS, describe, manifest_of
from balog.storage import Storage, StorageError
from balog.storage.local_files import is_at, lock

__all__ = ["Uploader"]


class Uploader:
    """Uploads what is finished in a folder of a topic and then removes it there. Used by one thread at a time.

    A file keeps its name and its content: uploaded twice it is there once. It is locked on the way, so that of several
    processes one does it.
    """

    def __init__(self, folder: Path, storage: Storage) -> None:
        self._folder = folder
        self._storage = storage

    def waiting(self) -> list[Path]:
        """Give the finished files, oldest first."""
        return sorted(self._folder.glob("date=*/[!.]*"), key=lambda file: file.name)

    def staged_bytes(self) -> int:
        """Add up all that is in the folder, finished or under way."""
        total = 0
        for file in self._folder.glob("date=*/*"):
            with suppress(FileNotFoundError):
                total += file.stat().st_size
        return total

    def upload(self) -> None:
        """Upload what is waiting.

        Raises:
            StorageError: the first file that could not be; it and the later ones wait.
            OSError: a staged file can't be read.
        """
        for file in self.waiting():
            self._upload(file)

    def _upload(self, file: Path) -> None:
        with suppress(FileNotFoundError):  # another process has just uploaded it
            with open(file, "rb") as source:
                if not lock(source, wait=False) or not is_at(file, source.fileno()):
                    return  # another process uploads it, or has done so
                name = f"{file.parent.name}/{file.name}"
                manifest = describe(file)
                if self._storage.size(name) != file.stat().st_size:
                    self._storage.upload(file, name)
                self._storage.upload(manifest, f"{MANIFESTS}/{manifest.name}")
                file.unlink()
                manifest.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove manifests whose files are gone, and folders that are empty."""
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
