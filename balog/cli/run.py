"""``balog run``: run a tap; turn its log lines and metrics into events, and report the run."""

from __future__ import annotations

import sys

import click

from balog.broker.config import RunConfig
from balog.broker.config_check import complete, complete_errors
from balog.broker.sidecar.sidecar import EXIT_CODES, run_sidecar
from balog.cli.shared import options
from balog.common import config as configs
from balog.common.errors import ConfigError


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="\b\nExit codes:\n" + EXIT_CODES,
)
@options.config("Config with the sinks of the events; stdout stays unchanged.")
@click.option("--name", metavar="NAME", help="Name of the program in events.  [default: its file name]")
@click.argument("cmd", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD [ARG …]")
def command(path: str | None, name: str | None, cmd: tuple[str, ...]) -> None:
    """Run an unchanged tap; turn its log lines and metrics into events.

    Without a config, events become LOG messages in the stream, for a broker. With a config, they go to its sinks and
    the tap writes straight to the target. The tap's stderr still shows. Lines of singer-python and the Meltano SDK,
    as text or JSON, become typed events; a traceback becomes one event. The last event reports the run: outcome,
    duration, CPU, memory, and the records and bytes by stream; with a config, if its "count" is true. The tap gets
    the signals; its exit code is returned.

    \b
    balog run -- tap-jsonl --config tap.json | balog broker --config broker.json --strip | target-csv
    balog run --config run.json -- tap-jsonl --config tap.json | target-csv

    \b
    run.json:
      {"sinks": [{"type": "store", "path": "archive", "topic": "singer-events"}],
       "count": true, "quarantine": {"path": "invalid.jsonl"}}
    """
    config = RunConfig(in_band=True)
    if path is not None:
        with complete_errors(path, RunConfig):
            config = configs.load(path, RunConfig)
    try:
        code = run_sidecar(cmd, config, name=name)
    except ConfigError as error:
        raise (complete(error, path, RunConfig) if path is not None else error) from None
    sys.exit(code)
