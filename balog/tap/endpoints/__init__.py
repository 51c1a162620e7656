"""Streams that are declared by the endpoint that they read: REST resources."""

from balog.tap.endpoints.rest import RestStream

__all__ = ["RestStream"]
