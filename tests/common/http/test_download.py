"""Tests of ``balog.common.http.download``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from balog.common.http.download import DownloadError, download
from tests.stand_ins.http_server import Answer, HttpStandIn


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpStandIn]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with HttpStandIn() as server:
        yield server


def test_a_body_is_read_up_to_the_limit(server: HttpStandIn) -> None:
    server.respond = lambda request: Answer(200, b"0123456789")
    assert download(f"{server.url}/a", 100) == b"0123456789"
    assert download(f"{server.url}/a", 4) == b"0123"


def test_redirects_are_followed_but_not_for_ever(server: HttpStandIn) -> None:
    server.will(Answer(302, headers={"Location": "b"}), Answer(200, b"here"))
    assert download(f"{server.url}/a", 100) == b"here"
    assert [request.path for request in server.requests] == ["/a", "/b"]
    server.respond = lambda request: Answer(302, headers={"Location": "/a"})
    with pytest.raises(DownloadError, match="more than 10 redirects"):
        download(f"{server.url}/a", 100)


def test_a_redirect_to_a_file_is_refused(server: HttpStandIn) -> None:
    server.will(Answer(302, headers={"Location": "file:///etc/passwd"}))
    with pytest.raises(DownloadError, match="not http"):
        download(f"{server.url}/a", 100)


@pytest.mark.parametrize(("answer", "reason"), [(Answer(404), "HTTP Error 404"), (Answer(trouble="close"), "broke")])
def test_what_is_no_success_is_an_error(server: HttpStandIn, answer: Answer, reason: str) -> None:
    server.will(answer)
    with pytest.raises(DownloadError, match=reason):
        download(f"{server.url}/a", 100)


def test_the_environment_s_proxy_is_asked(server: HttpStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    download("http://example.com/a", 100)
    assert server.requests[0].path == "http://example.com/a"
