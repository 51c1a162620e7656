"""``balog serve``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from balog.errors import MissingExtraError


@click.command()
@click.option(
    "--config", "path", required=True, metavar="CONFIG", type=click.Path(path_type=Path), help="The service's config."
)
@click.option("--listen", metavar="HOST:PORT", help="Listen there instead; :PORT is this machine alone.")
def command(path: Path, listen: str | None) -> None:
    """Serve events: accept them over HTTP, keep them, route, filter and call back.

    Prints one line with its URL when it is ready. SIGTERM stops it: what it accepted goes to the topics, or to the
    fallback, within the config's `drain`; a second one ends it at once.
    """
    import msgspec

    try:
        from balog.delivery.checking import find_service_problems
        from balog.delivery.service import Service
    except ImportError:
        raise MissingExtraError("balog serve", "serve") from None

    config, problems = find_service_problems(path)
    if config is None or problems:
        for problem in problems:
            click.echo(f"balog serve: {problem}", err=True)
        sys.exit(2)
    if listen is not None:
        config = msgspec.structs.replace(config, listen=listen)
    service = Service(config, say=lambda line: click.echo(f"balog serve: {line}", err=True))
    code = service.run(lambda: click.echo(f"balog serve: ready at {service.url}"))
    if service.lost:
        click.echo(f"balog serve: {len(service.lost)} events that nobody was told of are in no store", err=True)
    sys.exit(code)
