"""Run a broker: the pipe from stdin to stdout, and its LOG messages to sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from balog.broker.config import BrokerConfig
from balog.broker.editor import PipeError
from balog.broker.editor_chain import build_editors
from balog.broker.messages.descriptors import let_go
from balog.broker.metrics import StatsReporter
from balog.broker.pipe import Pipe
from balog.broker.pipe_output import PipeStats
from balog.broker.quarantine import Quarantine
from balog.common.errors import complain
from balog.common.signals import StopSignals, signals_for_main_thread
from balog.common.stats import StatSample
from balog.common.text import counted
from balog.delivery import Dispatcher
from balog.singer import LogMessage, to_event
from balog.sinks import Delivery, SinkConfig

SINK_WAIT_SECONDS = 30.0
"""Seconds, in total, for which the data may wait for a sink that is slower than the events."""

EXIT_CODES = """\
0  the input ended and was passed on completely; events that a sink did not take are spooled, or counted on stderr
1  the target closed its end, reading or writing failed, or the stream could not be changed as the config says
2  wrong use, or a config that was refused; nothing was read
143, 130, 129  SIGTERM, SIGINT, SIGHUP: stopped at a line's end, delivered queued events; a second stops at once"""


say = partial(complain, program="balog broker")


def run_broker(
    config: BrokerConfig,
    *,
    source: int = 0,
    target: int = 1,
    is_verbose: bool = False,
    sinks: Sequence[SinkConfig] | None = None,
    say: Callable[[str], None] = say,
) -> int:
    """Copy a stream, with the changes of the config, and send its LOG messages to the sinks.

    Args:
        source: the descriptor to read.
        target: the descriptor to write.
        is_verbose: whether to report counts at the end.
        sinks: replace the config's sinks.
        say: writes one line to the user.

    Returns:
        The exit code, see ``EXIT_CODES``.

    Raises:
        ConfigError: a part of the config is invalid; nothing was read.
    """
    with StopSignals() as stop, ExitStack() as open_parts:
        with signals_for_main_thread():
            broker = _Broker(config, config.sinks if sinks is None else sinks, stop, open_parts, say)
        return broker.run(source, target, is_verbose)


class _Broker:
    def __init__(
        self,
        config: BrokerConfig,
        sinks: Sequence[SinkConfig],
        stop: StopSignals,
        parts: ExitStack,
        say: Callable[[str], None],
    ) -> None:
        self._config = config
        self._has_sinks = bool(sinks) or config.metrics is not None
        self._stop = stop
        self._say = say
        quarantine = None
        if config.quarantine is not None:
            quarantine = Quarantine(config.quarantine, say)
            parts.callback(quarantine.close)
        self._dispatcher = Dispatcher(sinks, say, put_timeout=SINK_WAIT_SECONDS, spool=config.spool)
        parts.callback(self._deliver)  # also if the next part raises
        self._is_delivered = self._is_verbose = False
        self._editors, self._keeper = build_editors(
            config,
            say,
            position=lambda: self._dispatcher.position,
            durable=lambda: self._dispatcher.durable,
            quarantine=quarantine,
        )

    def run(self, source: int, target: int, is_verbose: bool) -> int:
        """Copy the stream to its end; return the exit code."""
        self._is_verbose = is_verbose
        self._pipe = Pipe(
            source,
            target,
            self._handle,
            strip=self._config.strip,
            editor=self._editors,
            should_stop=self._stop.came,
            wake=self._stop.wake,
            before_passing=self._dispatcher.sync,
        )
        with ExitStack() as metering:
            if (metrics := self._config.metrics) is not None:
                put, pipeline = self._dispatcher.put, self._config.pipeline
                metering.enter_context(StatsReporter(metrics, self._samples, put, self._say, pipeline))
            code = self._guard(self._pipe.run)
        if self._config.state is not None and self._config.state.hold:
            self._deliver()  # a held STATE passes when the events before it are durable
        code = code or self._guard(self._pipe.finish)
        let_go(target)
        if self._keeper is not None:
            self._keeper.close(went_on=code == 0)
        self._deliver()
        _summary(self._pipe.stats(), is_verbose, self._say)
        return 128 + self._stop.number if self._stop.number is not None else code

    def _guard(self, work: Callable[[], None]) -> int:
        """Do a part of the work; return 0, or 1 if the stream broke."""
        try:
            work()
        except BrokenPipeError:
            self._say(f"the target closed the pipe; {self._pipe.stats().bytes} bytes were read")
        except PipeError as error:
            self._say(str(error))
        except OSError as error:
            self._say(f"the stream broke: {error.strerror or error}")
        else:
            return 0
        return 1

    def _handle(self, log: LogMessage) -> None:
        if not self._has_sinks:
            return
        try:
            event, body = to_event(log)
        except Exception as error:  # the data must go on
            self._say(f"a LOG message could not be read: {type(error).__name__}: {error}")
            return
        self._dispatcher.put(Delivery(event, body))

    def _deliver(self) -> None:
        if self._is_delivered:
            return
        self._is_delivered = True
        for name, stats in self._dispatcher.close(self._config.drain).items():
            if self._is_verbose:
                self._say(f"{name}: {counted(stats.delivered, 'event')} delivered")
            for warning in stats.warnings():
                self._say(f"{name}: {warning}")

    def _samples(self) -> Iterator[StatSample]:
        yield from self._pipe.stats().samples()
        yield from self._dispatcher.samples()


def _summary(counts: PipeStats, is_verbose: bool, say: Callable[[str], None]) -> None:
    if counts.not_json:
        say(f"{counted(counts.not_json, 'line', 'were')} passed unchanged: not a JSON object")
    if counts.unread:
        say(f"{counted(counts.unread, 'LOG line', 'were')} not sent to sinks: too long, nested too deep or torn")
    if is_verbose:
        say(f"{counts.bytes} bytes, {counts.logs} LOG messages")
