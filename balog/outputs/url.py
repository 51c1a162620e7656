"""One way to open an output: by its name, its URL, or a broker's config of a sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from balog.errors import ConfigError, split_refusal
from balog.outputs.base import Output
from balog.outputs.stdio import ConsoleOutput, SingerOutput, StderrOutput

__all__ = ["open_output"]

_STREAMS: dict[str, type[Output]] = {"console": ConsoleOutput, "singer": SingerOutput, "stderr": StderrOutput}
_FORMS = (
    "console, singer, stderr, file:PATH?max_bytes=N&backups=N, local:PATH?topic=NAME, sqs:REGION?topic=NAME, "
    "kafka:HOST:PORT?topic=NAME, store:PATH?topic=NAME, or a sink's config as an object"
)
_TOPICS = ("local", "sqs", "kafka")
_DEFAULT_TOPIC = "events"


def open_output(where: str | Mapping[str, Any]) -> Output:
    """Open an output.

    Args:
        where: ``singer``, ``stderr``, ``console``; ``file:PATH`` with ``max_bytes`` and ``backups``; a home of
            topics, ``local:PATH``, ``sqs:REGION`` or ``kafka:HOST:PORT``, with ``topic`` (``events`` when not said)
            beside the home's own options, and ``%2C`` for a comma where commas part outputs; ``store:PATH``, an
            archive, likewise; or the config of a sink, as a broker's has it.

    Raises:
        ConfigError: no such output, or an option of it that cannot be.
        MissingExtraError: its packages are not installed.
    """
    if not isinstance(where, str):
        return _open_sink(where)
    if where in _STREAMS:
        return _STREAMS[where]()
    scheme, colon, rest = where.partition(":")
    path, options = _split(where, rest)
    if not colon or not path or scheme not in ("file", "store", *_TOPICS):
        kind = f"{scheme}:" if colon else where  # what follows may have credentials
        raise ConfigError(f"no output {kind[:80]!r}; there are {_FORMS}")
    if scheme == "file":
        from balog.outputs.file import FileOutput

        return FileOutput(path, **_numbers(where, options, ("max_bytes", "backups")))
    topic = options.pop("topic", _DEFAULT_TOPIC)
    if scheme in ("sqs", "kafka"):
        if "@" in path:
            raise ConfigError(f"output {scheme}: has credentials in the URL; give them by the environment or a file")
        return _open_sink({"type": "topic", "url": _home(where), "topic": topic})
    if options:
        raise ConfigError(f"output {_name(where)}: no option {min(options)!r}; there is topic")
    if scheme == "local":
        return _open_sink({"type": "topic", "url": f"local:{path}", "topic": topic})
    return _open_sink({"type": "store", "path": path, "topic": topic})


def _open_sink(config: Mapping[str, Any]) -> Output:
    from balog.outputs.queued import QueuedOutput
    from balog.sinks import AnySinkConfig

    try:
        return QueuedOutput(msgspec.convert(dict(config), AnySinkConfig))
    except msgspec.ValidationError as error:
        reason, path = split_refusal(error)
        raise ConfigError(reason, path=path) from None


def _home(where: str) -> str:
    """Give the URL of a home of topics: all but the topic, spelled as it was but for commas in the place."""
    place, _, query = where.partition("?")
    rest = "&".join(part for part in query.split("&") if part and part.partition("=")[0] != "topic")
    place = place.replace("%2C", ",").replace("%2c", ",")
    return f"{place}?{rest}" if rest else place


def _split(where: str, rest: str) -> tuple[str, dict[str, str]]:
    from urllib.parse import parse_qsl

    path, _, query = rest.partition("?")
    try:
        return path, dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise ConfigError(f"output {_name(where)}: after ? come options like name=value, joined by &") from None


def _name(where: str) -> str:
    place = where.partition("?")[0]
    return repr(place[:80] if "@" not in place else place.partition(":")[0] + ":…")  # before an @ are credentials


def _numbers(where: str, options: dict[str, str], known: tuple[str, ...]) -> dict[str, int]:
    for name, value in options.items():
        if name not in known:
            raise ConfigError(f"output {_name(where)}: no option {name!r}; there are {', '.join(known)}")
        if not (value.isascii() and value.isdigit()):
            raise ConfigError(f"output {_name(where)}: {name} is a number, not {value[:20]!r}")
    return {name: int(value) for name, value in options.items()}
