"""``balog run``."""

from __future__ import annotations

import sys

import click
import msgspec

from balog import config as configs
from balog.broker.config_check import complete, complete_errors
from balog.broker.quarantine import QuarantineConfig
from balog.broker.run_config import RunConfig
from balog.broker.sidecar import EXIT_CODES, run_sidecar
from balog.errors import ConfigError


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="\b\nExit codes:\n" + EXIT_CODES,
)
@click.option("--config", "path", metavar="FILE", help="JSON: the sinks that the events go to; stdout stays untouched.")
@click.option("--name", metavar="NAME", help="What the program is called in events; its file name when omitted.")
@click.option("--in-band", is_flag=True, help="Put the events into the stream also where a config names sinks.")
@click.option("--count", is_flag=True, help="Count records and bytes by stream for the run's report.")
@click.option(
    "--junk",
    type=click.Choice(["pass", "quarantine", "fail"]),
    help="What a line on stdout that is no Singer message does: pass on, go to the quarantine, end the run.",
)
@click.option("--quarantine", metavar="FILE", help="Quarantine such lines there: JSON lines with time and reason.")
@click.argument("cmd", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD [ARG …]")
def command(
    path: str | None,
    name: str | None,
    in_band: bool,
    count: bool,
    junk: str | None,
    quarantine: str | None,
    cmd: tuple[str, ...],
) -> None:
    """Run a tap as it is; its log lines and metrics become events.

    Without a config they become LOG messages in its stream, for a broker; with one they go to its sinks, and the tap
    writes straight to the target, at no cost. Its stderr still shows. What singer-python and the Meltano SDK print
    there, as text or JSON, becomes typed events; a traceback becomes one event. The last event reports the run:
    outcome, duration, CPU and memory, and records and bytes by stream where they were counted. Signals and the exit
    code are the tap's.

    \b
    balog run -- tap-jsonl --config tap.json | balog broker --config broker.json --strip | target-csv
    balog run --config run.json -- tap-jsonl --config tap.json | target-csv

    \b
    run.json:
      {"sinks": [{"type": "store", "path": "archive", "topic": "singer-events"}],
       "count": true, "junk": "quarantine", "quarantine": {"path": "junk.jsonl"}}
    """
    config = RunConfig(in_band=True)
    if path is not None:
        with complete_errors(path, RunConfig):
            config = configs.load(path, RunConfig)
    changes: dict[str, object] = {}
    if in_band:
        changes["in_band"] = True
    if count:
        changes["count"] = True
    if junk is not None:
        changes["junk"] = junk
    if quarantine is not None:
        changes.setdefault("junk", "quarantine")
        known = config.quarantine
        changes["quarantine"] = (
            QuarantineConfig(path=quarantine) if known is None else msgspec.structs.replace(known, path=quarantine)
        )
    try:
        code = run_sidecar(cmd, msgspec.structs.replace(config, **changes), name=name)
    except ConfigError as error:
        raise (complete(error, path, RunConfig) if path is not None and not changes else error) from None
    sys.exit(code)
