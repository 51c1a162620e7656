"""Assemble a recorder and its outputs from the settings of the logger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from balog.common.errors import ConfigError
from balog.log.config.logger_config import LoggerConfig, OutputConfig
from balog.log.context import ProcessContext
from balog.log.levels import parse_threshold
from balog.log.outputs import default_output, open_output
from balog.log.outputs.objects import open_object
from balog.log.recorder import OutputRoute, Recorder
from balog.log.rendering import callsites

if TYPE_CHECKING:
    from balog.common.redaction import Redactor


def build_recorder(
    settings: LoggerConfig,
    sources: Mapping[str, str],
    processors: Sequence[Callable[[Any, str, dict[str, Any]], Any]],
    objects: Mapping[int, Any],
    *,
    program: tuple[str | None, str | None],
    knowing: Callable[[Redactor], Redactor],
) -> Recorder:
    """Open the outputs, and return a recorder for them.

    Args:
        settings: merged by ``merge_settings``.
        sources: where each setting comes from, for errors.
        processors: as in ``configure``.
        objects: outputs that are objects of the program, by their index in the list of outputs.
        program: the application's name and version if the settings have none.
        knowing: returns the redactor with further secrets.

    Raises:
        ConfigError: a setting is invalid.
    """
    validator = redactor = None
    if settings.validate != "off":
        from balog.log.values.validation import DeclaredTypeValidator

        validator = DeclaredTypeValidator(settings.validate)
    if settings.redact is not False:
        from balog.common.redaction import from_config

        with _blaming("redact", sources):
            redactor = from_config(settings.redact)
        if redactor is not None:
            redactor = knowing(redactor)
    with _blaming("level", sources):
        threshold = parse_threshold("INFO" if settings.level is None else settings.level)
    with _blaming("levels", sources):
        levels = {pattern: parse_threshold(level) for pattern, level in settings.levels.items()}
    outputs = default_output() if settings.output is None else settings.output
    with _blaming("output", sources):
        entries = outputs if isinstance(outputs, list) else [outputs]
        routes = [_open_route(entry, objects.get(number), threshold) for number, entry in enumerate(entries)]
    application, version = (settings.application, None) if settings.application is not None else program
    return Recorder(
        routes,
        ProcessContext(application, version, redactor.redact_encoded if redactor else None),
        redactor=redactor,
        levels=levels,
        validator=validator,
        processors=processors,
        callsites=callsites.DEFAULT if settings.callsite else None,
        strict=settings.strict,
    )


@contextmanager
def _blaming(name: str, sources: Mapping[str, str]) -> Iterator[None]:
    """Add the source of a setting, and its name in a file, to the errors that the block raises."""
    try:
        yield
    except ConfigError as error:
        source, path = sources[name], error.path
        if source.endswith(".json"):
            path = f"$.{name}{path.removeprefix('$')}"
        raise ConfigError(error.reason, error.source or source, path) from None


def _open_route(entry: str | OutputConfig, instead: Any, threshold: int) -> OutputRoute:
    """Open one output, or the object instead of it. Its own level replaces the general one, even by a lower one."""
    if isinstance(entry, str):
        entry = OutputConfig(to=entry)
    where = None
    if entry.where is not None:
        from balog.filters import Expression

        where = Expression(entry.where).matches
    name = entry.to if isinstance(entry.to, str) else str(entry.to.get("type"))
    own = threshold if entry.level is None else parse_threshold(entry.level)
    output = open_output(entry.to) if instead is None else open_object(instead)
    return OutputRoute(name.partition("?")[0], output, own, where, has_own_level=entry.level is not None)
