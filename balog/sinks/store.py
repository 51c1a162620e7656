"""Events into an archive of compressed JSON lines by topic and date, which the report reads.

``<path>/<topic>/date=YYYY-MM-DD/<id>.jsonl.gz``, by the UTC date of the event's timestamp, and for each file
``<path>/<topic>/_manifest/<id>.json``. On disk a file is hidden until it is finished. The next writer
finishes the files that a killed writer left.

An object store or an FTP server can't append: with ``url`` the files are written to a staging folder on disk, where
each batch is durable (fsync), and uploaded when they are finished.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta, field

from balog.common.errors import ConfigError
from balog.common.local_path import check_folder, local_path, state_folder
from balog.common.signals import join
from balog.common.storage import Options, Storage, StorageError, open_storage
from balog.common.text import counted
from balog.event import new_id
from balog.sinks.archive.store_part import MANIFESTS, Part, mend
from balog.sinks.archive.store_upload import Uploader
from balog.sinks.base import Delivery, SinkError, SinkGuarantee, SinkOptions

_MAX_OPEN_FILES = 16
_MAX_STAGED_BYTES = 1 << 30  # while this much waits to be uploaded, no more events are taken
_DEFAULT_AGE = 300.0
_SHORTEST_PAUSE = 0.5
# Stricter than the rule for topics: readers of archives skip names that begin with _ or a dot.
_TOPIC = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


_Folder = Annotated[str, Meta(min_length=1)]
_Url = Annotated[str, Meta(min_length=1, max_length=2000)]
_Seconds = Annotated[float, Meta(gt=0, le=86400)]


class StoreSinkConfig(SinkOptions, tag_field="type", tag="store", forbid_unknown_fields=True, kw_only=True):
    """Append to an archive of compressed JSON lines: on disk (``path``), or wherever fsspec reaches (``url``)."""

    examples: ClassVar = (
        {"type": "store", "path": "archive", "topic": "singer-events"},
        {
            "type": "store",
            "url": "s3://events/archive",
            "options": {"endpoint_url": "http://localhost:9000"},
            "staging": "staging",
            "topic": "singer-events",
        },
    )

    guarantees: ClassVar = (
        SinkGuarantee("at least once", "it is on disk (fsync)", "a batch", not_retried="", option="path"),
        SinkGuarantee(
            "at least once",
            "it is on the disk of `staging` (fsync)",
            "a file; uploaded whole, also by the next run",
            not_retried="",
            option="url",
            extra="store",
        ),
    )

    topic: Annotated[str, Meta(min_length=1, max_length=200, description="The folder in it for these events.")]
    path: Annotated[_Folder | None, Meta(description="The archive's folder on disk; made when it is not there.")] = None
    url: Annotated[_Url | None, Meta(description="s3://BUCKET/PATH, gs://…, ftp://HOST/PATH, file:///…")] = None
    options: Options = field(default_factory=dict)
    staging: Annotated[
        _Folder | None,
        Meta(description="With url: a folder on local disk where events wait; ~/.local/state/balog/staging if none."),
    ] = None
    max_file_bytes: Annotated[int, Meta(ge=1024, description="Begin a new file after this many compressed bytes.")] = (
        128 << 20
    )
    max_age: Annotated[
        _Seconds | None,
        Meta(description="Begin a new file after these seconds; 300 with url, else never.", examples=[3600]),
    ] = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.url is None):
            raise ValueError("a store has a path (local disk) or a url (s3://…), one of the two")
        if self.path is not None and (self.options or self.staging):
            raise ValueError("options and staging are for a url, a store with a path takes neither")

    @property
    def name(self) -> str:
        """``store PATH`` or ``store URL``."""
        return f"store {self.path or self.url}"

    def build(self) -> StoreSink:
        """Return the sink, unopened.

        Raises:
            ConfigError: the topic is not a valid folder name, or the URL can't be written to.
            MissingExtraError: the packages for the URL are not installed.
        """
        if not _TOPIC.fullmatch(self.topic):
            raise ConfigError(f"{self.topic!r} is not a topic's name; use letters, digits and . _ -", path="topic")
        if self.url is None:
            return StoreSink(self, Path(local_path(self.path or "")) / self.topic, None)
        storage = _storage(self.url, self)
        if self.staging is not None:
            staging = Path(local_path(self.staging, "staging"))
        else:
            staging = state_folder("staging is needed, as there is no home folder; give a folder on disk") / "staging"
        folder = staging / _place_name(self.url, self.options) / self.topic
        return StoreSink(self, folder, Uploader(self.name, folder, storage, self.retry))


def _storage(url: str, config: StoreSinkConfig) -> Storage:
    return open_storage(f"{url.rstrip('/')}/{config.topic}", config.options)


def _place_name(url: str, options: dict[str, Any]) -> str:
    """Return the name of a destination's staging folder, so that its files are not uploaded to another destination."""
    inner = options.get("client_kwargs")
    ends = [options.get(name) for name in ("endpoint_url", "host", "port")]
    ends += [inner.get("endpoint_url") if isinstance(inner, dict) else None]
    digest = hashlib.sha256(repr([url.rstrip("/"), *ends]).encode()).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', url)[:60].strip('-.')}-{digest[:12]}"


class StoreSink:
    """See ``StoreSinkConfig``. A batch is on disk (fsync) when ``write`` returns.

    A thread finishes files of ``max_age``, and uploads.
    """

    def __init__(self, config: StoreSinkConfig, folder: Path, uploader: Uploader | None) -> None:
        self._config = config
        self._folder = folder
        self._max_file_bytes = config.max_file_bytes
        self._max_age = config.max_age or (_DEFAULT_AGE if uploader else None)
        self._name = config.name
        self._parts: dict[str, Part] = {}
        self._lock = threading.Lock()
        self._uploads = uploader
        self._staged = 0
        self._closing = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Finish the files that a killed writer left, and start to upload them."""
        try:
            mend(self._folder)
            if self._uploads:
                self._uploads.tidy()
                self._staged = self._uploads.staged_bytes()
        except OSError as error:
            raise SinkError(self._reason(error)) from error
        if self._thread is None and self._max_age is not None:
            self._thread = threading.Thread(target=self._keep, name=f"balog {self._name}", daemon=True)
            self._thread.start()

    def probe(self) -> str:
        """Check that the folder on disk is writable. With a URL, write an empty hidden file and remove it.

        Raises:
            SinkError: it is not writable.
        """
        try:
            note = check_folder(self._folder)
        except OSError as error:
            raise SinkError(self._reason(error)) from None
        if self._config.url is None:
            return note
        storage = _storage(self._config.url, self._config)
        name = f"{MANIFESTS}/.probe-{new_id()}"
        try:
            storage.write(b"", name)
            storage.remove(name)
        except StorageError as error:
            raise SinkError(str(error), retryable=error.retryable) from None
        finally:
            storage.close()
        return ""

    def write(self, batch: Sequence[Delivery]) -> None:
        """Append a batch, each event to the file of its day."""
        if self._uploads and self._staged >= _MAX_STAGED_BYTES:
            self._staged = self._uploads.staged_bytes()
            if self._staged >= _MAX_STAGED_BYTES:
                raise SinkError(f"{self._staged} bytes wait in {self._folder} to be uploaded{self._uploads.error}")
        days: dict[str, list[int]] = {}
        for index, delivery in enumerate(batch):
            days.setdefault(delivery.event.header.timestamp.strftime("%Y-%m-%d"), []).append(index)
        with self._lock:
            while days:
                day, indexes = next(iter(days.items()))
                try:
                    self._append(day, [batch[index] for index in indexes])
                except OSError as error:
                    left = sorted(index for of_day in days.values() for index in of_day)
                    raise SinkError(self._reason(error), remaining=left) from error
                for index in days.pop(day):
                    batch[index].accept()

    def _append(self, day: str, deliveries: list[Delivery]) -> None:
        part = self._parts.pop(day, None) or self._begin(day)
        self._parts[day] = part  # the most recently used one is last
        times = [delivery.event.header.timestamp for delivery in deliveries]
        before = part.size
        data = b"\n".join(delivery.body for delivery in deliveries) + b"\n"
        part.append(data, len(deliveries), min(times), max(times))
        self._staged += part.size - before
        if part.size >= self._max_file_bytes:
            with suppress(OSError):  # the batch is durable; the next one tries again to finish the file
                self._finish(day)

    def _begin(self, day: str) -> Part:
        if len(self._parts) >= _MAX_OPEN_FILES:
            self._finish(next(iter(self._parts)))
        return Part(self._folder, day, new_id())

    def _finish(self, day: str) -> None:
        self._parts[day].finish()
        del self._parts[day]
        self._woken.set()

    def _keep(self) -> None:
        """Finish old files and upload finished ones, until the sink closes."""
        while not self._closing.is_set():
            pause = self._finish_old()
            if self._uploads:
                pause = min(pause, self._uploads.run() or pause)
                with self._lock:
                    self._staged = self._uploads.staged_bytes()
            self._woken.wait(pause)
            self._woken.clear()

    def _finish_old(self) -> float:
        """Finish the files of ``max_age``. Return the seconds until the next one reaches it."""
        age = self._max_age or _DEFAULT_AGE
        with self._lock:
            now = time.monotonic()
            for day, part in list(self._parts.items()):
                if now - part.began >= age:
                    with suppress(OSError):  # tried again later
                        self._finish(day)
            left = [age - (now - part.began) for part in self._parts.values()]
        return max(_SHORTEST_PAUSE, min(left, default=age))

    def close(self) -> None:
        """Finish and upload all files. If that fails, they stay on disk, and the next sink for this archive does it."""
        with self._lock:
            parts, self._parts = list(self._parts.values()), {}
        errors = []
        for part in parts:
            try:
                part.finish()
            except OSError as error:
                part.release()
                errors.append(self._reason(error))
        self._closing.set()
        self._woken.set()
        if self._thread is not None:
            join(self._thread)
        left = self._uploads.close() if self._uploads else ""
        if errors:
            hidden = counted(len(errors), "file", "stay")
            raise SinkError(f"{errors[0]}; {hidden} hidden until a sink opens this archive again")
        if left:
            raise SinkError(left)

    def _reason(self, error: OSError) -> str:
        return f"{error.filename or self._folder}: {error.strerror or error}"
