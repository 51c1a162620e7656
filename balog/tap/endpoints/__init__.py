"""Streams that are declared by the endpoint that they read: REST resources, fields of GraphQL, bulk jobs, files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.common.lazy_exports import deferred

if TYPE_CHECKING:
    from balog.tap.endpoints.bulk import BulkStream
    from balog.tap.endpoints.bulk_job import JobLostError, JobReport
    from balog.tap.endpoints.file_stream import FileStream
    from balog.tap.endpoints.graphql import GraphQLStream
    from balog.tap.endpoints.graphql_schema import graphql_type
    from balog.tap.endpoints.rest import RestStream

__all__ = ["BulkStream", "FileStream", "GraphQLStream", "JobLostError", "JobReport", "RestStream", "graphql_type"]

_HOMES = {
    "BulkStream": "balog.tap.endpoints.bulk",
    "FileStream": "balog.tap.endpoints.file_stream",
    "GraphQLStream": "balog.tap.endpoints.graphql",
    "JobLostError": "balog.tap.endpoints.bulk_job",
    "JobReport": "balog.tap.endpoints.bulk_job",
    "RestStream": "balog.tap.endpoints.rest",
    "graphql_type": "balog.tap.endpoints.graphql_schema",
}

__getattr__ = deferred(globals(), _HOMES)
