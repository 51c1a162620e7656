"""``balog consume``: run the handlers of a package on the events of topics."""

from __future__ import annotations

import io
import logging
import os
import select
import sys

import click

from balog.consumers import Consumer, ConsumerHub, ConsumerOperator, Counts, Engine
from balog.errors import BalogError, ConfigError
from balog.event import Event
from balog.topics import open_topics

__all__ = ["command"]


@click.command("consume")
@click.argument("package")
@click.option("--topics", "url", required=True, metavar="URL", help="Where the topics are: local:PATH.")
@click.option(
    "--group", default="balog", show_default=True, metavar="NAME", help="Consumers of one group share the events."
)
@click.option("--until-empty", is_flag=True, help="End when the group has nothing left, instead of waiting for more.")
@click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting; fills {key} in topic names. Repeatable."
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Deliveries of an event that keeps failing before it is dead-lettered.",
)
@click.option(
    "--lease",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long events stay with a consumer that was killed.",
)
def command(
    package: str, url: str, group: str, until_empty: bool, pairs: tuple[str, ...], attempts: int, lease: float
) -> None:
    """Run the @consumer_config handlers of PACKAGE on the events of topics.

    PACKAGE is a dotted name, looked for in the current directory first. An event is acked once every handler that
    wants it succeeded. A failing one is tried again, later each time, and then dead-lettered with the reason.

    The first SIGTERM or Ctrl-C finishes the event in hand, the second stops at once. Exit codes: 0 done, 1 failed or
    something was dead-lettered, 2 wrong use.
    """
    settings = _read_settings(pairs)
    sys.path.insert(0, os.getcwd())
    hub = ConsumerHub()
    with open_topics(url) as topics:
        hub.scan(package)
        if not hub.consumers:
            raise ConfigError(f"{package} has no consumers: no function in it has @consumer_config")
        engine = Engine(hub, topics, _Operator(settings), group, lease=lease, max_attempts=attempts)
        _show_log()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)  # what a handler printed must be out before its event is acked
        try:
            engine.run(until_empty)
        except _ReaderGone:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains when it flushes at its end
            raise BalogError("standard output was closed; what was not handled stays in its topic") from None
        finally:
            if sys.exc_info()[0] is None or engine.counts.received:
                click.echo(f"balog consume: {_summary(engine.counts)}", err=True)
    if engine.counts.dead:
        sys.exit(1)


class _ReaderGone(BaseException):
    """Nobody reads standard output any more: no fault of an event, so no failed attempt."""


class _Operator(ConsumerOperator):
    def process_event(self, consumer: Consumer, event: Event) -> object:
        try:
            return super().process_event(consumer, event)
        except BrokenPipeError:
            if _stdout_is_closed():
                raise _ReaderGone from None
            raise


def _stdout_is_closed() -> bool:
    poll = select.poll()
    poll.register(1, select.POLLOUT)
    return any(flags & (select.POLLERR | select.POLLHUP) for _, flags in poll.poll(0))


def _read_settings(pairs: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ConfigError(f"--set {pair!r}: want KEY=VALUE")
        settings[key] = value
    return settings


def _show_log() -> None:
    """Let the engine's lines appear on standard error, unless the handlers' package set logging up its own way."""
    log = logging.getLogger("balog.consumers")
    if log.hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("balog consume: %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def _summary(counts: Counts) -> str:
    return (
        f"{counts.received} received, {counts.succeeded} succeeded, {counts.unwanted} unwanted, "
        f"{counts.failed} failed attempts, {counts.dead} dead-lettered"
    )
