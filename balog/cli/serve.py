"""``balog serve``."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import click

from balog.errors import MissingExtraError


@click.command(
    epilog="\b\nExit codes:\n0  stopped, all events are durable\n1  cannot run, or events are in no store\n"
    "2  wrong use, or a config that is none"
)
@click.option(
    "--config", "path", required=True, metavar="CONFIG", type=click.Path(path_type=Path), help="The service's config."
)
@click.option("--listen", metavar="HOST:PORT", help="Listen there instead; :PORT is this machine alone.")
def command(path: Path, listen: str | None) -> None:
    """Serve events: accept them over HTTP, keep them, route, filter and call back.

    Prints one line with its URL when it is ready. SIGTERM stops it: what it accepted goes to the topics, or to the
    fallback, within the config's `drain`; a second one ends it at once.

    \b
    balog check --for serve service.json
    balog serve --config service.json
    balog serve --config service.json --listen 0.0.0.0:8080       wants "tokens" in the config
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
    _allow_files()
    if listen is not None:
        config = msgspec.structs.replace(config, listen=listen)
    service = Service(config, say=lambda line: click.echo(f"balog serve: {line}", err=True))
    code = service.run(lambda: click.echo(f"balog serve: ready at {service.url}"))
    if service.lost:
        click.echo(f"balog serve: {len(service.lost)} events that nobody was told of are in no store", err=True)
    sys.exit(code)


def _allow_files() -> None:
    """Let the process open as many files as it may: each connection is one, and each topic on this disk is three."""
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # some systems have a lower limit than they tell
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
