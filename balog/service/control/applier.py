"""Applies new versions of the control document while a service runs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timezone

from balog.common.backoff import Backoff, BackoffSequence
from balog.common.errors import BalogError, ConfigError
from balog.service.control.folder import FolderControl, VersionCache
from balog.service.control.jobs import JobSet, MakeJob
from balog.service.control.store import DocumentVersion, ServiceStatus, State
from balog.service.control.validation import read_document
from balog.service.document import ControlDocument
from balog.service.jobs.engine_job import error_line

REPORT_SECONDS = 10.0
_WAIT_SECONDS = 1.0
_MAX_ATTEMPTS = 20
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0
"""Seconds until a rejected version is tried again, for example because a secret was missing."""

_JOIN_SECONDS = 30.0
_MAX_REASON = 300


class Applier:
    """Keeps a service at the newest version that it can apply.

    Args:
        control: the version store; None for the empty document.
        service: the name in status reports.
        make_job: creates the job of a filter, a table or a callback.
        apply: routes events according to a document from now on.
        check: finds the problems of a valid document on this service.
        say: prints one line for the operator.
        poll: seconds between two reads of the store, with jitter, so that a fleet does not poll at once.
        drain: seconds for a job to stop.
        cache: the local copy of the applied version, for a start without the store.
    """

    def __init__(
        self,
        control: FolderControl | None,
        service: str,
        *,
        make_job: MakeJob,
        apply: Callable[[ControlDocument], None],
        check: Callable[[ControlDocument], Iterable[ConfigError]] = lambda document: (),
        say: Callable[[str], None] = lambda line: None,
        poll: float = 2.0,
        drain: float = 20.0,
        cache: VersionCache | None = None,
    ) -> None:
        self.service = service
        self.document = ControlDocument()
        self.entry: DocumentVersion | None = None
        self._control = control
        self._apply_document = apply
        self._check = check
        self._say = say
        self._poll = poll
        self._cache = cache
        self.jobs = JobSet(make_job, say, drain)
        self._head: DocumentVersion | None = None
        self._delays = BackoffSequence(Backoff(FIRST_PAUSE, LONGEST_PAUSE))
        self._again_at = float("-inf")
        self._state: State = "applied"
        self._reason = ""
        self._error = ""
        self._applied: datetime | None = None
        self._report_due = 0.0
        self._condition = threading.Condition()
        self._is_poll_requested = False
        self._is_stopping = False
        self._polls = 0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Apply the newest applicable version, and start the polling thread.

        Raises:
            StorageError, ControlError: the store cannot be read, and the cache holds no applicable version. A service
                without a known document does not start.
        """
        if self._control is None:
            self._apply_document(self.document)
            return
        try:
            self._apply_newest(self._control)
        except BalogError as error:
            cache = self._cache.read() if self._cache is not None else None
            if cache is None or not self._apply(self._control, *cache):
                raise
            self._head = self.entry
            number = cache[0].number
            self._say(
                f"control: {error_line(error)[:_MAX_REASON]}; starts with version {number}, which was applied here last"
            )
        self._thread = threading.Thread(target=self._run, args=(self._control,), name="balog control", daemon=True)
        self._thread.start()

    def _apply_newest(self, control: FolderControl) -> None:
        """Apply the newest applicable version, else the empty document."""
        self._head = head = control.head()
        for number in range(head.number if head else 0, 0, -1):
            entry = head if head and number == head.number else control.entry(number)
            if self._apply(control, entry, is_fallback=number < (head.number if head else 0)):
                break
            if head and head.number - number >= _MAX_ATTEMPTS:
                break
        if self.entry is None:
            self._apply_document(self.document)

    def stop(self) -> None:
        """Stop the thread, then the jobs."""
        with self._condition:
            self._is_stopping = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)  # an unreachable store must not delay the stop
        self.jobs.stop()
        if self._control is not None and self._thread is not None and not self._thread.is_alive():
            self._state = "stopped"
            self._report(self._control)

    def await_version(self, number: int, timeout: float = 10.0) -> ServiceStatus:
        """Read the store now and return the status. Wait at most ``timeout`` seconds until the version was tried."""
        deadline = time.monotonic() + timeout
        with self._condition:
            polls = self._polls
            self._is_poll_requested = True
            self._condition.notify_all()
            while not self._is_stopping and (self._head is None or self._head.number < number or self._polls == polls):
                if not self._condition.wait(deadline - time.monotonic()) or time.monotonic() >= deadline:
                    break
        return self.status()

    def status(self) -> ServiceStatus:
        """Return the applied version, its state and the status of the jobs."""
        return ServiceStatus(
            service=self.service,
            number=self.entry.number if self.entry else 0,
            sha=self.entry.sha if self.entry else "",
            head=self._head.number if self._head else 0,
            state=self._state,
            reason=self._reason or self._error,
            when=datetime.now(timezone.utc),
            applied=self._applied,
            every=REPORT_SECONDS,
            jobs=self.jobs.statuses(),
        )

    def _run(self, control: FolderControl) -> None:
        poll_due = time.monotonic()
        while True:
            now = time.monotonic()
            with self._condition:
                if self._is_stopping:
                    return
                is_poll_requested, self._is_poll_requested = self._is_poll_requested, False
            if is_poll_requested or now >= poll_due:
                self._try_poll(control)
                poll_due = time.monotonic() + self._poll * random.uniform(0.75, 1.25)
                with self._condition:
                    self._polls += 1
                    self._condition.notify_all()
            if time.monotonic() >= self._report_due:
                self._report(control)
            with self._condition:
                if not self._is_poll_requested and not self._is_stopping:
                    self._condition.wait(max(min(_WAIT_SECONDS, poll_due - time.monotonic()), 0.01))

    def _try_poll(self, control: FolderControl) -> None:
        """Read the store. If that fails, keep the applied version; the next poll tries again."""
        try:
            self._poll_store(control)
        except Exception as error:
            reason = error_line(error)[:_MAX_REASON]
            if reason != self._error:
                self._say(f"control: {reason}; keeps version {self.entry.number if self.entry else 0}")
            self._error = reason

    def _poll_store(self, control: FolderControl) -> None:
        head = control.head()
        self._error = ""
        if head is None:
            return
        is_new = self._head is None or head.number > self._head.number
        if not is_new and (self._state != "refused" or time.monotonic() < self._again_at):
            return
        if is_new:
            self._delays.reset()
        try:
            self._apply(control, head)
        except Exception as error:
            self._reject(head, error_line(error))
        self._again_at = time.monotonic() + self._delays.next()
        self._head = head
        self._report(control)

    def _apply(
        self, control: FolderControl, entry: DocumentVersion, data: bytes | None = None, *, is_fallback: bool = False
    ) -> bool:
        """Apply a version. Return whether that succeeded.

        Args:
            data: the version's document; None reads it from the store.
            is_fallback: the version is applied because a newer one was rejected; keep the reason of that.

        Raises:
            StorageError: the document cannot be read now.
        """
        try:
            data = control.document(entry.sha) if data is None else data
            document, problems = read_document(data, f"version {entry.number}")
            if document is not None:
                problems += self._check(document)
            if document is None or problems:
                more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
                self._reject(entry, f"{problems[0]}{more}", is_fallback)
                return False
            self.jobs.change(document, lambda: self._apply_document(document))
        except Exception as error:
            if getattr(error, "retryable", False):
                raise
            self._reject(entry, error_line(error), is_fallback)
            return False
        self.document, self.entry, self._applied = document, entry, datetime.now(timezone.utc)
        if not is_fallback:
            self._state, self._reason = "applied", ""
        self._say(f"control: version {entry.number} applied")
        self._cache_version(entry, data)
        return True

    def _cache_version(self, entry: DocumentVersion, data: bytes) -> None:
        try:
            if self._cache is not None:
                self._cache.write(entry, data)
        except BalogError as error:
            reason = error_line(error)[:_MAX_REASON]
            self._say(f"control: {reason}; version {entry.number} is not cached for a start without the store")

    def _reject(self, entry: DocumentVersion, reason: str, is_fallback: bool = False) -> None:
        text = f"version {entry.number}: {reason}"[:_MAX_REASON]
        if text != self._reason:
            self._say(f"control: version {entry.number} can't be applied: {reason}")
        if not is_fallback:
            self._state, self._reason = "refused", text

    def _report(self, control: FolderControl) -> None:
        self._report_due = time.monotonic() + REPORT_SECONDS
        try:
            control.report(self.status())
        except BalogError as error:
            self._error = error_line(error)[:_MAX_REASON]
