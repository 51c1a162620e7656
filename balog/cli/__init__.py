"""``balog …``: thin, one module a command.

Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 wrong use, 130 ended by SIGINT, 143 by
SIGTERM. Commands that drain when they are asked to stop list their own.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import Any

import click

from balog.broker.descriptors import hold_standard
from balog.cli.interruption import Interruption
from balog.distribution import DISTRIBUTION
from balog.errors import BalogError, ConfigError, ConfigProblems

__all__ = ["broker", "main"]

# Each command's module is imported when that command is asked for: `balog broker` must not pay for Spark.
COMMANDS = {
    "broker": "Carry events out of a Singer stream to sinks; pass the data on untouched.",
    "callbacks": "See which callbacks their endpoints disabled, and enable them.",
    "check": "Find everything that is wrong with a config, before it runs.",
    "config": "Push, compare and take back versions of what event services do.",
    "consume": "Run the handlers of a package on the events of topics.",
    "consumers": "List the handlers of a package, and what each of them listens to.",
    "filter": "Run a filter of the event service with Spark, once over what there is.",
    "forward": "Send the events of a topic to sinks, with a broker's config and no Python.",
    "micro": "Run the whole event service in one process, for a laptop, a test or a CI job.",
    "query": "Answer SQL over the tables of events.",
    "load": "Load events into tables, each once; look after the tables.",
    "replay": "Send the events that wait in a spool to their sinks, or what a service refused.",
    "report": "Turn archived events into tables and one HTML page, with Spark.",
    "run": "Run a tap; its log lines and metrics become events, and its run a report.",
    "schema": "Keep the types of events: infer, register, validate, compare, document.",
    "serve": "Run the event service: accept events over HTTP, keep, route, filter and call back.",
    "state": "Read the STATE that a broker has stored: load, show, diff.",
    "tap": "Prove that a tap, of balog's toolkit or not, keeps to Singer's practices.",
    "test": "Run cases of a broker's config: sample input, and what should come of it.",
    "token": "Make, list and revoke the bearer tokens of an event service.",
    "top": "Show live what each broker and sidecar does, and which side of it is slow.",
    "topics": "Look into topics, publish, dump, and give dead letters another try.",
}

_WITH_SPARK = frozenset({"filter", "load", "query", "report"})


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"balog.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        hold_standard()
        if sys.stdout is None:  # it was closed: writing there is refused, as hold_standard has it
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        with Interruption(lambda: ctx.invoked_subcommand in _WITH_SPARK) as interruption:
            try:
                return super().invoke(ctx)
            except BaseException as error:
                # The name is None while the command's module is being imported.
                name = f"balog {ctx.invoked_subcommand}" if ctx.invoked_subcommand else "balog"
                if interruption.number is not None:  # whatever was raised on the way out
                    interruption.end(name)
                _fail(name, error)
                raise


def _fail(command: str, error: BaseException) -> None:
    """Report an error that a command raised on purpose, or that the system did, and exit; return for any other."""
    if isinstance(error, BalogError):
        for problem in error.problems if isinstance(error, ConfigProblems) else [error]:
            click.echo(f"{command}: {problem}", err=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
    if isinstance(error, OSError) and error.errno != errno.EPIPE:  # click ends silently then
        where = f"{error.filename}: " if error.filename else "writing failed: "
        click.echo(f"{command}: {where}{error.strerror or error}", err=True)
        _forget_stdout()
        sys.exit(1)


def _forget_stdout() -> None:
    """Let what stdout did not take go, so that the interpreter does not try it again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name=DISTRIBUTION, prog_name="balog", message="%(prog)s %(version)s")
def main() -> None:
    """Log, carry, act on and ask about the events of data pipelines.

    \b
    tap | balog broker --config broker.json | target      carry events to sinks
    balog run -- tap … | balog broker … | target          the same for a tap that knows nothing of balog
    balog consume mypackage --topics local:PATH           act on them: your handlers …
    balog forward --topics local:PATH --topic NAME …      … or any sinks
    balog topics describe NAME --topics local:PATH        see what waits, and for whom
    balog serve --config service.json                     take events over HTTP, route, filter, call back
    balog micro                                           the same for a laptop or a test, with nothing to set up
    balog load PATH --tables FOLDER                       keep them as tables
    balog report PATH                                     ask about all of them

    Topics are local:PATH, sqs:REGION or kafka:HOST:PORT.
    """


def broker() -> None:
    """``balog-broker``: ``balog broker``, for who can name a program and not its first argument, such as Meltano."""
    main(["broker", *sys.argv[1:]], prog_name="balog")
