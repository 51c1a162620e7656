"""The running jobs of a document, and the change to those of another document."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from balog.common.errors import BalogError
from balog.common.signals import join
from balog.service.document import ControlDocument
from balog.service.jobs import JobStatus, Kind, service_jobs
from balog.service.jobs.engine_job import EngineJob, error_line

MakeJob = Callable[[Kind, Any], EngineJob]
"""Creates the job of a ``Filter``, a table or a ``Callback``; raises ConfigError."""

_Key = tuple[Kind, str]


class JobSet:
    """The jobs of a service. One thread changes them; any thread may read their status.

    Args:
        make_job: creates a job.
        say: prints one line for the operator.
        drain: seconds for a job to stop.
    """

    def __init__(self, make_job: MakeJob, say: Callable[[str], None], drain: float) -> None:
        self._make = make_job
        self._say = say
        self._drain = drain
        self._running: dict[_Key, tuple[Any, EngineJob]] = {}

    def change(self, document: ControlDocument, then: Callable[[], None]) -> None:
        """Run the jobs of a document. Unchanged jobs go on; a changed job stops before its replacement starts.

        Args:
            then: called when the new and changed jobs run, before removed ones stop. If it or a job raises, the earlier
                jobs are restored.

        Raises:
            BalogError: a job cannot start on this service, for example because a secret is missing.
        """
        wanted = {(kind, config.name): config for kind, _, config in service_jobs(document)}
        running = self._running
        new = {
            key: (config, self._create(key, config))
            for key, config in wanted.items()
            if key not in running or running[key][0] != config
        }
        replaced = {key: running[key] for key in new if key in running}
        started: list[EngineJob] = []
        try:
            self._stop(job for _, job in replaced.values())
            for _, job in new.values():
                started.append(job)
                job.start()
            then()
        except BaseException:
            self._stop(started)
            self._running = {
                **running,
                **{key: (config, self._restart(key, config)) for key, (config, _) in replaced.items()},
            }
            raise
        removed = [job for key, (_, job) in running.items() if key not in wanted]
        self._running = {key: new[key] if key in new else running[key] for key in wanted}
        self._stop(removed)

    def statuses(self) -> list[JobStatus]:
        """Return the status of each job."""
        return [job.status() for _, job in self._running.values()]

    def stop(self) -> None:
        """Stop all jobs at the same time, each within ``drain`` seconds."""
        self._stop(job for _, job in self._running.values())

    def _create(self, key: _Key, config: Any) -> EngineJob:
        job = self._make(key[0], config)
        job.check()  # before the replaced job stops
        return job

    def _restart(self, key: _Key, config: Any) -> EngineJob:
        job = self._make(key[0], config)
        try:
            job.start()
        except BalogError as error:
            self._say(f"{key[0]} {key[1]} could not be restarted: {error}")
        return job

    def _stop(self, jobs: Iterable[EngineJob]) -> None:
        threads = [threading.Thread(target=self._stop_one, args=(job,), daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            join(thread)

    def _stop_one(self, job: EngineJob) -> None:
        try:
            job.stop(self._drain)
        except Exception as error:  # a job that fails to stop must not affect the others
            self._say(f"{job.kind} {job.name} did not stop: {error_line(error)}")
