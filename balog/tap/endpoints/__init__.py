"""Streams that are declared by the endpoint that they read: REST resources, fields of GraphQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.lazy_exports import deferred

if TYPE_CHECKING:
    from balog.tap.endpoints.graphql import GraphQLStream
    from balog.tap.endpoints.graphql_schema import graphql_type
    from balog.tap.endpoints.rest import RestStream

__all__ = ["GraphQLStream", "RestStream", "graphql_type"]

_HOMES = {
    "GraphQLStream": "balog.tap.endpoints.graphql",
    "RestStream": "balog.tap.endpoints.rest",
    "graphql_type": "balog.tap.endpoints.graphql_schema",
}

__getattr__ = deferred(globals(), _HOMES)
