"""No entry of the logger, the handlers, metrics and middleware raises into the program, whatever it is called with."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

import balog
from balog.log import configuration, metrics
from balog.log.guard import guarded
from balog.log.logger import emit, level_of
from balog.log.middleware import AsgiMiddleware, WsgiMiddleware
from balog.log.outputs.stdlib import EVENT_ATTRIBUTE
from balog.log.stdlib import EventFormatter, EventHandler

METHODS = """class len str repr eq ne lt le gt ge hash bool iter getattr format index int float complex contains getitem
    mod call next reversed neg add radd sub bytes fspath enter exit await aiter round reduce dir"""
OPTIONS = ("exc_info", "lazy", "stack_info", "stacklevel", "extra", "raw_event", "event", "problem", "level", "channel")
LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "msg", "warn", "err", "failure", "fatal")
ASYNC = ("adebug", "ainfo", "awarning", "aerror", "acritical", "aexception", "amsg", "awarn", "aerr", "afatal")
RECORD = [*vars(logging.makeLogRecord({})), "payload", "metric", "metric_info", "other", EVENT_ATTRIBUTE]


def raising(name: str) -> Callable[..., Any]:
    def method(self: object, *args: Any, **options: Any) -> Any:
        raise ZeroDivisionError(name)

    return method


def hostile_objects() -> list[Any]:
    """Return objects of every built-in kind whose every method raises, and a class that does."""
    methods: dict[str, Any] = {f"__{name}__": raising(name) for name in METHODS.split()}
    methods |= {name: raising(name) for name in ("keys", "items", "values", "get", "rstrip", "close")}
    methods["__class__"] = property(raising("__class__"))
    found: list[Any] = [
        base.__new__(type(f"Hostile{base.__name__}", (base,), methods), *args)
        for base, args in [
            *((object, ()), (str, ("x",)), (str, ()), (int, (30,)), (float, ("nan",)), (bytes, (b"x",))),
            *((dict, ()), (list, ()), (tuple, ((1, 2),)), (set, ()), (frozenset, ()), (ValueError, ())),
        ]
    ]
    found.append(type("HostileToAll", (), {**methods, "__getattribute__": raising("getattribute")})())
    kind = type("Kind", (type,), {"__getattribute__": raising("getattribute"), "__eq__": raising("eq")})
    return [*found, kind("OfHostileKind", (), {}), object.__new__(kind("OfHostileKind", (), {})), float("nan")]


def record(**attributes: Any) -> logging.LogRecord:
    made = logging.LogRecord("n", 20, "p", 1, "m", None, None)
    vars(made).update(attributes)
    return made


def calls() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield every entry with each of its arguments being the object."""
    log = balog.get_logger("x")
    for name in LEVELS:
        call = getattr(log, name)
        yield f"{name}(v)", lambda v, call=call: call(v)
        yield f"{name} %", lambda v, call=call: call("a %s", v)
        yield f"{name} {{}}", lambda v, call=call: call("a {}", v, v)
        yield f"{name} payload", lambda v, call=call: call("a", payload=v)
        yield f"{name} in payload", lambda v, call=call: call("a", payload={"k": v}, x=v)
        for option in OPTIONS:
            yield f"{name} {option}", lambda v, call=call, o=option: call("a", **{o: v})
            yield f"{name} all {option}", lambda v, call=call, o=option: call(v, v, payload=v, **{o: v})
        yield f"{name} extra", lambda v, call=call: call("a", extra={"payload": v, "x": v})
        yield f"{name} lazy", lambda v, call=call: call("a", lazy={"a": v, "b": lambda: v})
        yield f"{name} exc_info", lambda v, call=call: call("a", exc_info=(v, v, v))
    for name in ASYNC:
        call = getattr(log, name)
        yield name, lambda v, call=call: asyncio.run(call(v, v, payload=v, x=v, lazy=v))
        yield f"{name} exc_info", lambda v, call=call: asyncio.run(call("a", exc_info=v))
    yield "alog", lambda v: asyncio.run(log.alog(v, "a"))
    yield "alog level", lambda v: asyncio.run(log.alog(level=v, event=v))
    yield "log", lambda v: log.log(v, "a")
    yield "log level", lambda v: log.log(level=v)
    yield "log all", lambda v: log.log(v, v, v, payload=v, channel=v, x=v, exc_info=v)
    yield "bind", lambda v: log.bind(x=v).bind(y=v).try_unbind("x").new(z=v).getChild("c").info("a")
    yield "repr", lambda v: repr(log.bind(x=v))
    yield "==", lambda v: log.bind(x=v) == log.bind(x=1)
    yield "try_unbind", lambda v: log.bind(x=1).try_unbind(v)
    yield "getChild", lambda v: log.getChild(v).info("x")
    yield "get_logger", lambda v: balog.get_logger(v, x=v).info("x")
    yield "isEnabledFor", lambda v: (log.isEnabledFor(v), log.is_enabled_for(v), level_of(v))
    yield "emit", lambda v: emit(v, v, v, context=v, nanoseconds=v)
    yield "emit context", lambda v: emit("INFO", "a", {}, context={"a": v})
    yield "bound", with_bound
    handler, formatters = EventHandler(), [EventFormatter(), EventFormatter("singer")]
    for act in (handler.handle, handler.emit, *(formatter.format for formatter in formatters)):
        for name in RECORD:
            yield f"{act} {name}", lambda v, act=act, name=name: act(record(**{name: v}))
        yield f"{act}", lambda v, act=act: act(record(**dict.fromkeys(RECORD, v)))
        yield f"{act} args", lambda v, act=act: act(record(msg="a %s", args=(v,)))
        yield f"{act} METRIC", lambda v, act=act: act(record(msg="METRIC: %s", args=(v,)))
        yield f"{act} msg", lambda v, act=act: act(record(msg={"schema": v, "header": v, "payload": v}))
    yield "filter", with_filter
    yield "counter", lambda v: metrics.counter(v, v, v, channel=v).increment(v)
    yield "counter tags", lambda v: metrics.counter("a", {"a": v}).increment()
    yield "Counter", lambda v: use_counter(metrics.Counter(v, v, v, channel=v), v)
    yield "Timer", lambda v: use_timer(metrics.timer(v, v, channel=v), v)
    yield "Gauge", lambda v: use_gauge(metrics.Gauge(v, v, channel=v), v)
    yield "gauge", lambda v: use_gauge(metrics.gauge(v, v, channel=v), v)
    yield "record_counter", lambda v: metrics.record_counter(v, v).increment(v)
    yield "timers", lambda v: (metrics.http_request_timer(v).stop(v), metrics.job_timer(v).stop(v))
    yield "metrics.log", lambda v: (metrics.log(v, v), metrics.log(log, v), metrics.log(v, metrics.Point(v, v, v, v)))
    yield "metrics.parse", metrics.parse
    yield "metrics.flush", lambda v: metrics.flush()
    yield "asgi", lambda v: asyncio.run(use_asgi(v))
    yield "wsgi", use_wsgi


def with_bound(value: Any) -> None:
    with balog.bound(x=value), structlog.contextvars.bound_contextvars(y=value):
        balog.get_logger("x").bind(z=value).info("a")


def with_filter(value: Any) -> None:
    handler = EventHandler()
    handler.addFilter(lambda record: value)
    handler.handle(record())


def use_counter(counter: metrics.Counter, value: Any) -> None:
    with counter:
        counter.increment(value)
        counter.increment()
    counter.value = value
    counter.increment()
    counter.flush()
    counter.value = 0


def use_timer(timer: metrics.Timer, value: Any) -> None:
    with timer:
        timer.tags = value
    assert timer.stop(value) >= 0
    timer.observe(value)


def use_gauge(gauge: metrics.Gauge, value: Any) -> None:
    with gauge:
        gauge.set(value)
        gauge.add(value)
    gauge.value = value
    gauge.add(1)


async def use_asgi(value: Any) -> None:
    sent = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": value, "headers": value})
        await send({"type": "http.response.body", "body": value})

    async def send(message: Any) -> None:
        sent.append(message["type"])

    scope = {"type": "http", "method": value, "path": value, "headers": value}
    await AsgiMiddleware(app)(scope, None, send)  # type: ignore[arg-type]
    assert sent == ["http.response.start", "http.response.body"]


def use_wsgi(value: Any) -> None:
    started: list[Any] = []

    def app(environ: Any, start_response: Any) -> Any:
        start_response(value, value)
        return value

    environ = dict.fromkeys(
        ("REQUEST_METHOD", "PATH_INFO", "SCRIPT_NAME", "HTTP_X_REQUEST_ID", "wsgi.file_wrapper"), value
    )
    WsgiMiddleware(app)(environ, lambda *args: started.append(args))
    assert len(started) == 1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"processors": [lambda logger, method, event: event], "callsite": True},
        {"levels": {"x*": "DEBUG"}},
        {"redact": False},
    ],
    ids=["usual", "processors", "levels", "unredacted"],
)
def test_no_entry_raises_whatever_it_is_called_with(tmp_path: Any, options: dict[str, Any]) -> None:
    balog.configure(f"file:{tmp_path / 'log'}", level="DEBUG", **options)
    raised = []
    for name, call in calls():
        for number, value in enumerate(hostile_objects()):
            try:
                call(value)
            except Exception as error:
                raised.append(f"{name}, object {number}: {type(error).__name__}: {error}")
    assert raised == []


def test_a_guarded_entry_counts_the_error_and_returns_the_other_result(tmp_path: Any) -> None:
    balog.configure(f"file:{tmp_path / 'log'}")
    before = configuration.state.current().lost

    @guarded(lambda value: value + 1)
    def entry(value: int) -> int:
        raise ValueError(value)

    assert entry(1) == 2
    assert configuration.state.current().lost == before + 1


def test_a_guarded_entry_raises_if_strict(tmp_path: Any) -> None:
    balog.configure(f"file:{tmp_path / 'log'}", strict=True)
    with pytest.raises(ZeroDivisionError):
        balog.get_logger("x").info("a", payload=hostile_objects()[0])


def panic(self: object) -> str:
    raise Panic


class Panic(BaseException):
    """As extensions in Rust raise it."""


def of_raising_class(error: type[BaseException]) -> Any:
    return type("Proxy", (), {"__class__": property(lambda self: (_ for _ in ()).throw(error))})()


def test_a_call_that_raises_is_written_again_as_it_was_made() -> None:
    written: list[balog.Event] = []
    balog.configure(written.append)
    balog.get_logger("x").info("user %s", "bob", extra=of_raising_class(RuntimeError))
    balog.get_logger("x").info("hello", exc_info=of_raising_class(RuntimeError))
    made = [(event.header.channel, event.payload["message"]) for event in written]
    assert made == [("x", "user bob"), ("x", "hello")]


def test_a_processor_that_panics_is_skipped() -> None:
    def panic(*call: Any) -> Any:
        raise Panic

    written: list[balog.Event] = []
    balog.configure(written.append, processors=[panic])
    balog.get_logger("x").info("a")
    assert "Panic" in written[0].payload["problem"]


def test_an_argument_that_raises_is_replaced_and_the_event_is_written() -> None:
    written: list[balog.Event] = []
    balog.configure(written.append, level="DEBUG")
    log = balog.get_logger("x")
    for value in (*hostile_objects(), of_raising_class(ZeroDivisionError), of_raising_class(Panic)):
        written.clear()
        log.info("a", payload={"k": [value], "other": 1})
        log.info("a", payload={"other": 1}, x=value)
        assert [event.payload["other"] for event in written] == [1, 1]
        log.info(value)
        log.info("a %s", value)
        log.info("a", payload=value)
        log.log(value, "a")
        log.bind(x=value).info("a")
        for option in OPTIONS:
            log.info("a", other=1, **{option: value})
        emit("INFO", "x", value)
        emit("INFO", "x", {"k": value}, context={"x": value})
        with balog.bound(x=value), structlog.contextvars.bound_contextvars(y=value):
            log.info("a")
            emit("INFO", "x", {"k": 1})
        assert len(written) == 11 + len(OPTIONS)
    assert configuration.state.current().lost == 0


def test_a_negative_number_that_no_parser_reads_is_written_as_text() -> None:
    """msgspec writes 4300 digits after a minus sign, and does not read them."""
    number, written = -(10**4299), list[balog.Event]()
    balog.configure(written.append)
    balog.get_logger("x").info("a", v=number)
    balog.get_logger("x").bind(v=number).info("a", payload={"k": [number], "n": 1 - 10**4299})
    assert written[0].payload["fields"] == {"v": str(number)}
    assert written[1].payload["k"] == [str(number)]
    assert written[1].payload["n"] == 1 - 10**4299
    assert written[1].header.context["v"] == str(number)


def test_a_panic_of_an_argument_stays_inside_and_a_request_to_end_does_not() -> None:
    value = type("Frame", (), {"__repr__": panic, "__str__": panic})()
    log = balog.get_logger("x")
    log.info("read %s", value)
    log.info("read", frame=value)
    log.info(value)
    with pytest.raises(KeyboardInterrupt):
        log.info(type("Stop", (), {"__str__": lambda self: (_ for _ in ()).throw(KeyboardInterrupt)})())
