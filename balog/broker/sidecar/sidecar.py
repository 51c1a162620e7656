"""Run any tap as a sidecar: turn its log lines into events, and report the run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import IO, Any

from msgspec import UNSET, Raw

from balog.broker.config import RunConfig
from balog.broker.editor import PipeError
from balog.broker.messages.descriptors import let_go
from balog.broker.messages.invalid_lines import InvalidLineFilter
from balog.broker.messages.schema_reader import SchemaReader
from balog.broker.metrics import StatsReporter
from balog.broker.quarantine import Quarantine
from balog.broker.sidecar.child import Child, ForwardedSignals
from balog.broker.sidecar.report import SidecarStats, complete_report
from balog.broker.sidecar.tap_stream import TapStream
from balog.broker.stopwatch import Stopwatch
from balog.common.errors import EventError, complain
from balog.common.redaction import Redactor
from balog.common.signals import signals_for_main_thread
from balog.common.stats import StatSample
from balog.common.storage.local_files import write_all
from balog.delivery import Dispatcher
from balog.event import Event, Level, encode, format_timestamp, new_id
from balog.event.payload import RunPayload, log_payload, read
from balog.log_lines import LineAssembler
from balog.singer import LogMessage, write
from balog.sinks import Delivery

EXIT_CODES = """\
0–125     the command's own; 1 also when it succeeded but not all that it wrote could be passed on, or when it printed
          an invalid line that the quarantine has no room for
126, 127  the command cannot be run, is not there
128+N     signal N ended the command
2         wrong use, or a config that was refused; nothing was run"""

DRAIN_SECONDS = 10.0
"""Seconds that sinks have after the run's end to take queued events."""

SINK_WAIT_SECONDS = 30.0
"""Seconds, in total, for which the command's stderr may wait for a sink that is slower than the events."""

_READ_BYTES = 1024 * 1024
_IDLE_SECONDS = 0.25
_REPORT_SECONDS = 2.0  # a runtime looks up the names in its stack meanwhile
_GRACE_SECONDS = 10.0
_LINGER_SECONDS = 5.0
_MAX_NAME = 200
_say = partial(complain, program="balog run")


def run_sidecar(
    command: Sequence[str], config: RunConfig | None = None, *, name: str | None = None, target: int = 1
) -> int:
    """Run a command, turn each record on its stderr into an event, and send a report of the run as one more event.

    The stderr also stays visible. The command finds the id of its run in ``BALOG_RUN_ID``, which is created if it is
    missing. ``BALOG_SIDECAR`` informs it that the sidecar reports the run. Signals are forwarded to the command. Unless
    the config examines the stream, the command writes directly to the target, which this process then closes.

    Args:
        command: program and arguments, run without a shell.
        config: the config; by default, events go into the stream as LOG messages.
        name: the program's name in events; by default, the name of its file.
        target: the descriptor that the stream is written to.

    Returns:
        The exit code, see ``EXIT_CODES``.

    Raises:
        ConfigError: the config is invalid; nothing was run.
    """
    config = RunConfig(in_band=True) if config is None else config
    config.patterns()
    with ExitStack() as stack:
        quarantine = None if config.quarantine is None else Quarantine(config.quarantine, _say)
        signals = stack.enter_context(ForwardedSignals())
        with signals_for_main_thread():
            dispatcher = Dispatcher(config.sinks, _say, put_timeout=SINK_WAIT_SECONDS, spool=config.spool)
            application = _printable(name or os.path.basename(command[0]) or command[0])[:_MAX_NAME]
            run = _Run(config, application, dispatcher, quarantine)
        try:
            with ExitStack() as metering:
                if config.metrics is not None:
                    reporter = StatsReporter(config.metrics, run.samples, dispatcher.put, _say, run.application)
                    metering.enter_context(reporter)
                code = run.carry(command, signals, target)
        finally:
            if quarantine is not None:
                quarantine.close()
            for sink, stats in dispatcher.close(DRAIN_SECONDS).items():
                for warning in stats.warnings():
                    _say(f"{sink}: {warning}")
        return code


class _Run:
    """One run of a command, from its start to the report."""

    def __init__(
        self, config: RunConfig, application: str, dispatcher: Dispatcher, quarantine: Quarantine | None
    ) -> None:
        self.application = application
        self._config = config
        self._dispatcher = dispatcher
        self._quarantine = quarantine
        self._redactor = Redactor()
        self._schemas = SchemaReader()
        self._stream: TapStream | None = None
        self._filter: InvalidLineFilter | None = None
        self._patterns = config.patterns()
        self._assembler = LineAssembler(application)
        self._reading = Stopwatch()
        self._logs = 0
        self._lost = 0
        self._code: int | None = None
        self._own: RunPayload | None = None
        self._problem: str | None = None
        self._is_corrupt = False
        self._kill_at: float | None = None
        self._began, self._started = time.monotonic(), time.time_ns()

    def carry(self, command: Sequence[str], signals: ForwardedSignals, target: int) -> int:
        """Run the command to its end, report it, and return the exit code."""
        run_id = os.environ.get("BALOG_RUN_ID") or new_id()
        context = {"fqdn": os.uname().nodename, "run_id": _printable(run_id)}
        if self._config.looks:
            if self._quarantine is not None:
                self._filter = InvalidLineFilter(self._on_invalid_line)
            on_schema = self._on_schema if self._config.schemas else None
            self._stream = TapStream(
                target, _say, invalid_lines=self._filter, keeps_state=self._config.state, on_schema=on_schema
            )
        try:
            child = Child(
                command, None if self._stream else target, {**os.environ, "BALOG_RUN_ID": run_id, "BALOG_SIDECAR": "1"}
            )
        except OSError as error:
            self._code = 127 if isinstance(error, FileNotFoundError) else 126
            self._problem = f"{command[0]:.200} cannot be run: {error.strerror or error}"
            self._assembler = LineAssembler(self.application, context)
            return self._end(None)
        finally:
            if self._stream is None:
                let_go(target)
        self._assembler = LineAssembler(self.application, {**context, "process": child.pid}, self._patterns)
        signals.attach(child, self._force)
        if self._config.started:
            payload = {"cls_type": "run_started", "version": "1.0.0", "command": self.application}
            self._log([self._event("started", payload, "INFO")])
        try:
            self._copy(child, signals)
            self._await(child, signals)
        finally:
            child.close()
        code = child.returncode or 0
        self._code = code if code >= 0 else 128 - code
        return self._end(child)

    def _end(self, child: Child | None) -> int:
        """Write the rest of the stream, report the run, and return the exit code."""
        if self._stream is None:
            self._log([self._report(child)])
        else:
            self._stream.end(lambda: self._log([self._report(child)]))
            self._lost += self._stream.lost_logs
        code = self._exit_code
        if self._problem is not None:
            complain(self._problem, f"balog run: {self.application}")
        if self._lost:
            _say(f"{self._lost} log records were lost: a line of the stream went on and on, or they can't be written")
        return code or int(self._stream is not None and self._stream.has_lost_output)

    @property
    def _exit_code(self) -> int:
        """The command's own exit code; 1 if a full quarantine ended the run."""
        return 1 if self._is_corrupt or self._code is None else self._code

    def _force(self, number: int) -> None:
        """End at once, after a second signal during the delivery to the sinks."""
        _say("stopped before the sinks had taken everything")
        os._exit(128 + number if self._code is None else self._exit_code)

    def stats(self) -> SidecarStats:
        """Return the counters; called by another thread."""
        stream = self._stream
        return SidecarStats(
            logs=self._logs,
            lost_logs=self._lost,
            invalid_lines=None if self._filter is None else self._filter.count,
            bytes=None if stream is None else stream.bytes,
            records=None if stream is None else stream.records.total,
            read_wait_seconds=None if stream is None else self._reading.seconds,
            write_wait_seconds=None if stream is None else stream.writing.seconds,
        )

    def samples(self) -> Iterator[StatSample]:
        """Yield the counters of the run and of its sinks; called by another thread."""
        yield from self.stats().samples()
        yield from self._dispatcher.samples()

    def _copy(self, child: Child, signals: ForwardedSignals) -> None:
        """Copy until both outputs are closed, or the child has ended and its log is quiet."""
        takers: dict[IO[bytes], Callable[[bytes], bool]] = {child.stderr: self._take_stderr}
        if child.stdout is not None:
            takers[child.stdout] = self._take_stdout
        spoke_at, ended_at = time.monotonic(), None
        while takers:
            with self._reading:
                ready = signals.wait(list(takers), _IDLE_SECONDS)
            now = time.monotonic()
            if child.stderr in ready:
                spoke_at = now
            elif now - spoke_at >= (_REPORT_SECONDS if self._assembler.is_in_report else _IDLE_SECONDS):
                # earlier would split a traceback that comes by lines
                self._log_of_command(self._assembler.flush())
            for stream in ready:
                data = os.read(stream.fileno(), _READ_BYTES)
                if not data or not takers[stream](data):
                    stream.close()
                    del takers[stream]
            self._see_to_the_end(child)
            if not child.has_ended():
                continue
            ended_at = ended_at or now
            # A grandchild may still run: its stdout is read to the end, its log lines for a limited time.
            if child.stdout in takers and not (self._is_corrupt or signals.came()):
                continue
            if now - ended_at > _LINGER_SECONDS or (not ready and now - ended_at >= _IDLE_SECONDS):
                break
        self._log_of_command(self._assembler.close())

    def _await(self, child: Child, signals: ForwardedSignals) -> None:
        """Wait for a child that has closed its outputs."""
        while not child.has_ended():
            self._see_to_the_end(child)
            signals.wait([], None if self._kill_at is None else _IDLE_SECONDS)

    def _see_to_the_end(self, child: Child) -> None:
        """Terminate a child whose run has failed, and kill it after ten seconds."""
        if not self._is_corrupt:
            return
        if self._kill_at is None:
            self._kill_at = time.monotonic() + _GRACE_SECONDS
            child.send(signal.SIGTERM)
        elif time.monotonic() >= self._kill_at:
            child.send(signal.SIGKILL)

    def _take_stdout(self, data: bytes) -> bool:
        """Pass lines on; return False after the reader closed its end, so that the child's pipe closes, too."""
        if self._stream is not None:
            self._stream.take(data)
        return self._stream is not None and (self._stream.is_wanted or self._is_corrupt)

    def _take_stderr(self, data: bytes) -> bool:
        try:
            self._log_of_command(self._assembler.feed(data))
        finally:
            with suppress(OSError):  # stderr is closed
                write_all(2, data)
        return True

    def _log_of_command(self, events: Sequence[Event]) -> None:
        self._log([event for event in events if not self._is_own_report(event)])

    def _is_own_report(self, event: Event) -> bool:
        """Merge the report that the command itself writes, as taps of balog's toolkit do: one report a run."""
        if event.cls_type != "run" or event.header.context.get("process") != self._assembler.context.get("process"):
            return False
        try:
            own = read(event)
        except EventError:
            return False
        if isinstance(own, RunPayload):
            self._own = own
        return isinstance(own, RunPayload)

    def _on_invalid_line(self, reason: str, line: bytes) -> bool:
        if self._quarantine is None or self._filter is None:
            return True
        try:
            self._quarantine.put(reason, line)
        except PipeError as error:
            self._problem = str(error)
            self._is_corrupt = True
            return False
        if self._filter.count == 1:
            message = f"stdout has a line that is not a Singer message: {reason}; such lines go to quarantine"
            self._log([self._event("junk", log_payload(message, "WARNING", fields={"bytes": len(line)}), "WARNING")])
        return True

    def _on_schema(self, line: bytes) -> None:
        payload = self._schemas.read(line)
        if payload is not None:
            self._log([self._event("schema", payload, "INFO")])

    def _log(self, events: Sequence[Event]) -> None:
        """Send events without their secrets to the sinks, and into the stream once the spool is synced."""
        stream = self._stream if self._config.in_band else None
        lines: list[bytes] = []
        for event in events:
            try:
                body = encode(event)
                clean = self._redactor.redact_encoded(body)
                line = write(LogMessage(level=event.level or "INFO", value=Raw(clean))) if stream else b""
                if self._config.sinks:
                    self._dispatcher.put(Delivery(event if clean is body else None, clean))
                lines.append(line)
                self._logs += 1
            except (EventError, UnicodeError):  # such as a payload too deep for one line
                self._lost += 1
        if events:
            self._dispatcher.sync()
        if stream is not None:
            for line in lines:
                stream.add_log(line)

    def _report(self, child: Child | None) -> Event:
        code = self._exit_code
        report = RunPayload(
            outcome="succeeded" if code == 0 else "failed",
            duration=round(time.monotonic() - self._began, 6),
            exit_code=code,
            command=self.application,
            started=format_timestamp(self._started),
            ended=format_timestamp(time.time_ns()),
            problem=UNSET if self._problem is None else self._problem,
            invalid_lines=UNSET if self._filter is None else self._filter.count,
        )
        payload = complete_report(report, child, self._stream, self._own)
        return self._event("run", payload, "INFO" if code == 0 else "ERROR")

    def _event(self, kind: str, payload: dict[str, Any], level: Level) -> Event:
        return Event.new(f"{self.application}.{kind}", payload, level=level, context=self._assembler.context)


def _printable(text: str) -> str:
    """Replace invalid text from the environment or the arguments."""
    return text.encode("utf-8", "replace").decode()
