"""``balog consume``: run the handlers of a package on the events of topics."""

from __future__ import annotations

import inspect
import io
import os
import select
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import click

from balog.cli.engines import engine_options, open_engine, set_up_logging, summary
from balog.cli.output import reporter
from balog.cli.settings import ignore_option, set_option
from balog.consumers import Consumer, ConsumerHub, ConsumerOperator
from balog.consumers.outcomes import Retry
from balog.errors import BalogError, ConfigError
from balog.event import Event

__all__ = ["command"]

_report = reporter("balog consume")


@click.command(
    "consume",
    epilog="\b\nExit codes:\n0      done, or stopped when asked\n1      failed, or an event was dead-lettered\n"
    "2      wrong use, or a handler raised Halt\n128+n  ended at once by a second signal n",
)
@click.argument("package")
@click.option(
    "--group",
    default="balog",
    show_default=True,
    metavar="NAME",
    help="Consumer group. The consumers of a group share the events; each group gets all of them.",
)
@engine_options
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Maximum events in handlers at once. With 1, an ordered topic is handled strictly in order.",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="Failed calls of a handler before its event is dead-lettered; the handler's own retries come first.",
)
@click.option(
    "--drain",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for running handlers to finish after a stop signal.",
)
@set_option
@ignore_option
@click.option("--reload", "is_reloading", is_flag=True, help="Drain and restart whenever the package's source changes.")
@click.option("--lifeline", type=int, hidden=True)
@click.pass_context
def command(
    context: click.Context,
    package: str,
    group: str,
    url: str,
    until_empty: bool,
    pollers: int,
    lease: float,
    ledger: str | None,
    listen: str | None,
    concurrency: int,
    attempts: int,
    drain: float,
    settings: dict[str, str],
    ignore: tuple[str, ...],
    is_reloading: bool,
    lifeline: int | None,
) -> None:
    """Run the @consumer_config handlers of PACKAGE on the events of topics.

    PACKAGE is a dotted name; the current directory is searched first. An event is acked once every matching handler
    succeeded. A failed event is retried with growing delays, then dead-lettered with the reason.

    \b
    balog consume mypackage --topics local:topics
    balog consume mypackage --topics sqs:eu-west-1 --pollers 4 --concurrency 16 --listen :9464
    balog consume mypackage --topics local:topics --reload

    Stdout belongs to the handlers. Their logs go to the outputs of BALOG_CONFIG or BALOG_OUTPUT, by default to stderr.

    The first SIGTERM or Ctrl-C finishes the events in flight and returns the rest; the second ends at once.
    """
    if is_reloading:
        sys.exit(_reload(context, package, drain, until_empty))
    if lifeline is not None:
        from balog.cli.reloading import live_with

        live_with(lifeline)
    sys.path.insert(0, os.getcwd())
    hub = ConsumerHub()
    hub.scan(package, ignore or None)
    if not hub.consumers:
        raise ConfigError(f"{package} has no consumers: no function in it has @consumer_config")
    hooks = set_up_logging("consume")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what a handler printed must be out before its event is acked
    operator = _Operator(settings)
    options: dict[str, Any] = {"concurrency": concurrency, "pollers": pollers, "lease": lease, "drain": drain}
    with open_engine(hub, url, operator, group, ledger, listen, hooks, max_attempts=attempts, **options) as engine:
        operator.stop = engine.stop
        try:
            engine.run(until_empty)
        finally:
            if sys.exc_info()[0] is None or engine.counts.received:
                _report(summary(engine.counts))
    if operator.is_reader_gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains when it flushes at its end
        raise BalogError("standard output was closed; what was not handled stays in its topic")
    if engine.counts.dead:
        sys.exit(1)


class _Operator(ConsumerOperator):
    """Stop the engine when the reader of stdout is gone; no event is to blame for that."""

    def __init__(self, settings: dict[str, str]) -> None:
        super().__init__(settings)
        self.stop: Callable[[], object] = lambda: None
        self.is_reader_gone = False

    def process_event(self, consumer: Consumer, event: Event) -> object:
        try:
            result = super().process_event(consumer, event)
        except BrokenPipeError:
            if _stdout_is_closed():
                raise self._reader_gone() from None
            raise
        return self._watch(result) if inspect.isawaitable(result) else result

    async def _watch(self, result: Awaitable[object]) -> object:
        try:
            return await result
        except BrokenPipeError:
            if _stdout_is_closed():
                raise self._reader_gone() from None
            raise

    def _reader_gone(self) -> Retry:
        self.is_reader_gone = True
        self.stop()
        return Retry("standard output was closed")


def _stdout_is_closed() -> bool:
    poll = select.poll()
    poll.register(1, select.POLLOUT)
    return any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))


def _reload(context: click.Context, package: str, drain: float, until_empty: bool) -> int:
    from balog.cli.reloading import Reloading

    if until_empty:
        raise ConfigError("--reload goes on until it is stopped; leave out --until-empty")
    own = [sys.executable, "-m", "balog", "consume", *_arguments(context), "--lifeline"]
    return Reloading(package, own, drain, _report).run()


def _arguments(context: click.Context) -> list[str]:
    """Return the arguments of this call, except ``--reload``."""
    words = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if parameter.name in ("is_reloading", "package") or value is None or value is False:
            continue
        if isinstance(value, dict):
            value = tuple(f"{name}={text}" for name, text in value.items())
        for one in value if isinstance(value, tuple) else (value,):
            words += [parameter.opts[0]] if one is True else [parameter.opts[0], str(one)]
    return [*words, context.params["package"]]
