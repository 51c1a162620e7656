"""Servers that stand in for the other sides of the HTTP client."""

from tests.stand_ins.http_fixtures import http_server, tls_server

__all__ = ["http_server", "tls_server"]
