"""The jobs that a document asks for: those that run, and how they become those of another document."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from balog.delivery.control.monitor import OutcomeCount
from balog.delivery.document import ControlDocument, LoadedTable
from balog.delivery.jobs import Job, JobStatus, Kind
from balog.errors import BalogError
from balog.signals import join

__all__ = ["JobSet", "MakeJob", "counts_of", "wanted_jobs"]

MakeJob = Callable[[Kind, Any], Job]
"""Makes the job of a ``Filter``, a table or a ``Callback``; raises ConfigError for one that can't be."""

_Key = tuple[Kind, str]


def wanted_jobs(document: ControlDocument) -> dict[_Key, Any]:
    """Return the configs of what a service itself runs; what Spark runs is not among them."""
    return {
        **{("filter", one.name): one for one in document.filters if one.engine == "service"},
        **{("table", one.name): one for one in document.tables if not isinstance(one, LoadedTable)},
        **{("callback", one.name): one for one in document.callbacks},
    }


class JobSet:
    """The jobs of a service. Changed by one thread, asked by any.

    Args:
        make_job: makes one.
        say: takes a line for people.
        drain: seconds that a job's stop may take.
    """

    def __init__(self, make_job: MakeJob, say: Callable[[str], None], drain: float) -> None:
        self._make = make_job
        self._say = say
        self._drain = drain
        self._running: dict[_Key, tuple[Any, Job]] = {}

    def change(self, document: ControlDocument, then: Callable[[], None]) -> set[str]:
        """Become the jobs of a document: the same ones go on untouched, changed ones end before they begin anew.

        Args:
            then: called when all run that are new or changed, and before those end that are gone. When it raises, or
                a job does, all is as it was.

        Returns:
            The new and changed ones, as ``filter NAME``.

        Raises:
            BalogError: the document asks for what can't be here, such as a secret that is not there.
        """
        wanted = wanted_jobs(document)
        running = self._running
        new = {
            key: (config, self._create(key, config))
            for key, config in wanted.items()
            if key not in running or running[key][0] != config
        }
        replaced = {key: running[key] for key in new if key in running}
        started: list[Job] = []
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
        return {f"{kind} {name}" for kind, name in new}

    def statuses(self) -> list[JobStatus]:
        """Tell how each job is."""
        return [job.status() for _, job in self._running.values()]

    def stop(self) -> None:
        """End all, each within ``drain`` seconds, at the same time."""
        self._stop(job for _, job in self._running.values())

    def _create(self, key: _Key, config: Any) -> Job:
        job = self._make(key[0], config)
        job.check()  # before the one that it replaces ends
        return job

    def _restart(self, key: _Key, config: Any) -> Job:
        job = self._make(key[0], config)
        try:
            job.start()
        except BalogError as error:
            self._say(f"{key[0]} {key[1]} could not be begun again: {error}")
        return job

    def _stop(self, jobs: Iterable[Job]) -> None:
        threads = [threading.Thread(target=self._stop_one, args=(job,), daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            join(thread)

    def _stop_one(self, job: Job) -> None:
        try:
            job.stop(self._drain)
        except Exception as error:  # one that can't end holds up none of the others
            self._say(f"{job.kind} {job.name} did not end: {type(error).__name__}: {error}")


def counts_of(statuses: Iterable[JobStatus]) -> dict[str, OutcomeCount]:
    """Return what is counted of each job; one that ended by itself is in trouble."""
    return {
        f"{one.kind} {one.name}": OutcomeCount(
            one.done,
            one.failed + one.dead,
            one.error or ("it ended by itself" if one.state == "stopped" else ""),
        )
        for one in statuses
        if one.state != "disabled"
    }
