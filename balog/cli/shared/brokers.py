"""``broker-statsd``, ``broker-prometheus`` …: brokers with one sink, whose config is the config of that sink."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import click
import msgspec
from msgspec import Meta, Struct

from balog.broker.broker import EXIT_CODES, run_broker
from balog.broker.config import BrokerConfig
from balog.broker.config_check import complete
from balog.broker.messages.descriptors import hold_standard
from balog.cli.shared import options
from balog.cli.shared.output import print_errors
from balog.common import config as configs
from balog.common.distribution import DISTRIBUTION
from balog.common.errors import BalogError, ConfigError
from balog.delivery.spool import SpoolConfig
from balog.sinks.base import AnySinkConfig

SINGLE_SINKS = ("datadog", "elastic", "pagerduty", "prometheus", "statsd")

_OWN: list[tuple[str, Any, Any]] = [
    ("strip", Annotated[bool, Meta(description="Remove LOG messages from the stream.")], False),
    ("spool", SpoolConfig | None, None),
    (
        "drain",
        Annotated[float, Meta(ge=0, le=3600, description="Seconds for delivering queued events at the end.")],
        10.0,
    ),
]


@cache
def config_of(name: str) -> type[Struct]:
    """Return the struct of the config of ``broker-NAME``: the sink's fields, ``strip``, ``spool`` and ``drain``."""
    sink = AnySinkConfig.struct_of(name)
    settings = sink.__struct_config__
    return msgspec.defstruct(
        f"{name.capitalize()}BrokerConfig",
        _OWN,
        bases=(sink,),
        kw_only=True,
        forbid_unknown_fields=True,
        tag_field=settings.tag_field,
        tag=settings.tag,
    )


def broker_config(name: str, config: Struct) -> BrokerConfig:
    """Return the ``balog broker`` config for a config of ``broker-NAME``."""
    fields = msgspec.structs.asdict(config)
    own = {key: fields.pop(key) for key, _, _ in _OWN}
    return BrokerConfig(sinks=[AnySinkConfig.struct_of(name)(**fields)], **own)  # type: ignore[list-item]


def _make(name: str) -> Callable[[], None]:
    @click.command(
        name=f"broker-{name}",
        epilog="\b\nExit codes:\n" + EXIT_CODES,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        help=(
            f"Send the events in a Singer stream to {name}; the stream passes byte for byte.\n\n"
            f"\b\ntap | broker-{name} --config {name}.json | target\n\n"
            f"Config: the sink {name}'s (docs/reference/sinks.md), with optional strip, spool and drain."
        ),
    )
    @click.version_option(package_name=DISTRIBUTION, prog_name=f"broker-{name}", message="%(prog)s %(version)s")
    @options.config("JSON: the settings of the sink.", required=True)
    @options.verbose
    def command(path: str, is_verbose: bool) -> None:
        hold_standard()
        try:
            config = broker_config(name, configs.load(path, config_of(name)))
            code = run_broker(config, is_verbose=is_verbose)
        except BalogError as error:
            if isinstance(error, ConfigError):
                known = ConfigError(error.reason, error.source, error.path.replace("$.sinks[0]", "$", 1))
                error = complete(known, path, config_of(name))
            code = print_errors(f"broker-{name}", error)
        sys.exit(code)

    return command


statsd = _make("statsd")
prometheus = _make("prometheus")
elastic = _make("elastic")
pagerduty = _make("pagerduty")
datadog = _make("datadog")
