"""``balog …``: thin, one module a command.

Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 wrong use, 130 ended by SIGINT, 143 by
SIGTERM. Commands that drain when they are asked to stop list their own.
"""

from __future__ import annotations

import codecs
import errno
import importlib
import io
import sys
from typing import Any

import click

from balog.broker.messages.descriptors import hold_standard, let_go
from balog.cli.shared.interruption import Interruption
from balog.cli.shared.options import CommandGroup
from balog.cli.shared.output import print_errors
from balog.common import plugins
from balog.common.distribution import DISTRIBUTION
from balog.common.errors import BalogError, redact_error

__all__ = ["broker", "main"]

# A command's module is imported only when the command runs: `balog broker` must not pay for Spark.
GROUPS = {
    "Log": {
        "run": "Run a tap; turn its log lines and metrics into events, and report the run.",
        "check": "Find every error in a config before it runs.",
    },
    "Carry": {
        "broker": "Send the events in a Singer stream to sinks; leave the data as it is.",
        "test": "Run test cases of a broker's config: sample input and expected output.",
        "state": "Read the STATE that a broker has stored: load, show, diff.",
        "replay": "Send the events in a spool to their sinks, or events that a service rejected to the service.",
    },
    "Act": {
        "consume": "Run the handlers of a package on the events of topics.",
        "consumers": "List the handlers of a package and the events that each one handles.",
        "watch": "Run monitors on events: alerts when a pipeline is late, thin, slow or failing.",
        "forward": "Send the events of a topic to sinks, with a broker's config and no Python.",
    },
    "Ask": {
        "load": "Load events into tables, each event once; maintain the tables.",
        "query": "Run SQL on the tables of events.",
        "report": "Summarize events in tables and one HTML page: runs, failures, slow streams.",
        "filter": "Run a filter of the event service once over stored events, with Spark.",
    },
    "Deliver": {
        "serve": "Run the event service: accept events over HTTP, store, route, filter and call back.",
        "micro": "Run the whole event service in one process, for a laptop, a test or a CI job.",
        "schema": "Manage the types of events: infer, register, validate, compare, document.",
        "config": "Push, compare and roll back versions of the control document.",
        "token": "Add, list and revoke the bearer tokens of an event service.",
    },
    "Tap": {"tap": "Make new taps; verify that a tap follows Singer's practices."},
    "Operate": {
        "topics": "Inspect topics, publish to them, dump them, and retry dead letters.",
    },
}
_MODULES = {name: f"balog.cli.service.{name}" for name in ("config", "micro", "serve", "token")}
COMMANDS = {name: summary for commands in GROUPS.values() for name, summary in commands.items()}

_EXAMPLES = {
    "Log": "balog run -- tap-jsonl --config tap.json | balog broker --config broker.json | target-csv",
    "Carry": "tap | balog broker --config broker.json | target",
    "Act": "balog consume mypackage --topics local:topics",
    "Ask": 'balog query "SELECT cls_type, count(*) FROM events GROUP BY ALL" --tables tables',
    "Deliver": "balog serve --config service.json",
    "Tap": "balog tap verify -- tap-jsonl --config tap.json",
    "Operate": "balog topics describe orders --topics local:topics",
}

_WITH_SPARK = frozenset({"filter", "load", "query", "report", "watch"})


class _Commands(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *(name for name in plugins.names("balog.commands") if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command | None = None
        if cmd_name in COMMANDS:
            command = importlib.import_module(_MODULES.get(cmd_name, f"balog.cli.{cmd_name}")).command
        elif cmd_name in plugins.names("balog.commands"):
            command = plugins.load("balog.commands", cmd_name)
            if not isinstance(command, click.Command):
                raise BalogError(f"plug-in {cmd_name!r} of balog.commands is not a click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])
                formatter.write(f"\n{'':{formatter.current_indent}}$ {_EXAMPLES[group]}\n")
        added = [
            (name, f"{kind} of {plugins.package_of(group, name)}")
            for group, kind in plugins.GROUPS.items()
            for name in plugins.names(group)
            if not (group == "balog.commands" and name in COMMANDS)
        ]
        if added:
            with formatter.section("Plug-ins"):
                formatter.write_dl(added)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        _replace_what_stdout_cannot_show()
        return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        hold_standard()
        if sys.stdout is None:  # closed by the caller: writing to the descriptor that hold_standard opened fails
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        with Interruption(lambda: ctx.invoked_subcommand in _WITH_SPARK) as interruption:
            try:
                return super().invoke(ctx)
            except BaseException as error:
                # The name is None while the command's module is being imported.
                name = f"balog {ctx.invoked_subcommand}" if ctx.invoked_subcommand else "balog"
                if interruption.number is not None:  # the error is a consequence of the signal
                    interruption.end(name)
                _fail(name, error)
                raise


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Write characters as JSON escapes them: readable in a text, and the same value in JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end


def _replace_what_stdout_cannot_show() -> None:
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        codecs.register_error("balog.escaped", _escaped)
        sys.stdout.reconfigure(errors="balog.escaped")


def _fail(command: str, error: BaseException) -> None:
    """Print the line of a BalogError or an OSError and exit; return for any other error."""
    if isinstance(error, BalogError):
        sys.exit(print_errors(command, error))
    if isinstance(error, OSError) and error.errno != errno.EPIPE:  # click ends silently then
        where = f"{error.filename}: " if error.filename else "writing failed: "
        click.echo(f"{command}: {where}{redact_error(str(error.strerror or error))}", err=True)
        let_go(1)  # the interpreter would write the rest of the buffer again at exit, and fail again
        sys.exit(1)


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name=DISTRIBUTION, prog_name="balog", message="%(prog)s %(version)s")
def main() -> None:
    """Log, carry, act on and ask about the events of data pipelines.

    `balog COMMAND --help` shows a command's options and examples.

    Topics are local:PATH, sqs:REGION or kafka:HOST:PORT.
    """


def broker() -> None:
    """Run ``balog broker`` as the program ``balog-broker``, for callers that pass no arguments, such as Meltano."""
    main(["broker", *sys.argv[1:]], prog_name="balog")
