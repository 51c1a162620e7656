import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from balog.backoff import Backoff
from balog.broker.batches import presigned
from balog.broker.batches.config import BatchConfig
from balog.broker.batches.reader import BatchReader
from balog.broker.editor import PipeError
from tests.stand_ins.http_server import Answer, HttpStandIn

ROWS = b"".join(b'{"id":%d}\n' % number for number in range(1000))


@pytest.fixture
def server() -> Iterator[HttpStandIn]:
    with HttpStandIn() as started:
        yield started


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presigned, "_BACKOFF", Backoff(0.01, 0.01))


def read(url: str, *, allowed: str = "http", batch: dict[str, Any] | None = None, **config: Any) -> int:
    """Give how many rows a broker reads of a signed URL."""
    place = url.partition("/bucket")[0] if allowed == "http" else allowed
    reader = BatchReader(BatchConfig(to="records", allowed=[place], timeout=5, **config), None, None, print)
    message = {"type": "BATCH", "stream": "a", "manifest": [url], **(batch or {})}
    return sum(1 for _ in reader.edit("BATCH", json.dumps(message).encode()) or ())


def signed(server: HttpStandIn) -> str:
    return f"{server.url}/bucket/a%20b.jsonl?X-Amz-Signature=hidden&X-Amz-Expires=60"


def test_a_file_is_read_with_one_get_of_the_url_as_it_is(server):
    server.will(Answer(body=ROWS))
    assert read(signed(server)) == 1000
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/bucket/a%20b.jsonl?X-Amz-Signature=hidden&X-Amz-Expires=60")


def test_what_the_server_packs_on_the_way_is_the_file_as_it_lies_there(server):
    """Given an object with Content-Encoding gzip, as stores have it, then its bytes are taken as they are stored."""
    server.will(Answer(body=gzip.compress(ROWS), headers={"Content-Encoding": "gzip"}))
    assert read(signed(server), batch={"compression": {"name": "gzip"}}) == 1000


def test_a_server_that_is_busy_is_asked_again(server):
    server.will(Answer(503), Answer(trouble="reset"), Answer(body=ROWS))
    assert read(signed(server)) == 1000


@pytest.mark.parametrize(
    ("answers", "problem", "requests"),
    [
        ([Answer(403)], "403, not allowed, or the URL has expired", 1),
        ([Answer(404)], "404, it is not there", 1),
        ([Answer(302, headers={"Location": "http://127.0.0.1:1/"})], "302, which leads elsewhere", 1),
        ([Answer(500)] * 3, "the server answers 500", 3),
        ([Answer(trouble="close")] * 3, "the connection broke", 3),
        ([Answer(body=ROWS, trouble="half")], "not read to its end", 1),
        ([Answer(body=b"", headers={"Content-Length": str(1 << 40)})], "more than 8589934592", 1),
    ],
)
def test_trouble_is_one_line_without_the_signature(server, answers, problem, requests):
    server.will(*answers)
    with pytest.raises(PipeError, match=problem) as caught:
        read(signed(server))
    assert "hidden" not in str(caught.value)
    assert f"{server.url}/bucket/a%20b.jsonl" in str(caught.value)
    assert len(server.requests) == requests


def test_a_server_that_is_not_there_is_said(server):
    url = signed(server)
    server.stop()
    with pytest.raises(PipeError, match="cannot connect"):
        read(url)


def test_another_host_is_not_asked(server):
    with pytest.raises(PipeError, match=r"batch\.allowed"):
        read(signed(server), allowed="https://127.0.0.1")
    assert server.requests == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that is its own authority."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    san = ["-addext", "subjectAltName=DNS:localhost", "-keyout", path, "-out", path.with_suffix(".crt")]
    subprocess.run([*command.split(), *san], check=True, capture_output=True)
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


def test_certificates_are_verified(certificate):
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with HttpStandIn(lambda _: Answer(body=ROWS), tls=context) as server:
        with pytest.raises(PipeError, match="certificate"):
            read(signed(server))
        assert server.requests == []
        assert read(signed(server), ca_file=str(certificate.with_suffix(".crt"))) == 1000
