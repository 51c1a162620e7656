"""Storage that fsspec reaches. Object stores write whole objects; elsewhere a hidden file is written and renamed."""

from __future__ import annotations

import errno
import io
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import uuid4

from balog.common.storage.base import MAX_BYTES, Entry, StorageError
from balog.common.storage.file_systems import open_file_system
from balog.common.text import one_line

# An object appears whole, with its last byte; a rename is not needed, and would copy.
_PUTS_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "ocilake", "oss", "memory"})
_PART_BYTES = 8 << 20
_IDLE_SECONDS = 30.0  # FTP servers end sessions that are idle for one to five minutes
_MAX_REASON = 300
_MEMORY = threading.Lock()  # fsspec's file system in memory checks and writes in two steps


class RemoteStorage:
    """See ``Storage``. Timeouts are set where the file system has one; after an error the next call reconnects.

    Args:
        url: without a trailing slash.
        protocol: the URL's scheme.
        options: arguments of the file system, with secrets revealed.
        secrets: texts that no message may show.
    """

    def __init__(self, url: str, protocol: str, options: Mapping[str, Any], secrets: Sequence[str]) -> None:
        self.url = url
        self._protocol = protocol
        self._options = options
        self._secrets = secrets
        self._token = uuid4().hex[:8]
        self._system: Any = None
        self._root = ""
        self._used = 0.0
        self._keeps_conditions = False

    def read(self, name: str = "", limit: int = MAX_BYTES) -> bytes | None:
        """See ``Storage``."""
        with self._connected(name) as (system, path):
            try:
                size = system.info(path)["size"]
            except FileNotFoundError:
                return None
            if size > limit:
                raise StorageError(
                    f"{self._place(name)}: {size} bytes, at most {limit} are read; is this the right file?",
                    retryable=False,
                )
            return cast(bytes, system.cat_file(path))

    def open(self, name: str = "") -> BinaryIO:
        """See ``Storage``."""
        with self._connected(name) as (system, path):
            stream = _Stream(system.open(path, "rb", block_size=_PART_BYTES), self, name)
            return io.BufferedReader(stream, 1 << 20)

    def write(self, data: bytes, name: str = "") -> None:
        """See ``Storage``."""
        with self._connected(name) as (system, path), self._replacing(system, path, self._token, len(data)) as target:
            system.pipe_file(target, data)

    def create(self, data: bytes, name: str) -> bool:
        """See ``Storage``."""
        with self._connected(name) as (system, path):
            if not self._keeps_conditions:
                self._try_conditions(system)
            return _create(system, self._protocol, path, data)

    def _try_conditions(self, system: Any) -> None:
        """Check that the store honors If-None-Match; many S3-compatible ones ignore it, and every writer would win."""
        path = f"{self._root}/.balog-create-{uuid4().hex}"
        try:
            kept = _create(system, self._protocol, path, b"1") and not _create(system, self._protocol, path, b"2")
        finally:
            with suppress(Exception):  # a hidden file of one byte
                system.rm_file(path)
        if not kept:
            raise StorageError(
                f"{self.url}: this store replaces files that may only be created (If-None-Match is ignored)",
                retryable=False,
            )
        self._keeps_conditions = True

    def upload(self, file: Path, name: str = "") -> None:
        """See ``Storage``."""
        size = file.stat().st_size
        # s3fs would hold ten parts of 50 MB in memory at once.
        parts = {"chunksize": _PART_BYTES, "max_concurrency": 2} if self._protocol in ("s3", "s3a") else {}
        with self._connected(name) as (system, path), self._replacing(system, path, "", size) as target:
            system.put_file(str(file), target, **parts)

    def size(self, name: str = "") -> int | None:
        """See ``Storage``."""
        with self._connected(name) as (system, path):
            try:
                return int(system.info(path)["size"])
            except FileNotFoundError:
                return None

    def modified(self, name: str = "") -> datetime | None:
        """See ``Storage``."""
        with self._connected(name) as (system, path):
            when = _moment(system.info(path))
            return datetime.fromtimestamp(when, timezone.utc) if when else None

    def files(self, enter: Callable[[str], bool] = lambda name: True) -> Iterator[tuple[str, int]]:
        """See ``Storage``."""
        with self._connected("") as (system, path):
            info = system.info(path)
            if info["type"] == "file":
                yield "", int(info["size"])
                return
        yield from self._files("", enter)

    def _files(self, folder: str, enter: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
        with self._connected(folder) as (system, path):
            entries = sorted(
                (str(entry["name"]).rstrip("/").rpartition("/")[2], entry["type"], int(entry["size"] or 0))
                for entry in system.ls(path, detail=True)
                if str(entry["name"]).strip("/") != path.strip("/")  # S3 lists a folder's own marker in it
            )
        for last, kind, size in entries:
            name = f"{folder}/{last}".lstrip("/")
            if last.startswith((".", "_")):
                continue
            if kind == "file":
                yield name, size
            elif enter(name):
                yield from self._files(name, enter)

    def entries(self, folder: str = "") -> list[Entry] | None:
        """Return all files below a folder, also hidden ones, in as few requests as possible; None if it does not exist.

        Names are relative to the folder. If it is a file, it is listed alone, as "".

        Raises:
            StorageError: not retryable if listing is not permitted.
        """
        with self._connected(folder) as (system, path), _permanent(self._place(folder)):
            infos = system.find(path, detail=True)
            if not infos and not system.exists(path):
                return None
        root = path.strip("/")
        return [
            Entry(str(info["name"]).strip("/")[len(root) :].lstrip("/"), int(info["size"] or 0), _moment(info))
            for info in infos.values()
            if info["type"] == "file" and not str(info["name"]).endswith("/")  # S3's marker of a folder
        ]

    def read_range(self, start: int, end: int, name: str = "") -> bytes:
        """Return a file's bytes from ``start`` to before ``end``, in one request if possible; fewer at the file's end.

        Raises:
            StorageError: not retryable if there is no such file, or reading is not permitted.
        """
        with self._connected(name) as (system, path), _permanent(self._place(name)):
            try:
                if self._protocol in _PUTS_WHOLE:
                    return cast(bytes, system.cat_file(path, start=start, end=end))
                with system.open(path, "rb", block_size=1 << 20) as file:
                    file.seek(start)
                    return cast(bytes, file.read(end - start))
            except Exception as error:
                if _is_bad_range(error) and start >= system.info(path)["size"]:
                    return b""
                raise

    def remove(self, name: str = "") -> None:
        """See ``Storage``."""
        with self._connected(name) as (system, path), suppress(FileNotFoundError):
            system.rm_file(path)

    def close(self) -> None:
        """See ``Storage``."""
        self._system = None

    @contextmanager
    def _replacing(self, system: Any, path: str, token: str, size: int) -> Iterator[str]:
        """Yield the path to write to, check the size that arrived, and rename the file to its final path."""
        if self._protocol in _PUTS_WHOLE:
            yield path
            _check_size(system, path, size)
            return
        folder, _, last = path.rpartition("/")
        if folder.strip("/"):
            system.makedirs(folder, exist_ok=True)
        part = f"{folder}/.{last}.{token}.part" if token else f"{folder}/.{last}.part"
        try:
            yield part
            _check_size(system, part, size)
            system.mv(part, path)
        except Exception:
            with suppress(Exception):  # the next attempt overwrites it
                system.rm_file(part)
            raise

    @contextmanager
    def _connected(self, name: str) -> Iterator[tuple[Any, str]]:
        try:
            has_session = self._protocol not in _PUTS_WHOLE
            if self._system is None or (has_session and time.monotonic() - self._used > _IDLE_SECONDS):
                self._system, self._root = open_file_system(self._protocol, self.url, self._options)
            self._system.invalidate_cache()
            yield self._system, f"{self._root}/{name}" if name else self._root
        except StorageError:
            raise
        except Exception as error:  # each file system raises its own kinds
            self.close()
            raise self.failure(name, error) from None
        finally:
            self._used = time.monotonic()

    def failure(self, name: str, error: Exception) -> StorageError:
        """Return the error of a call as a ``StorageError`` of one line, with secrets masked."""
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return StorageError(f"{self._place(name)}: {one_line(text)[:_MAX_REASON]}")

    def _place(self, name: str) -> str:
        return f"{self.url}/{name}" if name else self.url


def _create(system: Any, protocol: str, path: str, data: bytes) -> bool:
    if protocol in ("s3", "s3a"):
        bucket, key, _ = system.split_path(path)
        try:
            system.call_s3("put_object", Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")
        except FileExistsError:
            return False
        except Exception as error:
            # 412: the object exists. 409: another writer is creating it, and either may win.
            if _http_status(error) == 412:
                return False
            raise
        return True
    if protocol == "memory":
        try:
            with _MEMORY, system.open(path, "xb") as file:
                file.write(data)
        except FileExistsError:
            return False
        return True
    raise StorageError(
        f"{protocol}://: files cannot be created conditionally here; use local disk or S3", retryable=False
    )


def _http_status(error: BaseException) -> int | None:
    """Return the status of S3's answer, which is in a cause of s3fs's own error."""
    cause: BaseException | None = error
    while cause is not None:
        response = getattr(cause, "response", None)
        if isinstance(response, Mapping):
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            return int(status) if status else None
        cause = cause.__cause__
    return None


@contextmanager
def _permanent(url: str) -> Iterator[None]:
    """Raise errors that a retry cannot fix as not retryable."""
    try:
        yield
    except FileNotFoundError:
        raise StorageError(f"{url}: no such file", retryable=False) from None
    except PermissionError:
        raise StorageError(f"{url}: no permission", retryable=False) from None
    except Exception as error:
        if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):  # botocore's
            raise StorageError(f"{url}: no credentials in the environment", retryable=False) from None
        raise


def _is_bad_range(error: Exception) -> bool:
    """Return whether an error is HTTP's 416: the range begins after the end of the file."""
    return getattr(error, "errno", None) == errno.EINVAL or "satisfiable" in str(error)


def _moment(info: Mapping[str, Any]) -> float:
    for name in ("LastModified", "mtime", "updated", "last_modified", "created", "modify"):
        when = info.get(name)
        if isinstance(when, str):
            when = _ftp_time(when)
        if isinstance(when, datetime):
            return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()
        if isinstance(when, (int, float)):
            return float(when)
    return 0.0


class _Stream(io.RawIOBase):
    """A file of fsspec as a stream whose errors are ``StorageError``."""

    def __init__(self, file: Any, storage: RemoteStorage, name: str) -> None:
        self._file, self._storage, self._name = file, storage, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as error:
            raise self._storage.failure(self._name, error) from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            with suppress(Exception):  # reading has ended
                self._file.close()
        super().close()


def _check_size(system: Any, path: str, size: int) -> None:
    system.invalidate_cache()
    there = system.info(path)["size"]
    if there != size:
        raise OSError(f"{there} bytes arrived of {size}")


def _ftp_time(text: str | None) -> datetime | None:
    """Read the ``modify`` fact of MLSD (RFC 3659, 7.5.3): ``20261120074612`` in UTC."""
    try:
        return datetime.strptime((text or "")[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
