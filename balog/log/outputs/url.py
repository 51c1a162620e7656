"""Opening of outputs: by name, by URL, or by the config of a sink."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from balog.common.errors import ConfigError, split_refusal
from balog.common.local_path import local_path
from balog.log.outputs.base import LogOutput
from balog.log.outputs.console import ConsoleOutput
from balog.log.outputs.stdio import SingerOutput, StderrOutput

_STREAMS: dict[str, type[LogOutput]] = {"console": ConsoleOutput, "singer": SingerOutput, "stderr": StderrOutput}
_FORMS = (
    "console, singer, stderr, logging, file:PATH, local:PATH?topic=NAME, sqs:REGION?topic=NAME, "
    "kafka:HOST:PORT?topic=NAME, store:PATH?topic=NAME, https://SERVICE?token_env=NAME&spool=PATH&sync=SECONDS, or "
    "a sink's config as an object"
)
_SERVICES = ("http", "https")
_OF_A_SERVICE = ("token_env", "token_file", "ca_file", "spool", "sync")
_DEFAULT_TOPIC = "events"


def open_output(where: str | Mapping[str, Any]) -> LogOutput:
    """Open an output.

    Args:
        where: one of these:

            - ``singer``, ``stderr`` or ``console``
            - ``logging``, the handlers of the standard library's logging
            - ``file:PATH``
            - a topic backend, ``local:PATH``, ``sqs:REGION``, ``kafka:HOST:PORT`` or that of another package, with
              ``topic`` (``events`` by default) and the backend's own options, and ``%2C`` for a comma where commas
              separate outputs
            - an archive, ``store:PATH`` or ``store:s3://BUCKET/PATH``, with ``topic``
            - ``https://SERVICE``, an event service (``balog serve``), with ``token_env`` or ``token_file`` for its
              bearer token, ``ca_file``, and ``spool``, a folder where events wait while the service can't be reached,
              with ``sync``, the spool's window in seconds
            - the config of a sink, as in a broker's config

    Raises:
        ConfigError: the output does not exist, or an option is invalid.
        MissingExtraError: its packages are not installed.
    """
    if not isinstance(where, str):
        return _open_sink(where)
    if where == "logging":
        from balog.log.outputs.stdlib import LoggingOutput

        return LoggingOutput()
    if where in _STREAMS:
        return _STREAMS[where]()
    scheme, colon, rest = where.partition(":")
    path, options = _split(where, rest)
    if not colon or not path or not (scheme in ("file", "store", *_SERVICES) or _is_backend(scheme)):
        kind = f"{scheme}:" if colon else where  # what follows may have credentials
        raise ConfigError(f"no output {kind[:80]!r}; there are {_FORMS}")
    if scheme == "file":
        from balog.log.outputs.file import FileOutput

        if options:
            raise ConfigError(f"output {_name(where)}: no option {min(options)!r}; logrotate rotates files")
        return FileOutput(path)
    if scheme in _SERVICES:
        return _open_service(where, f"{scheme}:{path}", options)
    topic = options.pop("topic", _DEFAULT_TOPIC)
    if scheme not in ("store", "local"):
        if "@" in path:
            raise ConfigError(f"output {scheme}: has credentials in the URL; give them by the environment or a file")
        return _open_sink({"type": "topic", "url": _topics_url(where), "topic": topic})
    if options:
        raise ConfigError(f"output {_name(where)}: no option {min(options)!r}; there is topic")
    if scheme == "local":
        return _open_sink({"type": "topic", "url": f"local:{path}", "topic": topic})
    from balog.common.storage import is_url

    return _open_sink({"type": "store", "url" if is_url(path) else "path": path, "topic": topic})


def _is_backend(scheme: str) -> bool:
    from balog.topics.url import BACKENDS

    return scheme in BACKENDS


def _open_service(where: str, url: str, options: Mapping[str, str]) -> LogOutput:
    for name in options:
        if name not in _OF_A_SERVICE:
            raise ConfigError(f"output {_name(where)}: no option {name!r:.40}; there are {', '.join(_OF_A_SERVICE)}")
    config: dict[str, Any] = {"type": "service", "url": url}
    if "ca_file" in options:
        config["ca_file"] = options["ca_file"]
    token = {kind: options[f"token_{kind}"] for kind in ("env", "file") if f"token_{kind}" in options}
    if token:
        config["token"] = token
    if "sync" in options and "spool" not in options:
        raise ConfigError(f"output {_name(where)}: sync is the window of a spool; give spool=PATH too")
    spool: dict[str, Any] | None = {"path": options["spool"]} if "spool" in options else None
    if spool is not None and "sync" in options:
        try:
            spool["sync"] = float(options["sync"])
        except ValueError:
            raise ConfigError(f"output {_name(where)}: sync is seconds, not {options['sync']!r:.40}") from None
    return _open_sink(config, spool)


def _open_sink(config: Mapping[str, Any], spool: Mapping[str, Any] | None = None) -> LogOutput:
    from balog.common.config.tagged_config import convert
    from balog.delivery.spool import SpoolConfig
    from balog.log.outputs.queued import QueuedOutput
    from balog.sinks import AnySinkConfig

    try:
        waiting = None if spool is None else msgspec.convert(_anchored(spool), SpoolConfig)
        return QueuedOutput(convert(_anchored(config), AnySinkConfig), waiting)
    except msgspec.ValidationError as error:
        reason, path = split_refusal(error)
        raise ConfigError(reason, path=path) from None


def _anchored(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config with absolute paths: a sink opens at its first event, maybe in another working directory."""
    anchored = dict(config)
    kind, url = anchored.get("type", "spool"), anchored.get("url")
    if kind in ("store", "spool"):
        for name in ("path", "staging"):
            if isinstance(path := anchored.get(name), str):
                anchored[name] = _absolute(path)
    if kind == "topic" and isinstance(url, str) and url.startswith("local:"):
        path, question, query = url.removeprefix("local:").partition("?")
        anchored["url"] = f"local:{_absolute(path)}{question}{query}"
    return anchored


def _absolute(path: str) -> str:
    if not path:
        return path
    try:
        return os.path.abspath(local_path(path))
    except ConfigError:
        return path  # the sink rejects it with its own error


def _topics_url(where: str) -> str:
    """Return the URL of the topics: without the option ``topic``, and with commas instead of ``%2C``."""
    base_url, _, query = where.partition("?")
    rest = "&".join(part for part in query.split("&") if part and part.partition("=")[0] != "topic")
    base_url = base_url.replace("%2C", ",").replace("%2c", ",")
    return f"{base_url}?{rest}" if rest else base_url


def _split(where: str, rest: str) -> tuple[str, dict[str, str]]:
    from urllib.parse import parse_qsl

    path, _, query = rest.partition("?")
    try:
        return path, dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise ConfigError(f"output {_name(where)}: after ? come options like name=value, joined by &") from None


def _name(where: str) -> str:
    url = where.partition("?")[0]
    return repr(url[:80] if "@" not in url else url.partition(":")[0] + ":…")  # before an @ are credentials
