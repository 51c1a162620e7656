"""``balog consume``: run the handlers of a package on the events of topics."""

from __future__ import annotations

import inspect
import io
import os
import select
import sys
from collections.abc import Awaitable, Callable
from typing import get_args

import click

from balog.cli import options
from balog.cli.consumers import scan_package
from balog.cli.engines import EngineOptions, engine_options, set_up_logging, summary
from balog.cli.output import reporter
from balog.consumers import Consumer, ConsumerOperator
from balog.consumers.hooks import open_hook
from balog.consumers.outcomes import Retry
from balog.consumers.settings import Unwanted
from balog.errors import BalogError, ConfigError
from balog.event import Event

_report = reporter("balog consume")


@click.command(
    "consume",
    epilog="\b\nExit codes:\n0      done, or stopped when asked\n1      failed, or an event was dead-lettered\n"
    "2      wrong use, or a handler raised Halt\n128+n  ended at once by a second signal n",
)
@click.argument("package")
@options.group("Consumer group. The consumers of a group share the events; each group gets all of them.", "balog")
@engine_options
@options.integer(
    "--concurrency",
    most=1000,
    default=1,
    help="Threads for handlers; an async def handler has 8 times as many calls. With 1, plain handlers handle an "
    "ordered topic strictly in order.",
)
@options.integer(
    "--prefetch",
    least=0,
    most=10_000,
    default=None,
    help="Events that wait in this process for a handler to be free. By default, as many as handlers take in half a "
    "second, so that other processes share the rest.",
)
@options.integer(
    "--attempts",
    default=5,
    help="Failed calls of a handler before its event is dead-lettered; the handler's own retries come first.",
)
@options.seconds("--drain", most=3600, default=30.0, help="Time for running handlers to finish after a stop signal.")
@options.of_plugins(
    "--hook",
    "hook_names",
    group="balog.hooks",
    multiple=True,
    metavar="NAME",
    help="Consumer hook of an installed package that observes the run. Repeatable.",
)
@click.option(
    "--unwanted",
    type=click.Choice(get_args(Unwanted)),
    default="ack",
    help="What becomes of events that no handler wants: remove them, return them to the topic, or dead-letter them.",
)
@options.settings
@options.ignore
@click.option("--reload", "is_reloading", is_flag=True, help="Drain and restart whenever the package's source changes.")
@click.option("--lifeline", type=int, hidden=True)
@click.pass_context
def command(
    context: click.Context, package: str, group: str, engine_options: EngineOptions, concurrency: int,
    prefetch: int | None, attempts: int, drain: float, hook_names: tuple[str, ...], unwanted: Unwanted,
    settings: dict[str, str], ignore: tuple[str, ...], is_reloading: bool, lifeline: int | None,
) -> None:  # fmt: skip
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
        sys.exit(_reload(context, package, drain, engine_options.until_empty))
    if lifeline is not None:
        from balog.cli.reloader import live_with

        live_with(lifeline)
    hub = scan_package(package, ignore)
    hooks = [*set_up_logging("consume"), *map(open_hook, hook_names)]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what a handler printed must be out before its event is acked
    operator = _Operator(settings)
    options = {
        "concurrency": concurrency, "prefetch": prefetch, "max_attempts": attempts, "drain": drain, "unwanted": unwanted
    }  # fmt: skip
    with engine_options.open(hub, operator, group, hooks, **options) as engine:
        operator.stop = engine.stop
        try:
            engine.run(engine_options.until_empty)
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
    from balog.cli.reloader import Reloader

    if until_empty:
        raise ConfigError("--reload runs until it is stopped; leave out --until-empty")
    own = [sys.executable, "-m", "balog", "consume", *_arguments(context), "--lifeline"]
    return Reloader(package, own, drain, _report).run()


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
