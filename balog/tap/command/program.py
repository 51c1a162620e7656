"""A tap as a program: its command line, what it runs, and its exit codes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
import msgspec

import balog
from balog.common.errors import BalogError, ConfigError, redact_error
from balog.common.local_path import local_path
from balog.log.configuration import state
from balog.tap.bookmarks import State, read_state
from balog.tap.catalog import Catalog, Discovered, choose, discover, read_catalog
from balog.tap.command.options import about, options, version_of
from balog.tap.command.standard_output import messages_only, without_log_messages
from balog.tap.config import environment_name, read_config
from balog.tap.errors import OutputError, SyncError, TapConfigProblems
from balog.tap.records import Output
from balog.tap.records.output import why_unwritten
from balog.tap.schema import schema_of

if TYPE_CHECKING:
    from balog.singer.assertions import TapAssertions
    from balog.tap.definition import TapDefinition
    from balog.tap.streams import Providers, Stream


def run(tap: TapDefinition, arguments: Sequence[str] | None = None) -> None:
    """Run a tap as a program.

    Args:
        tap: the tap.
        arguments: those of the command line; None means those of the process.

    Raises:
        SystemExit: always, with the exit code: 0 success; 1 a stream failed, or the reader of stdout has gone; 2 wrong
            usage, or an invalid config, catalog or state, before anything ran; 128 plus the number of the signal that
            ended the run: 130 (SIGINT), 143 (SIGTERM).
    """
    with ExitStack() as resources:
        code = _run(tap, list(sys.argv[1:] if arguments is None else arguments), resources)
    sys.exit(code)


def _run(tap: TapDefinition, arguments: list[str], resources: ExitStack) -> int:
    def complain(lines: str) -> None:
        recorder = state.recorder
        redactor = recorder.redactor if recorder else None
        for line in lines.splitlines():
            sys.stderr.write(f"{tap.name}: {redactor.redact_text(line) if redactor else line}\n")
        sys.stderr.flush()

    if sys.stdout is None:
        complain("stdout is closed, but messages go there")
        return 1
    try:
        with options(tap).make_context(tap.name, arguments) as context:
            return Program(tap, resources, context.params).run()
    except click.exceptions.Exit as exit:  # --help
        return exit.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ConfigError as error:
        complain(str(error))
        return 2
    except BalogError as error:
        complain(redact_error(str(error)))
        return 1
    except OSError as error:
        if error.errno in (errno.EPIPE, errno.ESHUTDOWN):
            complain("the reader of stdout has gone")
        else:
            complain(f"{error.filename}: {error.strerror}" if error.filename else redact_error(str(error)))
        _discard_stdout()
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # from the tap's own code, outside its streams
        from balog.log.values.json_values import safe_str
        from balog.tap.syncing.session import report_failures

        report_failures(_logger(tap), [SyncError(tap.name, f"{type(error).__name__}: {safe_str(error)}", error)])
        return 1


class Program:
    """One run of a tap as a program.

    Args:
        tap: the tap.
        resources: closed when the program ends, after its last output.
        given: the values of ``options`` by name: files, and the flags of what to do instead of a sync.

    Attributes:
        assertions: check the messages of syncs, as with ``--assert``; None for no checks.
    """

    assertions: TapAssertions | None = None

    def __init__(self, tap: TapDefinition, resources: ExitStack, given: Mapping[str, Any]) -> None:
        self.tap = tap
        self._resources = resources
        self._given = given
        self._config: Sequence[str] = given["config"]
        out_file = given["out_file"]
        self._out_file = None if out_file is None else local_path(out_file, "--out-file")
        actions = {
            "version": self._print_version,
            "about": self._print_about,
            "discover": self._discover,
        }
        self._action = next((action for name, action in actions.items() if given[name]), self._sync)
        self._client: list[Any] = []
        self._has_all_streams = True
        self._toolkit: dict[str, Any] = {}

    def run(self) -> int:
        """Run what the options ask for, and return the exit code."""
        self._resources.enter_context(state.introduced(self.tap.name, version_of(self.tap) or None))
        self._resources.enter_context(self.tap.streams.closed())
        return self._action()

    # -- actions ------------------------------------------------------------------------------------------------------

    def _print_version(self) -> int:
        return _write(
            f"{self.tap.name} {version_of(self.tap) or 'has no version: no distribution of its name is installed'}"
        )

    def _print_about(self) -> int:
        self.tap.link()
        return _write(_as_json(about(self.tap)))

    def _discover(self) -> int:
        output = Output()
        with messages_only(), output.in_order(), without_log_messages():
            config = self._read_config(is_needed=bool(self._config))
            failed = self._find_streams(config)
            streams = list(self.tap.link().values())
            catalog = discover(streams, self._schemas(config))
            catalog.failed.update(failed)
            self._report_failed(catalog)
            if not catalog.entries and catalog.failed:
                return 1
            output.write(_as_json(catalog.as_json()).encode() + b"\n")
        return 1 if catalog.failed else 0

    def _sync(self) -> int:
        from balog.tap.syncing import Stop, Sync
        from balog.tap.syncing.reporter import Reporter

        start: Callable[..., Sync] = Sync
        watch = None
        if self._given["asserts"] or self.assertions is not None:
            from balog.singer.assertions import TapAssertions
            from balog.tap.command.asserting import AssertedSync

            assertions = self.assertions or TapAssertions()
            start, watch = partial(AssertedSync, assertions=assertions), assertions.see
        output = Output(self._out_file, watch)
        with messages_only(), output.in_order():
            config = self._read_config()
            catalog = self._read_catalog(config)
            state = self._read_state() or State()
            reporter = Reporter(self.tap.name, version_of(self.tap))
            reporter.begin([entry.tap_stream_id for entry in catalog if entry.is_selected], state.currently_syncing)
            with Stop() as stop:  # also during the report: a signal after the last message changes nothing
                try:
                    client = self._client[0] if self._client else None  # made for the schemas
                    options: dict[str, Any] = {"observer": reporter, "stop": stop, "client": client, **self._toolkit}
                    sync = start(self.tap, config, catalog, state, output, **options)
                    code = sync.run()
                except BalogError as error:
                    reporter.finish(1, str(error))
                    raise
                code = code or (1 if catalog.failed else 0)
                reporter.finish(code, failures=sync.failures)
        return code

    # -- input --------------------------------------------------------------------------------------------------------

    def _read_config(self, is_needed: bool = True) -> Any:
        """Read the config and return it as the tap's functions get it.

        If it is not needed, because schemas may be in files, an invalid config is an error only when the client is
        made. In that case the error is returned.
        """
        spec = self.tap.spec
        try:
            given = read_config(spec, self.tap.name, self._config)
            config, secrets = spec.check(given.values, given.source, given.sources)
        except TapConfigProblems as error:
            if is_needed:
                raise self._with_variables(error) from None
            return error
        self._toolkit = spec.toolkit(config)
        if secrets:
            as_in_urls = (quote(secret, safe="") for secret in secrets)
            self._resources.enter_context(state.concealed({*secrets, *as_in_urls}))
        for line in spec.warnings(given.values):
            self._warn(f"{given.source}: {line}")
        return config

    def _with_variables(self, error: TapConfigProblems) -> TapConfigProblems:
        """Add the environment variables of missing settings to the errors."""
        if self._config:
            return error
        return TapConfigProblems([self._with_variable(problem) for problem in error.problems])

    def _with_variable(self, problem: ConfigError) -> ConfigError:
        for name in self.tap.spec.settings if problem.path == "$" else ():
            if f"field {name!r} is missing" in problem.reason:
                reason = f"{problem.reason}; set it in --config or {environment_name(self.tap.name, name)}"
                return ConfigError(reason, problem.source, "$")
        return problem

    def _read_catalog(self, config: Any) -> Discovered:
        file = self._given["catalog"]
        source = file or "catalog"
        given = read_catalog(file) if file else None
        failed = self._find_streams(config, given, source)
        streams = list(self.tap.link().values())
        try:
            catalog, warnings = choose(streams, given, self._schemas(config), source)
        except TapConfigProblems:
            for failure in failed.values():  # why the catalog's streams are not there
                raise failure from None
            raise
        for line in warnings:
            self._warn(line)
        catalog.failed.update(failed)
        self._report_failed(catalog)
        return catalog

    def _find_streams(self, config: Any, given: Catalog | None = None, source: str = "") -> dict[str, SyncError]:
        """Add the streams of ``@tap.discover`` to the tap, and return the errors."""
        providers: Providers = {"client": lambda: self._tap_client(config), "config": lambda: self._valid(config)}
        self.tap, failed = self.tap.with_found_streams(providers, _logger(self.tap), given, source)
        self._has_all_streams = given is None or self.tap.finder is None
        return failed

    def _read_state(self) -> Any:
        if not self._given["state"]:
            return None
        streams = list(self.tap.streams) if self._has_all_streams else None
        return read_state(self._given["state"], streams, _logger(self.tap))

    def _schemas(self, config: Any) -> Callable[[Stream], dict[str, Any]]:
        from balog.tap.streams.settings import INFERRED

        def client() -> Any:
            return self._tap_client(config)

        def schema(stream: Stream) -> dict[str, Any]:
            if stream.schema != INFERRED:
                return schema_of(stream.schema, client, stream.name)
            from balog.tap.command.sampling import inferred_schema

            return inferred_schema(stream, client, lambda: self._valid(config))

        return schema

    def _tap_client(self, config: Any) -> Any:
        """Return the tap's client, which discovery and schemas may need before the sync."""
        if not self._client:
            config = self._valid(config)
            self._client.append(self.tap.make_client(config) if self.tap.make_client else None)
        return self._client[0]

    def _valid(self, config: Any) -> Any:
        if isinstance(config, TapConfigProblems):
            raise self._with_variables(config)
        return config

    # -- warnings -----------------------------------------------------------------------------------------------------

    def _warn(self, line: str) -> None:
        _logger(self.tap).warning("{}", line)

    def _report_failed(self, catalog: Discovered) -> None:
        if catalog.failed:
            from balog.tap.syncing.session import report_failures

            report_failures(_logger(self.tap), catalog.failed.values())


def _logger(tap: TapDefinition) -> Any:
    return balog.get_logger(tap.name)


def _as_json(document: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _write(text: str) -> int:
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError as error:
        _discard_stdout()
        raise OutputError(why_unwritten(error)) from None
    return 0


def _discard_stdout() -> None:
    """Discard what stdout did not take, so that the interpreter does not try to write it at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    except OSError:
        pass
