"""``balog serve``: run the event service."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import click

from balog.cli.shared import options
from balog.cli.shared.output import reporter
from balog.common.errors import ConfigProblems, MissingExtraError

_report = reporter("balog serve")


@click.command(
    epilog="\b\nExit codes:\n0  stopped; all accepted events are durable\n1  cannot run, or events are in no store\n"
    "2  wrong use, or an invalid config"
)
@options.config("The service's config.", required=True, type=options.FilePath(path_type=Path))
@click.option(
    "--listen", metavar="HOST:PORT", help="Address to listen on, instead of the config's; :PORT is loopback only."
)
def command(path: Path, listen: str | None) -> None:
    """Run the event service: accept events over HTTP, store, route, filter and call back.

    The service prints its URL when it is ready. SIGTERM stops it: accepted events go to the topics, or to the fallback,
    within the config's `drain`. A second SIGTERM ends it at once.

    \b
    balog check --for serve service.json
    balog serve --config service.json
    balog serve --config service.json --listen 0.0.0.0:8080       needs "tokens" in the config
    """
    import msgspec

    try:
        from balog.service.service import Service
        from balog.service.validation import find_service_problems
    except ImportError:
        raise MissingExtraError("balog serve", "serve") from None

    config, problems = find_service_problems(path)
    if config is None or problems:
        raise ConfigProblems(problems)
    _raise_file_limit()
    if listen is not None:
        config = msgspec.structs.replace(config, listen=listen)
    service = Service(config, say=_report)
    code = service.run(lambda: click.echo(f"balog serve: ready at {service.url}"))
    if service.lost:
        _report(f"{len(service.lost)} events that were not acknowledged are in no store")
    sys.exit(code)


def _raise_file_limit() -> None:
    """Raise the limit of open files to its maximum: a connection takes one, a local topic three."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # some systems report a higher limit than they allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
