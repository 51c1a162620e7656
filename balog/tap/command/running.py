"""From a tap's command line to one of the things that it does."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
import msgspec

import balog
from balog.errors import BalogError, ConfigError
from balog.local_path import local_path
from balog.recording.configuration import concealed, introduced, peek
from balog.tap.catalog import Catalog, Discovered, choose, discover, read_catalog, read_properties
from balog.tap.command.options import options
from balog.tap.command.standard_output import messages_only, without_log_messages
from balog.tap.config import environment_name, read_config
from balog.tap.errors import ConfigProblems, OutputError, StreamError
from balog.tap.records import Output
from balog.tap.records.output import why_unwritten

if TYPE_CHECKING:
    from balog.tap.streams import Stream
    from balog.tap.tap import Tap

__all__ = ["Run", "run"]


def run(tap: Tap, arguments: Sequence[str] | None = None) -> None:
    """Run a tap as a program.

    Args:
        tap: what is declared.
        arguments: those of the process when None.

    Raises:
        SystemExit: always, with the exit code: 0 done; 1 a stream failed, or the reader of stdout has gone; 2 wrong
            use, or a config, catalog or state that was refused before anything ran; 128 and the number of the signal
            that ended the run: 130 (SIGINT), 143 (SIGTERM).
    """
    with ExitStack() as until_end:
        code = _run(tap, list(sys.argv[1:] if arguments is None else arguments), until_end)
    sys.exit(code)


def _run(tap: Tap, arguments: list[str], until_end: ExitStack) -> int:
    def say(lines: str) -> None:
        recorder = peek()
        redactor = recorder.redactor if recorder else None
        for line in lines.splitlines():
            sys.stderr.write(f"{tap.name}: {redactor.redact_text(line) if redactor else line}\n")
        sys.stderr.flush()

    if sys.stdout is None:
        say("stdout is closed, and what a tap says goes there")
        return 1
    try:
        with options(tap).make_context(tap.name, arguments) as context:
            return Run(tap, until_end, **context.params).run()
    except click.exceptions.Exit as exit:  # --help
        return exit.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ConfigError as error:
        say(str(error))
        return 2
    except BalogError as error:
        say(str(error))
        return 1
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ESHUTDOWN):
            say("the reader of stdout has gone")
        else:
            say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        _forget_stdout()
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # of the tap's own code, outside of its streams
        from balog.recording.fallback_encoding import safe_str
        from balog.tap.syncing.failing import say_failures

        failure = StreamError(tap.name, f"{type(error).__name__}: {safe_str(error)}")
        failure.__cause__ = error
        say_failures(_logger(tap), [failure])
        return 1


class Run:
    """One run of a tap as a program.

    Args:
        tap: what is declared.
        until_end: what is left there is left when all was said.
        config: files of ``--config``, in their order.
        state: a file.
        catalog: a file.
        properties: a file.
        out_file: where each state's value is written before its message goes out.
        discover: write the catalog.
        test: ask each stream for its first record.
        about: say what the tap is, in ``format``.
        version: say the version.
    """

    def __init__(
        self,
        tap: Tap,
        until_end: ExitStack,
        *,
        config: Sequence[str] = (),
        state: str | None = None,
        catalog: str | None = None,
        properties: str | None = None,
        out_file: str | None = None,
        discover: bool = False,
        test: bool = False,
        about: bool = False,
        format: str = "text",
        version: bool = False,
    ) -> None:
        self.tap = tap
        self._until_end = until_end
        self._config, self._state, self._catalog, self._properties = config, state, catalog, properties
        self._out_file = None if out_file is None else local_path(out_file, "--out-file")
        self._format = format
        self._does: Callable[[], int] = self._sync
        for asked, does in (
            (version, self._say_version),
            (about, self._say_about),
            (discover, self._discover),
            (test, self._test),
        ):
            if asked:
                self._does = does
                break
        self._client: list[Any] = []
        self._toolkit: dict[str, Any] = {}
        self._batch: Any = None
        self._batch_source = ""

    def run(self) -> int:
        """Do what was asked for; give the exit code."""
        from balog.tap.command.about import version_of

        self._until_end.enter_context(introduced(self.tap.name, version_of(self.tap) or None))
        return self._does()

    # -- what is asked for ------------------------------------------------------------------------------------------

    def _say_version(self) -> int:
        from balog.tap.command.about import version_of

        return _write(f"{self.tap.name} {version_of(self.tap) or 'of no version: no package of its name is installed'}")

    def _say_about(self) -> int:
        from balog.tap.command.about import about, as_text

        self.tap.link()
        said = about(self.tap)
        return _write(_as_json(said) if self._format == "json" else as_text(self.tap, said))

    def _discover(self) -> int:
        output = Output()
        with messages_only(), output.in_order(), without_log_messages():
            streams = list(self.tap.link().values())
            config = self._checked(is_needed=bool(self._config))
            catalog = discover(streams, self._schemas(config), self.tap.visitors)
            self._say_failed(catalog)
            if not catalog.entries and catalog.failed:
                return 1
            output.write(_as_json(catalog.as_json()).encode() + b"\n")
        return 1 if catalog.failed else 0

    def _test(self) -> int:
        from balog.tap.bookmarks import State
        from balog.tap.command.trying import try_streams

        with messages_only(), Output().in_order(), without_log_messages():
            config = self._checked()
            catalog = self._chosen(config)
            code = try_streams(self.tap, config, catalog, self._given_state() or State(), self._toolkit["start_date"])
        return 1 if catalog.failed else code

    def _sync(self) -> int:
        from balog.tap.bookmarks import State
        from balog.tap.command.about import version_of
        from balog.tap.reporting import Reporter
        from balog.tap.syncing import Stop, Sync

        output = Output(self._out_file)
        with messages_only(), output.in_order():
            config = self._checked()
            catalog = self._chosen(config)
            state = self._given_state() or State()
            if self._batch is not None:
                from balog.tap.records.batches import read_batch_config

                output.batch = read_batch_config(self._batch, source=self._batch_source)
            reporter = Reporter(self.tap.name, version_of(self.tap))
            reporter.begin([entry.tap_stream_id for entry in catalog if entry.is_selected], state.currently_syncing)
            try:
                with Stop() as stop:
                    client = self._client[0] if self._client else None  # made for the schemas
                    given: dict[str, Any] = {"observer": reporter, "stop": stop, "client": client, **self._toolkit}
                    sync = Sync(self.tap, config, catalog, state, output, **given)
                    code = sync.run()
            except BalogError as error:
                reporter.finish(1, str(error))
                raise
            code = code or (1 if catalog.failed else 0)
            reporter.finish(code, failures=sync.failures)
        return code

    # -- what was given ---------------------------------------------------------------------------------------------

    def _checked(self, is_needed: bool = True) -> Any:
        """Give the config as the tap's functions get it.

        Where none is needed, as for the discovery of schemas that lie in files, a config that is missing is refused
        only when somebody asks for the client: this gives the error then.
        """
        spec = self.tap.spec
        try:
            given = read_config(spec, self.tap.name, self._config)
            checked = spec.check(given.values, given.source, given.sources)
        except ConfigProblems as error:
            if is_needed:
                raise self._with_variables(error) from None
            return error
        self._toolkit = spec.toolkit(given.values, checked)
        self._batch = self._toolkit.pop("batch_config")
        self._batch_source = given.sources.get("batch_config", given.source)
        secrets = spec.secrets(given.values)
        if secrets:
            as_in_urls = (quote(secret, safe="") for secret in secrets)
            self._until_end.enter_context(concealed({*secrets, *as_in_urls}))
        for line in spec.warnings(given.values):
            self._warn(f"{given.source}: {line}")
        return checked

    def _with_variables(self, error: ConfigProblems) -> ConfigProblems:
        """Say of what is missing at the top how it can be given."""
        if self._config:
            return error
        return ConfigProblems([self._with_variable(problem) for problem in error.problems])

    def _with_variable(self, problem: ConfigError) -> ConfigError:
        for name in self.tap.spec.settings if problem.path == "$" else ():
            if f"field {name!r} is missing" in problem.reason:
                reason = f"{problem.reason}; give it by --config or {environment_name(self.tap.name, name)}"
                return ConfigError(reason, problem.source, "$")
        return problem

    def _chosen(self, config: Any) -> Discovered:
        given: Catalog | None = None
        source = self._catalog or self._properties or "catalog"
        if self._catalog:
            given = read_catalog(self._catalog)
            if self._properties:
                self._warn(f"--catalog and --properties are both given: {self._properties} is not looked at")
        elif self._properties:
            given = read_properties(self._properties)
        streams = list(self.tap.link().values())
        catalog, warnings = choose(streams, given, self._schemas(config), self.tap.visitors, source)
        for line in warnings:
            self._warn(line)
        self._say_failed(catalog)
        return catalog

    def _given_state(self) -> Any:
        from balog.tap.bookmarks import read_state

        return read_state(self._state, list(self.tap.streams), _logger(self.tap)) if self._state else None

    def _schemas(self, config: Any) -> Callable[[Stream], dict[str, Any]]:
        from balog.tap.schema import schema_of

        def client() -> Any:
            if isinstance(config, ConfigProblems):
                raise self._with_variables(config)
            if not self._client:
                self._client.append(self.tap.make_client(config) if self.tap.make_client else None)
            return self._client[0]

        return lambda stream: schema_of(stream.schema, client, stream.name)

    # -- what is said -----------------------------------------------------------------------------------------------

    def _warn(self, line: str) -> None:
        _logger(self.tap).warning("{}", line)

    def _say_failed(self, catalog: Discovered) -> None:
        if catalog.failed:
            from balog.tap.syncing.failing import say_failures

            say_failures(_logger(self.tap), catalog.failed.values())


def _logger(tap: Tap) -> Any:
    return balog.get_logger(tap.name)


def _as_json(document: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _write(text: str) -> int:
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        _forget_stdout()
        raise OutputError(why_unwritten(error)) from None
    return 0


def _forget_stdout() -> None:
    """Let what stdout did not take go, so that the interpreter does not try it again at its end."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    except OSError:
        pass
