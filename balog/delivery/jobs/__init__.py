"""The jobs that a service runs for its control document: filters, tables, callbacks."""

from balog.delivery.jobs.base import Job, JobStatus, Kind

__all__ = ["Job", "JobStatus", "Kind"]
