"""Streams of bulk APIs: a job is created, polled until it is done, and its files are downloaded."""

from __future__ import annotations

import hashlib
import tempfile
import time
import uuid
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import nullcontext
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar
from urllib.parse import urlsplit

import msgspec

from balog.common.backoff import Backoff, BackoffSequence, read_retry_after
from balog.common.text import one_line
from balog.tap.catalog.entry import properties_of
from balog.tap.endpoints.bulk_job import BulkJob, JobLostError, JobReport, JobStore
from balog.tap.endpoints.endpoint import OWN, TEXT, EndpointStream, Values, is_map, names_in, values_at
from balog.tap.errors import SourceError, TapError
from balog.tap.http.client import Client
from balog.tap.json_schema.keywords import is_number, types_of
from balog.tap.paging.pages import Page
from balog.tap.patterns.file_formats import FORMATS, BadRow, ReadOptions, read_rows

if TYPE_CHECKING:
    from balog.tap.streams.context import Context
    from balog.tap.streams.settings import Checks

_PAGE = 1000
_MAX_BYTES = 1 << 40
_GONE = (403, 404, 410)
"""Statuses of files and jobs that expired; storage services answer 403 to an expired signature."""


def _is_words(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(word, str) and word for word in value)


_WORDS = (_is_words, "a tuple of texts")
_SECONDS = (lambda value: is_number(value) and 0 < value < float("inf"), "seconds, more than 0")


class BulkStream(EndpointStream):
    """A stream of a bulk API.

    ::

        @tap.stream()
        class Orders(BulkStream):
            create = "exports"
            body = {"table": "orders", "since": "{bookmark}"}
            poll = "exports/{job}"
            done, failed = ("completed",), ("failed", "expired")
            parts = "files.url"
            format = "csv"
            key_properties = ["id"]
            replication_key = "changed_at"

    The job's id is in the state from its creation on. A run that was killed polls the same job, and goes on after the
    last part whose records were written. Without a replication key each job is a new version of the table.

    An API that needs more overrides ``create_job``, ``poll_job`` or ``download_part``.

    Attributes:
        create: the path of the POST that creates a job, with placeholders.
        body: its JSON body, with placeholders in its texts.
        job: the path of the job's id in its answer.
        key_header: a header for a key of the request, ``Idempotency-Key``: the source creates one job for each key, so
            a run that is killed before the answer comes creates no second job.
        poll: the path of the job, with the placeholder ``{job}``.
        status: the path of the status in its answer.
        done: the values of the status of jobs that are complete.
        failed: those of jobs that will never be; all others are running.
        reason: the path of the reason of a failure in the answer.
        count: the path of the number of records in the answer; a job with another number of records is lost.
        parts: the path of the files in the answer: a URL, a list of URLs, or of objects (``files.url``).
        result: the path of the file, with ``{job}``, if the answer has no URLs.
        part_hosts: servers other than the API's that parts may be downloaded from, without its credentials:
            ``("*.s3.amazonaws.com",)``.
        format: ``csv`` (with a header), ``tsv``, ``jsonl``, ``json``, ``parquet`` or ``excel``. Files that begin as
            gzip or zstd do are decompressed.
        deadline: the seconds that a job may run. Then the stream fails, and the next run polls the job once more before
            it creates another one.
        poll_seconds: the upper limit of the first wait between polls; it doubles up to a minute.
        jobs: the maximum number of jobs of one sync, with those that failed or expired.
    """

    create: str = ""
    body: Mapping[str, Any] | None = None
    job: str = "id"
    key_header: str | None = None
    poll: str = ""
    status: str = "status"
    done: Collection[str] = ("done", "completed", "complete", "succeeded", "success", "finished")
    failed: Collection[str] = ("failed", "error", "expired", "cancelled", "canceled", "aborted")
    reason: str | None = None
    count: str | None = None
    parts: str | None = None
    result: str | None = None
    part_hosts: Collection[str] = ()
    format: str = "csv"
    deadline: float = 3600.0
    poll_seconds: float = 2.0
    jobs: int = 3
    templates: ClassVar[tuple[str, ...]] = ("create", "body", "poll", "result")
    placeholders: ClassVar[tuple[str, ...]] = (*OWN, "job")
    own_settings: ClassVar[Checks] = {
        **dict.fromkeys(("count", "create", "job", "key_header", "parts", "poll", "reason", "result", "status"), TEXT),
        **dict.fromkeys(("deadline", "poll_seconds"), _SECONDS),
        **dict.fromkeys(("done", "failed", "part_hosts"), _WORDS),
        "body": (is_map, "a dict"),
        "format": (lambda value: value in FORMATS, " or ".join(FORMATS)),
        "jobs": (lambda value: type(value) is int and value >= 1, "a whole number, at least 1"),
    }

    def __init__(self, name: str = "", *, place: str = "", **settings: Any) -> None:
        super().__init__(name, place=place, **settings)
        if self.parent is not None or self.for_each is not None:
            raise TapError(f"{self.title}: a bulk stream has one job, so it has no parent= and no for_each=")
        kind = type(self)
        for setting, method in (("create", "create_job"), ("poll", "poll_job")):
            if getattr(kind, method) is getattr(BulkStream, method) and not getattr(self, setting):
                raise TapError(f"{self.title}: set {setting}=, or override {method}")
        if kind.poll_job is BulkStream.poll_job and bool(self.parts) == bool(self.result):
            raise TapError(f"{self.title}: set parts= or result=, and not both")
        if both := {word.lower() for word in self.done} & {word.lower() for word in self.failed}:
            raise TapError(f"{self.title}: {sorted(both)[0]!r} is in done and in failed")
        self.is_sorted = False

    # -- the source, which subclasses may override -------------------------------------------------------------------

    def create_job(self, client: Any, context: Context, key: str) -> str:
        """Create a job, and return its id.

        Args:
            client: the tap's client.
            context: the stream's context.
            key: the same in each run that creates this job.
        """
        values = Values(context, None)
        headers = {self.key_header: key} if self.key_header else None
        answer = client.request(
            "POST",
            self.filled_path("create", values),
            json=self.filled("body", values) or {},
            headers=headers,
            is_repeatable=bool(self.key_header),
        )
        job_id = Page(answer, None, 1, None).at(self.job)
        if isinstance(job_id, bool) or not isinstance(job_id, (str, int)) or job_id == "":
            raise SourceError(f"the answer to the creation of a job has no id at {self.job!r}")
        return str(job_id)

    def poll_job(self, client: Any, context: Context, job: str) -> JobReport:
        """Ask for a job.

        Args:
            client: the tap's client.
            context: the stream's context.
            job: the id that ``create_job`` returned.

        Returns:
            Whether the job is running, done or lost. A running one may have the seconds until the next poll.

        Raises:
            SourceError: the answer has no status.
        """
        values = Values(context, {"job": job})
        answer = client.request("GET", self.filled_path("poll", values), allow=(404, 410))
        if answer.status in (404, 410):
            return JobReport("lost", reason="the source does not know it any more")
        page = Page(answer, None, 1, None)
        status = page.at(self.status)
        if not isinstance(status, str):
            raise SourceError(f"the job has no status at {self.status!r}")
        if status.lower() in {word.lower() for word in self.failed}:
            reason = page.at(self.reason) if self.reason else None
            why = f": {one_line(str(reason))[:200]}" if reason else ""
            return JobReport("lost", reason=f"its status is {one_line(status)[:200]}{why}")
        if status.lower() not in {word.lower() for word in self.done}:
            return JobReport("running", retry_after=read_retry_after(answer.headers.get("retry-after")))
        count = page.at(self.count) if self.count else None
        if self.count and type(count) is not int:
            raise SourceError(f"the job has no number of records at {self.count!r}")
        return JobReport("done", self._part_urls(page, values), count)

    def download_part(self, client: Any, context: Context, part: str, file: BinaryIO) -> None:
        """Write a part to a file.

        Args:
            client: the tap's client.
            context: the stream's context.
            part: the URL or path of the part.
            file: an empty file, open for writing bytes.

        Raises:
            JobLostError: the part is gone.
        """
        answer = self._client_for(client, part).download(part, file, allow=_GONE)
        if answer.status in _GONE:
            raise JobLostError(f"a file is gone: the source answered {answer.status}")

    # -- the steps ----------------------------------------------------------------------------------------------------

    def records(self, client: Any, context: Context, parent: Any = None, item: Any = None) -> Iterator[Any]:
        """Yield the records of a job, a page at a time."""
        is_full = context.entry.replication_key is None
        attempt = 0
        while True:
            try:
                with context.full_table() if is_full else nullcontext():
                    store = JobStore(context, self._digest(context))
                    job = store.job or store.begin(uuid.uuid4().hex, attempt + 1)
                    attempt = job.attempt
                    if not job.id:
                        job = store.created(job, self.create_job(client, context, job.key))
                    job = yield from self._read(client, context, store, job)
                    store.finish(job)
                return
            except JobLostError as error:
                store.drop()
                if attempt >= self.jobs:
                    raise SourceError(f"{attempt} jobs were lost; the last one: {error}") from None
                context.log.warning(f"A job was lost, and another one is created: {error}", attempt=attempt)

    def _read(
        self, client: Any, context: Context, store: JobStore, job: BulkJob
    ) -> Generator[list[Any], None, BulkJob]:
        """Yield pages of the parts that were not read yet, and return the job as it is then."""
        report = self._waited(client, context, job)
        if job.parts > len(report.parts):
            raise JobLostError(f"it has {len(report.parts)} parts, and {job.parts} were read")
        properties = properties_of(context.entry.schema)
        texts = {name for name, schema in properties.items() if "null" not in (types_of(schema) or ("null",))}
        while job.parts < len(report.parts):
            with tempfile.TemporaryFile() as file:
                try:
                    self.download_part(client, context, report.parts[job.parts], file)
                except JobLostError:  # the URL may have expired, and the job not
                    report = self._waited(client, context, job)
                    self.download_part(client, context, report.parts[job.parts], file)
                file.seek(0)
                count = 0
                try:
                    rows = rows_of(file, self.format, texts)
                    while page := list(islice(rows, _PAGE)):
                        count += len(page)
                        yield page
                except SourceError as error:
                    raise SourceError(f"part {job.parts + 1} of {len(report.parts)}: {error.reason}") from None
            job = store.written(job, count)
        if report.records is not None and report.records != job.records:
            raise JobLostError(f"its parts have {job.records} records, and the source counts {report.records}")
        return job

    def _waited(self, client: Any, context: Context, job: BulkJob) -> JobReport:
        from balog.tap.patterns.concurrency import pause

        waits = BackoffSequence(Backoff(self.poll_seconds))
        left = self.deadline - job.age()
        until = time.monotonic() + left
        while (report := self.poll_job(client, context, job.id)).status != "done":
            if report.status == "lost":
                raise JobLostError(report.reason)
            wait = waits.next(report.retry_after)
            if time.monotonic() + wait <= until:
                pause(wait)
            elif left <= 0:
                raise JobLostError(f"it has been running for more than {self.deadline:g} s")
            else:
                raise SourceError(
                    f"the job has been running for {self.deadline:g} s; the next run polls it again, or raise deadline="
                )
        return report

    def _digest(self, context: Context) -> str:
        """Return a digest of the request for a job, without the time."""
        templates = {name: self._parsed[name] for name in ("create", "body")}
        values = Values(context, None)
        given = {name: values.get(name) for name in names_in(templates) if name != "now"}
        text = msgspec.json.encode([self.create, self.body, given], enc_hook=str)
        return hashlib.blake2b(text, digest_size=8, usedforsecurity=False).hexdigest()

    # -- the answers --------------------------------------------------------------------------------------------------

    def _part_urls(self, page: Page, values: Values) -> list[str]:
        if self.result:
            return [self.filled_path("result", values)]
        parts = values_at(page.body, self.parts or "")
        urls = [parts] if isinstance(parts, str) else parts
        if not isinstance(urls, list) or not all(isinstance(url, str) and url for url in urls):
            raise SourceError(f"the job is done and has no URLs at {self.parts!r}")
        return urls

    def _client_for(self, client: Any, part: str) -> Client:
        """Return the client for a part: the tap's own, or one without credentials for another server.

        Raises:
            SourceError: the part is on a server that is not allowed.
        """
        if not isinstance(client, Client):
            raise SourceError("a bulk stream needs a client of balog.tap.http, or its own download_part")
        if "://" not in part or client.is_same_server(part):
            return client
        try:
            parts = urlsplit(part)
            host = (parts.hostname or "").lower()
        except ValueError:
            raise SourceError("a part has an invalid URL") from None
        is_allowed = any(fnmatchcase(host, pattern.lower()) for pattern in self.part_hosts)
        if not is_allowed or (parts.scheme != "https" and client.base_url.startswith("https:")):
            raise SourceError(
                f"a part is on the server {host[:100]!r}; if it is the source's, add it to part_hosts= (https only)"
            )
        return Client(f"{parts.scheme}://{parts.netloc}", policy=client.policy)


def rows_of(file: BinaryIO, format: str, texts: Collection[str]) -> Iterator[Any]:
    """Yield the records of a part; an empty field of CSV is null if it is not one of ``texts``.

    Raises:
        SourceError: the part is damaged or not of this format.
    """
    options = ReadOptions(format, max_bytes=_MAX_BYTES)
    for number, row in read_rows(file, "the file", options):
        if isinstance(row, BadRow):
            raise SourceError(f"the file: row {number}: {row.reason}")
        if format in ("csv", "tsv"):
            yield {name: value if value or name in texts else None for name, value in row.items()}
        else:
            yield row
