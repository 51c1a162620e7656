import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import requests

from balog.tap.errors import TapError
from balog.tap.http import Policy, instrument
from balog.testing import capture_events
from tests.stand_ins.http_server import Answer, HttpStandIn

AT_ONCE = Policy(tries=3, sleep=lambda seconds: None)
Make = Callable[[], Any]


@pytest.fixture(params=[requests.Session, httpx.Client], ids=["requests", "httpx"])
def session(request: pytest.FixtureRequest) -> Iterator[Any]:
    with request.param() as session:
        yield session


def test_passing_troubles_are_tried_again(server: HttpStandIn, session: Any) -> None:
    server.will(Answer(503), Answer(trouble="close"), Answer(200, b'{"id":1}'))
    assert instrument(session, AT_ONCE).get(server.url).json() == {"id": 1}
    assert len(server.requests) == 3


def test_what_is_left_is_the_library_s_own(server: HttpStandIn, session: Any) -> None:
    server.respond = lambda request: Answer(502, b"no")
    response = instrument(session, AT_ONCE).get(server.url)
    assert (response.status_code, response.text) == (502, "no")
    with pytest.raises((requests.HTTPError, httpx.HTTPStatusError)):
        response.raise_for_status()
    assert len(server.requests) == 3
    server.stop()
    with pytest.raises((requests.ConnectionError, httpx.ConnectError)):
        session.get(server.url)


def test_a_post_is_tried_again_only_where_nothing_was_done(server: HttpStandIn, session: Any) -> None:
    instrument(session, AT_ONCE)
    server.will(Answer(429), Answer(200))
    assert session.post(server.url, data={"q": "x"}).status_code == 200
    server.will(Answer(500))
    assert session.post(server.url, data={"q": "x"}).status_code == 500
    assert [request.body for request in server.requests] == [b"q=x"] * 3


def test_a_body_that_can_be_read_once_is_sent_once(server: HttpStandIn, session: Any) -> None:
    server.will(Answer(503))
    pieces = iter([b"a", b"b"])
    body = {"data": pieces} if isinstance(session, requests.Session) else {"content": pieces}
    assert instrument(session, AT_ONCE).put(server.url, **body).status_code == 503
    assert [request.body for request in server.requests] == [b"ab"]


def test_each_request_is_timed_once_also_through_a_redirect(server: HttpStandIn, session: Any) -> None:
    server.will(Answer(302, headers={"Location": "/new"}), Answer(200))
    follow = {} if isinstance(session, requests.Session) else {"follow_redirects": True}
    with capture_events() as captured:
        instrument(session).get(f"{server.url}/old/12?token=s3cret", **follow)
    (event,) = captured
    assert event.payload["metric"] == "http_request_duration"
    assert event.payload["tags"] == {"endpoint": "/old/{id}", "http_status_code": 200, "status": "succeeded"}


def test_a_session_of_requests_does_not_wait_for_ever(server: HttpStandIn) -> None:
    server.respond = lambda request: Answer(trouble="hang")
    with instrument(requests.Session(), Policy(tries=1), timeout=0.1) as session:
        began = time.monotonic()
        with pytest.raises(requests.Timeout):
            session.get(server.url)
        assert time.monotonic() - began < 30


def test_what_is_no_session_is_refused() -> None:
    with requests.Session() as session:
        instrument(session)
        for wrong in (session, object()):
            with pytest.raises(TapError, match="expected a session"):
                instrument(wrong)
