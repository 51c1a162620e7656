"""What runs inside a service because the document says so: filters, tables, callbacks."""

from balog.delivery.jobs.base import Job, JobStatus, Kind

__all__ = ["Job", "JobStatus", "Kind"]
