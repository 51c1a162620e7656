"""The middlewares in front of real FastAPI, Flask and raw applications."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextvars import copy_context
from functools import partial
from typing import Any

import httpx
import pytest
import structlog
from fastapi import BackgroundTasks, Depends, FastAPI, HTTPException, WebSocket
from fastapi.responses import StreamingResponse
from flask import Flask, Response

from balog import bound, get_logger
from balog.log import middleware
from balog.log.middleware import AsgiMiddleware, WsgiMiddleware
from balog.testing import Events
from tests.waiting import run_threads

log = get_logger("app")


async def bind() -> Any:
    with bound(tenant="a"):
        yield


def asgi_app() -> FastAPI:
    app = FastAPI()

    @app.get("/items/{n}")
    async def item(n: int) -> int:
        await asyncio.sleep(0.001 * (n % 3))
        log.info("item", payload={"n": n})
        return n

    @app.get("/plain/{n}")
    def plain(n: int) -> int:
        log.info("plain", payload={"n": n})
        return n

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def chunks() -> Any:
            for n in range(3):
                log.info("chunk", payload={"n": n})
                yield f"{n}\n"

        return StreamingResponse(chunks())

    @app.get("/later")
    async def later(tasks: BackgroundTasks) -> str:
        tasks.add_task(log.info, "background", payload={})
        return "ok"

    @app.get("/teapot")
    async def teapot() -> None:
        raise HTTPException(418)

    @app.get("/fails")
    async def fails() -> None:
        raise ZeroDivisionError("no")

    @app.get("/bound", dependencies=[Depends(bind)])
    async def bound_endpoint() -> None:
        log.info("endpoint", payload={})
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(log.info, "to_thread", payload={})
        await loop.run_in_executor(None, partial(copy_context().run, log.info, "executor with a copy", payload={}))

    @app.get("/plain_bound", dependencies=[Depends(bind)])
    def plain_bound_endpoint() -> None:
        log.info("plain endpoint", payload={})

    @app.websocket("/ws")
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        log.info("socket", payload={})
        await websocket.close()

    return app


def wsgi_app() -> Flask:
    app = Flask(__name__)

    @app.get("/items/<int:n>")
    def item(n: int) -> str:
        log.info("item", payload={"n": n})
        return str(n)

    @app.get("/stream")
    def stream() -> Response:
        def chunks() -> Iterator[str]:
            for n in range(3):
                log.info("chunk", payload={"n": n})
                yield f"{n}\n"

        return Response(chunks())

    @app.get("/torn")
    def torn() -> Response:
        def chunks() -> Iterator[str]:
            yield "a"
            raise ZeroDivisionError("in the stream")

        return Response(chunks())

    @app.get("/fails")
    def fails() -> str:
        raise ZeroDivisionError("no")

    return app


async def ask(app: Any, path: str, **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(AsgiMiddleware(app, skip=["/items/0"]), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.get(path, headers=headers)


async def converse(app: Any, scope: Any, *incoming: str, order: list[str] | None = None) -> list[Any]:
    """Send messages of these types to an application. Return its own, whose types are also added to ``order``."""
    waiting, sent = iter(incoming), []

    async def receive() -> dict[str, str]:
        return {"type": next(waiting)}

    async def send(message: Any) -> None:
        sent.append(message)
        if order is not None:
            order.append(message["type"])

    await app(scope, receive, send)
    return sent


def requests_of(events: Events) -> list[tuple[Any, str, Any]]:
    return [
        (event.header.level, event.payload["message"], event.payload["fields"]["status"])
        for event in events
        if event.header.channel == "http.request"
    ]


class TestAsgi:
    def test_concurrent_requests_have_their_own_context(self, events: Events) -> None:
        async def all_at_once() -> list[httpx.Response]:
            kinds = ["items", "plain"]
            return await asyncio.gather(*(ask(asgi_app(), f"/{kinds[n % 2]}/{n + 1}") for n in range(40)))

        answers = asyncio.run(all_at_once())
        ids = {int(answer.text): answer.headers["x-request-id"] for answer in answers}
        assert len(set(ids.values())) == 40
        found = [event for event in events if "n" in event.payload]
        assert len(found) == 40
        for event in found:
            assert event.header.context["request_id"] == ids[event.payload["n"]]
            assert event.header.context["path"].endswith(f"/{event.payload['n']}")

    def test_nothing_is_bound_after_a_request(self, events: Events) -> None:
        async def ask_and_log() -> None:
            await ask(asgi_app(), "/items/1")
            log.info("after", payload={})

        asyncio.run(ask_and_log())
        assert "request_id" not in events[-1].header.context

    @pytest.mark.parametrize(
        ("path", "logged"),
        [("/bound", ["endpoint", "to_thread", "executor with a copy"]), ("/plain_bound", ["plain endpoint"])],
    )
    def test_what_an_async_dependency_binds_is_in_the_endpoint_and_in_threads_with_a_copy(
        self, events: Events, path: str, logged: list[str]
    ) -> None:
        answer = asyncio.run(ask(asgi_app(), path))
        assert [event.header.channel for event in events] == [*(f"app.{name}" for name in logged), "http.request"]
        for event in events[:-1]:
            assert event.header.context["tenant"] == "a"
            assert event.header.context["request_id"] == answer.headers["x-request-id"]
        assert "tenant" not in events[-1].header.context

    def test_a_streaming_response_is_logged_after_its_chunks(self, events: Events) -> None:
        answer = asyncio.run(ask(asgi_app(), "/stream"))
        assert answer.text == "0\n1\n2\n"
        assert [event.header.channel for event in events] == ["app.chunk"] * 3 + ["http.request"]
        assert {event.header.context["request_id"] for event in events} == {answer.headers["x-request-id"]}

    def test_background_tasks_belong_to_the_request(self, events: Events) -> None:
        answer = asyncio.run(ask(asgi_app(), "/later"))
        assert [event.header.channel for event in events] == ["app.background", "http.request"]
        assert events[0].header.context["request_id"] == answer.headers["x-request-id"]

    @pytest.mark.parametrize(
        ("path", "logged"),
        [
            ("/items/7", ("INFO", "GET /items/7 200", 200)),
            ("/teapot", ("INFO", "GET /teapot 418", 418)),
            ("/fails", ("ERROR", "GET /fails 500", 500)),
        ],
    )
    def test_one_event_a_request_states_its_outcome(
        self, events: Events, path: str, logged: tuple[str, str, int]
    ) -> None:
        answer = asyncio.run(ask(asgi_app(), path))
        assert requests_of(events) == [logged]
        assert answer.status_code == logged[2]
        assert 0 <= events[-1].payload["fields"]["seconds"] < 10
        assert ("exception" in events[-1].payload) is (path == "/fails")

    def test_a_skipped_path_is_not_logged_and_has_its_context(self, events: Events) -> None:
        asyncio.run(ask(asgi_app(), "/items/0"))
        assert [event.header.channel for event in events] == ["app.item"]
        assert events[0].header.context["path"] == "/items/0"

    @pytest.mark.parametrize("given", ["mine-1", "x" * 128])
    def test_the_clients_id_is_kept(self, events: Events, given: str) -> None:
        assert asyncio.run(ask(asgi_app(), "/items/1", **{"X-Request-ID": given})).headers["x-request-id"] == given
        assert {event.header.context["request_id"] for event in events} == {given}

    @pytest.mark.parametrize("given", ["", "two words", "x" * 129, "a\x7f"])
    def test_an_invalid_id_is_replaced(self, events: Events, given: str) -> None:
        answer = asyncio.run(ask(asgi_app(), "/items/1", **{"X-Request-ID": given}))
        assert answer.headers["x-request-id"].startswith("LG")
        assert {event.header.context["request_id"] for event in events} == {answer.headers["x-request-id"]}

    @pytest.mark.parametrize(("trace", "is_bound"), [("4bf92f3577b34da6a3ce929d0e0e4736", True), ("0" * 32, False)])
    def test_the_trace_of_the_client_is_bound(
        self, events: Events, monkeypatch: pytest.MonkeyPatch, trace: str, is_bound: bool
    ) -> None:
        monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
        asyncio.run(ask(asgi_app(), "/items/1", traceparent=f"00-{trace}-00f067aa0ba902b7-01"))
        assert (events[0].header.context.get("trace_id") == trace) is is_bound

    def test_a_cancelled_request_is_logged_as_such(self, events: Events) -> None:
        async def never(scope: Any, receive: Any, send: Any) -> None:
            await asyncio.Event().wait()

        async def cancel() -> None:
            task = asyncio.ensure_future(ask(never, "/slow"))
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(cancel())
        assert requests_of(events) == [("WARNING", "GET /slow cancelled", None)]

    @pytest.mark.parametrize("base", [Exception, BaseException, SystemExit])
    def test_any_other_error_is_one_even_if_it_hides_its_class(self, events: Events, base: type) -> None:
        class Hidden(base):  # type: ignore[misc]
            @property
            def __class__(self) -> Any:
                raise ValueError

        async def fails(scope: Any, receive: Any, send: Any) -> None:
            raise Hidden

        with pytest.raises(Hidden):
            AsgiMiddleware(fails)({"type": "http", "path": "/", "method": "GET"}, None, None).send(None)  # type: ignore
        assert requests_of(events) == [("ERROR", "GET / 500", 500)]

    def test_a_status_that_is_no_number_does_not_cost_the_event(self, events: Events) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": "fine", "headers": []})

        async def send(message: Any) -> None:
            pass

        asyncio.run(AsgiMiddleware(app)({"type": "http", "path": "/", "method": "GET"}, None, send))  # type: ignore[arg-type]
        assert requests_of(events) == [("INFO", "GET / None", None)]

    def test_a_websocket_is_a_request(self, events: Events) -> None:
        scope = {"type": "websocket", "path": "/ws", "headers": [], "query_string": b"", "subprotocols": []}
        sent = asyncio.run(converse(AsgiMiddleware(asgi_app()), scope, "websocket.connect"))
        assert [message["type"] for message in sent] == ["websocket.accept", "websocket.close"]
        assert [event.header.channel for event in events] == ["app.socket", "http.request"]
        assert requests_of(events) == [("INFO", "WEBSOCKET /ws 101", 101)]

    @pytest.mark.parametrize("knows_lifespan", [True, False])
    def test_the_end_of_the_server_delivers(
        self, events: Events, monkeypatch: pytest.MonkeyPatch, knows_lifespan: bool
    ) -> None:
        order: list[str] = []
        monkeypatch.setattr(middleware, "flush", lambda: order.append("flush"))

        async def raw(scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
            assert scope["type"] == "http"

        app = AsgiMiddleware(asgi_app() if knows_lifespan else raw)
        scope = {"type": "lifespan", "state": {}}
        asyncio.run(converse(app, scope, "lifespan.startup", "lifespan.shutdown", order=order))
        assert order == ["lifespan.startup.complete", "flush", "lifespan.shutdown.complete"]

    def test_a_startup_that_fails_stays_a_failure(self) -> None:
        class Broken:
            def __init__(self, _: FastAPI) -> None:
                pass

            async def __aenter__(self) -> None:
                raise RuntimeError("no database")

            async def __aexit__(self, *_: object) -> None:
                pass

        order: list[str] = []
        app = AsgiMiddleware(FastAPI(lifespan=Broken))
        with pytest.raises(RuntimeError, match="no database"):
            asyncio.run(converse(app, {"type": "lifespan", "state": {}}, "lifespan.startup", order=order))
        assert order == ["lifespan.startup.failed"]


def call(app: Any, path: str, **environ: Any) -> tuple[str, dict[str, str], Any]:
    """Call a WSGI application as a server does. Return the status, the headers and the iterable of the body."""
    started: list[Any] = []
    environ = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": path, "SERVER_NAME": "t", **environ}
    environ |= {"SERVER_PORT": "80", "wsgi.url_scheme": "http", "SERVER_PROTOCOL": "HTTP/1.1"}
    body = app(environ, lambda status, headers, exc_info=None: started.append((status, headers)))
    return started[0][0], dict(started[0][1]), body


class TestWsgi:
    def test_streams_that_one_thread_reads_in_turns_keep_their_contexts(self, events: Events) -> None:
        app = WsgiMiddleware(wsgi_app())
        calls = [call(app, "/stream") for _ in range(2)]
        for _ in range(3):
            for _, _, body in calls:
                next(body)
                log.info("outside", payload={})
        for _, _, body in calls:
            assert list(body) == []
            body.close()
        first, second = (headers["X-Request-ID"] for _, headers, _ in calls)
        chunks = [event for event in events if event.header.channel == "app.chunk"]
        assert [event.header.context["request_id"] for event in chunks] == [first, second] * 3
        outside = [event for event in events if event.header.channel == "app.outside"]
        assert all("request_id" not in event.header.context for event in outside)
        assert requests_of(events) == [("INFO", "GET /stream 200", 200)] * 2

    def test_threads_have_their_own_context(self, events: Events) -> None:
        app, ids = WsgiMiddleware(wsgi_app()), {}

        def work(n: int) -> None:
            _, headers, body = call(app, f"/items/{n}")
            assert b"".join(body) == str(n).encode()
            getattr(body, "close", lambda: None)()
            ids[n] = headers["X-Request-ID"]

        run_threads(*(partial(work, n) for n in range(20)))
        assert {e.payload["n"]: e.header.context["request_id"] for e in events if "n" in e.payload} == ids
        assert len(requests_of(events)) == 20

    def test_keys_of_structlog_contextvars_stay_in_their_request(self, events: Events) -> None:
        flask = Flask(__name__)

        @flask.get("/bind/<int:n>")
        def bind(n: int) -> str:
            if n == 1:
                structlog.contextvars.bind_contextvars(customer=n)
            log.info("bound", payload={"n": n})
            return "ok"

        app = WsgiMiddleware(flask)
        for n in (1, 2):
            list(call(app, f"/bind/{n}")[2])
        found = [event.header.context.get("customer") for event in events if event.header.channel == "app.bound"]
        assert found == [1, None]
        assert structlog.contextvars.get_contextvars() == {}

    def test_an_exception_is_logged_once(self, events: Events) -> None:
        flask = wsgi_app()
        flask.config["PROPAGATE_EXCEPTIONS"] = True
        with pytest.raises(ZeroDivisionError):
            call(WsgiMiddleware(flask), "/fails")
        assert requests_of(events) == [("ERROR", "GET /fails 500", 500)]
        assert events[-1].payload["exception"]["type"] == "ZeroDivisionError"

    def test_an_exception_in_the_middle_of_a_stream_is_logged_once(self, events: Events) -> None:
        _, _, body = call(WsgiMiddleware(wsgi_app()), "/torn")
        assert next(body) == b"a"
        with pytest.raises(ZeroDivisionError):
            next(body)
        body.close()
        assert requests_of(events) == [("ERROR", "GET /torn 200", 200)]

    def test_a_client_that_leaves_ends_the_request(self, events: Events) -> None:
        _, _, body = call(WsgiMiddleware(wsgi_app()), "/stream")
        next(body)
        body.close()
        assert requests_of(events) == [("INFO", "GET /stream 200", 200)]

    def test_a_list_and_the_servers_file_wrapper_pass_unchanged(self, events: Events) -> None:
        class FileWrapper:
            pass

        for body in ([b"a"], FileWrapper()):

            def app(_: Any, start: Any, body: Any = body) -> Any:
                start("200 OK", [("x-request-id", "own")])
                return body

            _, headers, passed = call(WsgiMiddleware(app), "/é", **{"wsgi.file_wrapper": FileWrapper})
            assert passed is body
            assert headers == {"x-request-id": "own"}
        assert len(requests_of(events)) == 2

    def test_an_odd_status_does_not_reach_the_application(self, events: Events) -> None:
        def app(_: Any, start: Any) -> list[bytes]:
            start("odd", [])
            return []

        assert call(WsgiMiddleware(app), "/")[0] == "odd"
        assert requests_of(events) == [("INFO", "GET / None", None)]
