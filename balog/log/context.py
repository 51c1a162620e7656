"""The context of events: of the process and thread, of ``bound`` blocks and of the current trace."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, TypeVar, cast

from balog.event.ids import new_id
from balog.log.values.encoding import encode_object

Function = TypeVar("Function", bound=Callable[..., Any])
_bound: ContextVar[dict[str, Any]] = ContextVar("balog_bound", default={})  # noqa: B039 - never changed in place


class bound:
    """Add keys to the context of every event that is logged inside the block, by any logger.

    As a decorator it binds while the function runs: a plain function, an ``async def``, a generator or an async
    generator. A generator's keys are bound while its own code runs, and not in its caller between two items.

    The keys follow into asyncio tasks that the block starts, into ``asyncio.to_thread``, and into a thread that is
    started with ``contextvars.copy_context().run``; other threads and tasks do not see them, such as those of
    ``run_in_executor`` and the endpoint behind a plain ``def`` dependency of FastAPI. Inner blocks hide outer ones.
    Keys that a logger binds itself hide both.
    """

    __slots__ = ("_tokens", "_values")

    def __init__(self, **values: Any) -> None:
        self._values = values
        self._tokens: list[Token[dict[str, Any]]] = []

    def __enter__(self) -> None:
        self._tokens.append(_bound.set({**_bound.get(), **self._values}))

    def __exit__(self, *_: object) -> None:
        try:  # suppress() takes longer
            _bound.reset(self._tokens.pop())
        except ValueError:  # a generator that was begun in another context and is closed in this one
            pass

    def __call__(self, function: Function) -> Function:
        """Return the function with the keys bound while it runs."""
        wrap: Callable[..., Any]
        if inspect.iscoroutinefunction(function):
            wrap = _bind_coroutine
        elif inspect.isasyncgenfunction(function):
            wrap = _bind_async_generator
        elif inspect.isgeneratorfunction(function):
            wrap = _bind_generator
        else:
            wrap = _bind_call
        return cast("Function", functools.wraps(function)(wrap(function, self._values)))


def _bind_call(function: Callable[..., Any], values: dict[str, Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        with bound(**values):
            return function(*args, **options)

    return call


def _bind_coroutine(function: Callable[..., Any], values: dict[str, Any]) -> Callable[..., Any]:
    async def call(*args: Any, **options: Any) -> Any:
        with bound(**values):
            return await function(*args, **options)

    return call


def _bind_generator(function: Callable[..., Any], values: dict[str, Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        generator = function(*args, **options)
        step, given = generator.send, None
        while True:
            try:
                with bound(**values):
                    item = step(given)
            except StopIteration as end:
                return end.value
            try:
                step, given = generator.send, (yield item)
            except GeneratorExit:
                with bound(**values):
                    generator.close()
                raise
            except BaseException as error:
                step, given = generator.throw, error

    return call


def _bind_async_generator(function: Callable[..., Any], values: dict[str, Any]) -> Callable[..., Any]:
    async def call(*args: Any, **options: Any) -> Any:
        generator = function(*args, **options)
        step, given = generator.asend, None
        while True:
            try:
                with bound(**values):
                    item = await step(given)
            except StopAsyncIteration:
                return
            try:
                step, given = generator.asend, (yield item)
            except GeneratorExit:
                with bound(**values):
                    await generator.aclose()
                raise
            except BaseException as error:
                step, given = generator.athrow, error

    return call


TRACE = "opentelemetry.trace"
"""The module whose spans are looked for once a program has imported it."""

bound_values = _bound.get
"""Return the keys that ``bound`` adds in the current context. The dict never changes: each block makes a new one."""


# A fork waits until a thread has found the process's context: a child would wait forever for that thread's imports.
_finding = threading.RLock()
os.register_at_fork(before=_finding.acquire, after_in_parent=_finding.release, after_in_child=_finding.release)


def run_id() -> str:
    """Return the id of the run that this process belongs to.

    It comes from ``BALOG_RUN_ID``. If that is empty, a new id is stored there, so that child processes inherit it.
    """
    with _finding:
        if not os.environ.get("BALOG_RUN_ID"):
            os.environ["BALOG_RUN_ID"] = new_id()
        return os.environ["BALOG_RUN_ID"]


class _ThreadContext(threading.local):
    """The context of a process and of this thread, found at its first use.

    Attributes:
        found: the context as data, and encoded as the members of a JSON object without its braces.
    """

    found: tuple[dict[str, Any], bytes] | None = None

    def get(self, find: Callable[[], tuple[dict[str, Any], bytes]]) -> tuple[dict[str, Any], bytes]:
        """Return the context; ``find`` is called once a thread."""
        if self.found is None:
            self.found = find()
        return self.found


class ProcessContext:
    """The context of a process and its threads, found once and cached encoded.

    Args:
        application: its name; None for the program's.
        application_version: its version; None for that of the distribution which owns the running entry point.
        clean: redacts the encoded object, because a thread's name may hold anything.

    Attributes:
        threads: has the result of ``get`` as ``found`` once a thread has called it.
    """

    def __init__(
        self,
        application: str | None = None,
        application_version: str | None = None,
        clean: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._given = (application, application_version)
        self.clean_with(clean)
        _process_contexts.add(self)

    def clean_with(self, clean: Callable[[bytes], bytes] | None) -> None:
        """Replace the function that redacts, and drop cached contexts."""
        self._clean = clean
        self._forget()

    def _forget(self) -> None:
        self._process: dict[str, Any] | None = None
        self.threads = _ThreadContext()

    def get(self) -> tuple[dict[str, Any], bytes]:
        """Return the context as data, and encoded as the members of a JSON object without its braces."""
        return self.threads.get(self._find)

    def _find(self) -> tuple[dict[str, Any], bytes]:
        with _finding:
            if self._process is None:
                self._process = self._find_process()
            context = {**self._process, "thread": threading.current_thread().name}
        encoded = encode_object(context, strict=False)
        return context, (encoded if self._clean is None else self._clean(encoded))[1:-1]

    def _find_process(self) -> dict[str, Any]:
        application, version = self._given
        owner, owner_version = _entry_point_owner() if application is None or version is None else (None, None)
        application = application or _program()
        if version is None and application in (owner, _program()):
            version = owner_version
        process: dict[str, Any] = {"fqdn": os.uname().nodename, "application": application}
        if version:
            process["application_version"] = version
        return {**process, "process": os.getpid(), "run_id": run_id()}


_process_contexts: weakref.WeakSet[ProcessContext] = weakref.WeakSet()


def _forget_process() -> None:
    for process_context in list(_process_contexts):
        process_context._forget()


os.register_at_fork(after_in_child=_forget_process)


def _program() -> str:
    """Return the program's name: that of its file, or the package of ``python -m package``."""
    path = (getattr(sys, "argv", None) or [""])[0]
    if os.path.basename(path) == "__main__.py":
        path = os.path.dirname(path)
    return os.path.basename(path) if path not in ("", "-c", "-m", "-") else "python"


def _entry_point_owner() -> tuple[str | None, str | None]:
    """Return name and version of the distribution whose script, or whose package's ``__main__``, is running."""
    try:
        from importlib.metadata import entry_points, packages_distributions, version

        for script in entry_points(group="console_scripts", name=_program()):
            if script.dist is not None:
                return script.dist.name, script.dist.version
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        if spec is not None:
            for name in packages_distributions().get(spec.name.partition(".")[0], ()):
                return name, version(name)
    except Exception:  # broken metadata of a distribution: the event has no version
        return None, None
    return None, None


def trace_context() -> dict[str, str]:
    """Return ``trace_id`` and ``span_id`` of the current OpenTelemetry span; empty without one.

    This never imports OpenTelemetry: a program with a span has imported it.
    """
    trace = sys.modules.get(TRACE)
    if trace is None:
        return {}
    try:
        span = trace.get_current_span().get_span_context()
        return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"} if span.is_valid else {}
    except Exception:  # another thread is still importing it, or the span is of another library
        return {}
