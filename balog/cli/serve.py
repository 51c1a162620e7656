"""``balog serve``: run the event service."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import click

from balog.errors import MissingExtraError


@click.command(
    epilog="\b\nExit codes:\n0  stopped; all accepted events are durable\n1  cannot run, or events are in no store\n"
    "2  wrong use, or an invalid config"
)
@click.option(
    "--config", "path", required=True, metavar="CONFIG", type=click.Path(path_type=Path), help="The service's config."
)
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
        from balog.delivery.service import Service
        from balog.delivery.validation import find_service_problems
    except ImportError:
        raise MissingExtraError("balog serve", "serve") from None

    config, problems = find_service_problems(path)
    if config is None or problems:
        for problem in problems:
            click.echo(f"balog serve: {problem}", err=True)
        sys.exit(2)
    _raise_file_limit()
    if listen is not None:
        config = msgspec.structs.replace(config, listen=listen)
    service = Service(config, say=lambda line: click.echo(f"balog serve: {line}", err=True))
    code = service.run(lambda: click.echo(f"balog serve: ready at {service.url}"))
    if service.lost:
        click.echo(f"balog serve: {len(service.lost)} events that were not acknowledged are in no store", err=True)
    sys.exit(code)


def _raise_file_limit() -> None:
    """Raise the limit of open files to its maximum: a connection takes one, a local topic three."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # some systems report a higher limit than they allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
