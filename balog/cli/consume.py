"""``balog consume``: run the handlers of a package on the events of topics."""

from __future__ import annotations

import inspect
import io
import select
import sys
from collections.abc import Awaitable, Callable
from typing import get_args

import click

from balog.broker.messages.descriptors import let_go
from balog.cli.consumers import scan_package
from balog.cli.shared import options
from balog.cli.shared.engines import EngineOptions, engine_options, set_up_logging, summary
from balog.cli.shared.output import reporter
from balog.common.errors import BalogError
from balog.consumers import Consumer, ConsumerOperator
from balog.consumers.hooks import open_hook
from balog.consumers.outcomes import Retry
from balog.consumers.running.settings import Unwanted
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
@options.repeated(
    "--hook", "hook_names", metavar="NAME", help="Consumer hook of an installed package that observes the run."
)
@click.option(
    "--unwanted",
    type=click.Choice(get_args(Unwanted)),
    default="ack",
    help="What becomes of events that no handler wants: remove them, return them to the topic, or dead-letter them.",
)
@options.settings
def command(
    package: str, group: str, engine_options: EngineOptions, concurrency: int, prefetch: int | None,
    hook_names: tuple[str, ...], unwanted: Unwanted, settings: dict[str, str],
) -> None:  # fmt: skip
    """Run the @consumer_config handlers of PACKAGE on the events of topics.

    PACKAGE is a dotted name; the current directory is searched first. An event is acked once every matching handler
    succeeded. A failed event is retried with growing delays, then dead-lettered with the reason.

    \b
    balog consume mypackage --topics local:topics
    balog consume mypackage --topics sqs:eu-west-1 --pollers 4 --concurrency 16 --listen :9464

    Stdout belongs to the handlers. Their logs go to the outputs of BALOG_CONFIG or BALOG_OUTPUT, by default to stderr.

    The first SIGTERM or Ctrl-C finishes the events in flight, within 30 s, and returns the rest; the second ends at
    once.
    """
    hub = scan_package(package)
    hooks = [*set_up_logging("consume"), *map(open_hook, hook_names)]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what a handler printed must be out before its event is acked
    operator = _Operator(settings)
    options = {"concurrency": concurrency, "prefetch": prefetch, "unwanted": unwanted}
    with engine_options.open(hub, operator, group, hooks, **options) as engine:
        operator.stop = engine.stop
        try:
            engine.run(engine_options.until_empty)
        finally:
            if sys.exc_info()[0] is None or engine.counts.received:
                _report(summary(engine.counts))
    if operator.is_reader_gone:
        let_go(1)  # or Python complains when it flushes at its end
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
