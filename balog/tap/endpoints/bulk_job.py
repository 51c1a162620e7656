"""The job of a bulk stream: its steps, and how the state keeps them so that a killed run goes on with the same job."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from balog.common.errors import BalogError
from balog.tap.bookmarks.order import order_of
from balog.tap.errors import SourceError

if TYPE_CHECKING:
    from balog.tap.streams.context import Context


@dataclass(frozen=True)
class JobReport:
    """What the source reports about a job.

    Attributes:
        status: ``running``, ``done`` or ``lost`` (failed, expired or unknown).
        parts: the URLs or paths of the files of a job that is done, in an order that does not change.
        records: the number of records in all parts; None if the source does not say.
        reason: why it is lost.
        retry_after: seconds that the source asks to wait.
    """

    status: str
    parts: list[str] = field(default_factory=list)
    records: int | None = None
    reason: str = ""
    retry_after: float | None = None


class JobLostError(BalogError):
    """A job failed, expired, or its files are gone: another one can be created."""


class BulkJob(msgspec.Struct, omit_defaults=True):
    """A job in the state.

    Attributes:
        key: made before the job is created, for sources that create one job for each key.
        request: a digest of the request; a job that was created for another request is not resumed.
        attempt: the number of jobs of this sync, from 1.
        id: the source's id; "" before it is created.
        created: when it was created, in seconds since 1970.
        parts: the number of parts whose records were written.
        records: the number of their records.
        highest: the largest replication value in them.
    """

    key: str
    request: str
    attempt: int = 1
    id: str = ""
    created: float = 0.0
    parts: int = 0
    records: int = 0
    highest: Any = None

    def age(self) -> float:
        """Return the seconds since it was created."""
        return max(0.0, time.time() - self.created)


class JobStore:
    """Keeps the job of a stream in the state, which is written after each step.

    A full table keeps it as the position, so that the next run goes on with the same version of the table.
    """

    _NAME = "job"

    def __init__(self, context: Context, request: str) -> None:
        self._context, self._request = context, request
        self.key = context.entry.replication_key
        self.job = self._load()

    def _load(self) -> BulkJob | None:
        context = self._context
        kept = context.log_position if self.key is None else context.kept(self._NAME)
        if kept is None:
            return None
        try:
            job = msgspec.convert(kept, BulkJob)
        except msgspec.ValidationError:
            raise SourceError("the job in the state is not one of this stream; remove it") from None
        if job.request != self._request:
            context.log.warning("The job in the state was created for another request: another one is created")
            self.drop()
            return None
        return job

    def _save(self, job: BulkJob) -> BulkJob:
        """Write the job to the state now, and return it."""
        self.job = job
        document = msgspec.to_builtins(job)
        if self.key is None:
            self._context.set_bookmark(document)
            self._context.checkpoint()
        else:
            self._context.keep(self._NAME, document, at_once=True)
        return job

    def begin(self, key: str, attempt: int) -> BulkJob:
        """Record that a job will be created."""
        return self._save(BulkJob(key=key, request=self._request, attempt=attempt))

    def created(self, job: BulkJob, id: str) -> BulkJob:
        """Record the source's id of the job."""
        return self._save(structs.replace(job, id=id, created=time.time()))

    def written(self, job: BulkJob, records: int) -> BulkJob:
        """Record that the records of one more part were written."""
        highest = job.highest
        if self.key is not None:
            try:
                highest = order_of(self._context.entry.schema, self.key).latest(highest, self._context.highest)
            except ValueError as error:
                raise SourceError(f"the job's largest {self.key!r}: {error}") from None
        return self._save(structs.replace(job, parts=job.parts + 1, records=job.records + records, highest=highest))

    def drop(self) -> None:
        """Remove the job from the next state."""
        self.job = None
        if self.key is None:
            self._context.set_bookmark(None)
        else:
            self._context.keep(self._NAME, None)

    def finish(self, job: BulkJob) -> None:
        """Move the bookmark to the largest value of all parts, those of earlier runs too, and remove the job."""
        if self.key is not None:  # the end of a full table removes its position
            self.drop()
            if job.highest is not None:
                self._context.set_bookmark(job.highest)
