"""Validates the config of a service before it runs, and reports all problems at once."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator

from balog.common import config as configs
from balog.common.config.problems import intact
from balog.common.errors import BalogError, ConfigError
from balog.consumers.monitoring.health import read_address
from balog.service.api.listener import is_loopback
from balog.service.api.tokens import Tokens
from balog.service.control.folder import FolderControl
from balog.service.intake.fallback import open_fallback
from balog.service.jobs.access import access_problems
from balog.service.remote_registry import open_any_registry
from balog.service.settings import ServiceConfig
from balog.topics import open_topics


def find_service_problems(path: str | os.PathLike[str]) -> tuple[ServiceConfig | None, list[ConfigError]]:
    """Read the config of a service and find its problems, without connecting to other machines.

    Returns:
        The config, or None if it cannot be read, and the problems.

    Raises:
        ConfigError: the file does not exist, or is not JSON.
    """
    document, errors = configs.read(path)
    source = str(path)
    errors = configs.add_problems(errors, configs.find_problems(document, ServiceConfig, source))
    config, left_out, _ = intact(document, ServiceConfig)
    if config is None:
        return None, errors
    for error in service_problems(config):
        if not any(error.path == part or error.path.startswith((f"{part}.", f"{part}_")) for part in left_out):
            errors.append(ConfigError(error.reason, error.source or source, error.path))
    return (None if left_out else config), errors


def service_problems(config: ServiceConfig) -> Iterator[ConfigError]:
    """Yield the problems that show when the parts are opened. Creates nothing, and connects to no other machine."""
    for name in ("registry", "control"):
        if getattr(config, f"{name}_options") and getattr(config, name) is None:
            yield ConfigError(f"are for a store; give {name}", path=f"$.{name}_options")
    yield from _problems_of_opening("$.topics", lambda: open_topics(config.topics).close())
    if (fallback := config.fallback) is not None:
        yield from _problems_of_opening("$.fallback", lambda: open_fallback(fallback, config.topics).close())
    if (registry := config.registry) is not None:
        yield from _problems_of_opening(
            "$.registry", lambda: open_any_registry(registry, config.registry_options).close()
        )
    if (control := config.control) is not None:
        yield from _problems_of_opening("$.control", lambda: FolderControl(control, config.control_options).close())
    if (tokens := config.tokens) is not None:
        yield from _problems_of_opening("$.tokens", lambda: Tokens(tokens))
    yield from _problems_of_opening("$.listen", lambda: _check_listen_address(config))
    yield from access_problems(config.document_access)
    yield from _check_tls(config)
    if config.limits.event_bytes > config.limits.in_flight_bytes:
        yield ConfigError("an event may be larger than all that may be in flight", path="$.limits.event_bytes")


def _check_listen_address(config: ServiceConfig) -> None:
    host, _ = read_address(config.listen)
    if config.tokens is None and not is_loopback(host):
        raise ConfigError(
            f"others could connect to {config.listen} without authentication; name a file of tokens "
            "(balog token add), or listen at :PORT"
        )


def _check_tls(config: ServiceConfig) -> Iterator[ConfigError]:
    cert, key = config.tls_cert, config.tls_key
    if (cert is None) != (key is None):
        yield ConfigError("tls_cert and tls_key go together", path="$.tls_cert" if cert is None else "$.tls_key")
    elif cert is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
        except (OSError, ssl.SSLError) as error:
            reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
            yield ConfigError(f"the certificate can't be used with its key: {reason}", path="$.tls_cert")


def _problems_of_opening(path: str, open_part: Callable[[], object]) -> Iterator[ConfigError]:
    try:
        open_part()
    except ConfigError as error:
        inside = path
        if error.path.startswith("options"):
            inside = f"{path}_{error.path}"
        elif error.path.startswith("$") and not error.source:
            inside = path + error.path[1:]
        reason = f"{error.source}: {error.path}: {error.reason}" if error.source else error.reason
        yield ConfigError(reason, path=inside)
    except BalogError as error:  # an extra that is missing
        yield ConfigError(str(error), path=path)
