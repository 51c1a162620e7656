"""Fixtures: HTTP servers, plain and with TLS."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.stand_ins.http_server import HttpStandIn


class TlsStandIn(NamedTuple):
    """A server whose certificate is signed by an authority that only ``ca_file`` knows."""

    server: HttpStandIn
    ca_file: str


@pytest.fixture
def http_server() -> Iterator[HttpStandIn]:
    with HttpStandIn() as server:
        yield server


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[TlsStandIn]:
    trustme = pytest.importorskip("trustme", reason="trustme is not installed")
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    ca_file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    with HttpStandIn(tls=context) as server:
        yield TlsStandIn(server, str(ca_file))
