"""``configure()``: in one call, from a JSON file, or from the environment; twice is safe."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from balog import config as configs
from balog.errors import BalogError, ConfigError, complain, split_refusal
from balog.event import LEVELS, parse_level
from balog.outputs import default_output, open_output
from balog.outputs.queued import QueuedOutput, flush_all
from balog.recording import exit_hooks
from balog.recording.context import Surroundings
from balog.recording.recorder import Lane, Recorder
from balog.redaction_options import REDACTION_SCHEMA

if TYPE_CHECKING:
    from balog.redaction import Redactor

__all__ = ["LoggerConfig", "concealed", "configure", "current", "divert", "flush", "introduced", "peek", "swap"]

Where = str | Mapping[str, Any]


class OutputConfig(Struct, forbid_unknown_fields=True, kw_only=True):
    """One output: ``to`` is its name, its URL or a sink's config; ``where`` a filter in the expression language."""

    to: str | dict[str, Any]
    level: str | None = None
    where: str | None = None


class LoggerConfig(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a config file of the logger may say; each is described at ``configure``."""

    output: str | OutputConfig | list[str | OutputConfig] | None = None
    level: str | None = None
    application: str | None = None
    application_version: str | None = None
    redact: bool | Annotated[dict[str, Any], Meta(extra_json_schema=REDACTION_SCHEMA)] = True
    volume: list[dict[str, Any]] = []
    volume_interval: Annotated[float, Meta(gt=0)] = 60.0
    max_tag_sets: Annotated[int, Meta(ge=0)] = 1000
    validate: Literal["off", "tag", "raise"] = "off"
    locals: bool = False
    strict: bool = False


_current: Recorder | None = None
_program: tuple[str | None, str | None] = (None, None)
_diverted: Callable[[Recorder], Recorder] | None = None
_lock = threading.RLock()
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@contextmanager
def introduced(application: str, version: str | None = None) -> Iterator[None]:
    """A context in which a program is called so where neither ``configure`` nor a config file says how."""
    global _program
    before, _program = _program, (application, version)
    try:
        yield
    finally:
        _program = before


def current() -> Recorder:
    """Give what the process logs with; configured from the environment when nobody has configured it yet."""
    return _current or _configure_from_environment()


def configure(
    output: Where | Sequence[Where] | None = None,
    *,
    config: str | os.PathLike[str] | None = None,
    level: str | None = None,
    application: str | None = None,
    application_version: str | None = None,
    redact: bool | Mapping[str, Any] | None = None,
    volume: Sequence[Mapping[str, Any]] | None = None,
    volume_interval: float | None = None,
    max_tag_sets: int | None = None,
    validate: Literal["off", "tag", "raise"] | None = None,
    locals: bool | None = None,
    strict: bool | None = None,
    processors: Sequence[Callable[[Any, str, dict[str, Any]], Any]] = (),
) -> None:
    """Say where events go, from which level on, and what is done to them. Loggers that exist already follow.

    What is not given is taken from ``config``, then from the environment, then as written here.

    Args:
        output: ``singer`` (LOG messages on stdout), ``stderr`` (JSON lines), ``console`` (lines for people), a URL
            such as ``file:app.jsonl?max_bytes=10000000&backups=3`` or ``local:topics?topic=events``, a sink's config;
            or several of them, each also as ``{"to": …, "level": …, "where": …}``. From ``BALOG_OUTPUT`` (several are
            parted by commas); else ``console`` when stderr is a terminal and ``stderr`` when it is not.
        config: a JSON file with these names as keys; from ``BALOG_CONFIG``. A file that ends in ``.env`` has lines
            ``BALOG_OUTPUT=…`` instead.
        level: the lowest level that is written; from ``BALOG_LEVEL``, else ``INFO``. An output's own level is for it
            alone.
        application: goes into every event's context; else the program's file name.
        application_version: likewise; else that of the distribution that owns the running program.
        redact: take secrets out of events: True, False, or rules as ``balog.redaction.from_config`` takes them.
        volume: rules that sample or limit channels, as ``balog.recording.volume`` has them, and the seconds between
            two reports of what was held back in ``volume_interval``.
        max_tag_sets: how many different sets of tags one metric may have; the tags of further ones are folded, as
            ``balog.cardinality.Cardinality`` does it. 1000 when not said; 0 is no limit.
        validate: check payloads of declared types: ``off``, ``tag`` (say so in ``payload.problem``) or ``raise``.
        locals: exceptions carry the local variables of their frames, redacted.
        strict: raise what goes wrong while logging instead of writing the event as well as it can be. For tests.
        processors: structlog's processors, run before a logger's call becomes an event.

    Raises:
        ConfigError: something that cannot be; what was configured before stays.
    """
    given: dict[str, Any] = {
        "output": None if output is None else _entries(output),
        "level": level,
        "application": application,
        "application_version": application_version,
        "redact": redact,
        "volume": volume,
        "volume_interval": volume_interval,
        "max_tag_sets": max_tag_sets,
        "validate": validate,
        "locals": locals,
        "strict": strict,
    }
    for processor in processors:
        if not callable(processor):
            raise ConfigError(f"{str(processor)[:80]!r} cannot be called", "configure(processors=…)")
    settings, sources = _settled({name: value for name, value in given.items() if value is not None}, config)
    _install(_build(settings, sources, processors))


@contextmanager
def concealed(secrets: Iterable[str]) -> Iterator[None]:
    """Keep texts out of every event that is logged inside the block, also after another ``configure``.

    Contexts and channels that were encoded before are encoded again. With ``redact=False`` nothing is kept out.

    Args:
        secrets: texts of at least four characters; shorter ones are passed over.
    """
    own = frozenset(secret for secret in secrets if len(secret) >= _SHORTEST_SECRET)
    with _lock:
        current()
        _concealed.append(own)
        _conceal_again()
    try:
        yield
    finally:
        with _lock:
            _concealed.remove(own)
            _conceal_again()


def _conceal_again() -> None:
    """Let the current recorder hide what the open ``concealed`` blocks name, and nothing that closed ones named."""
    recorder = _current
    if recorder is not None and recorder.redactor is not None:
        redactor = _knowing(recorder.redactor)
        if redactor is not recorder.redactor:
            recorder.redact_with(redactor)


def _knowing(redactor: Redactor) -> Redactor:
    return redactor.knowing(frozenset().union(*_concealed))


_concealed: list[frozenset[str]] = []
_SHORTEST_SECRET = 4


def _entries(output: Where | Sequence[Where]) -> list[Any]:
    """Give what was given as outputs as a list, a bare config of a sink as the ``to`` of an output."""
    entries = [output] if isinstance(output, (str, Mapping)) or not isinstance(output, Iterable) else output
    return [{"to": entry} if isinstance(entry, Mapping) and "to" not in entry else entry for entry in entries]


def _settled(
    given: dict[str, Any], config: str | os.PathLike[str] | None = None, ignored: Container[str] = ()
) -> tuple[LoggerConfig, dict[str, str]]:
    """Join what is given, the config file and the environment; say where each of them came from.

    Args:
        ignored: variables that are not looked at.
    """
    environment = {name: os.environ.get(name) or None for name in _VARIABLES if name not in ignored}
    path = config or environment.get("BALOG_CONFIG")
    settings = LoggerConfig() if path is None else _read(path)
    sources = dict.fromkeys(LoggerConfig.__struct_fields__, str(path))
    try:
        checked = msgspec.convert(given, LoggerConfig)
    except msgspec.ValidationError as error:
        reason, where = split_refusal(error)
        name, rest = _NAME.match(where).groups()  # type: ignore[union-attr]
        raise ConfigError(reason, f"configure({name}=…)", rest) from None
    settings = msgspec.structs.replace(settings, **{name: getattr(checked, name) for name in given})
    sources |= {name: f"configure({name}=…)" for name in given}
    if settings.output is None:
        settings.output, sources["output"] = _outputs_of(environment.get("BALOG_OUTPUT")), "BALOG_OUTPUT"
    if settings.level is None:
        settings.level, sources["level"] = environment.get("BALOG_LEVEL"), "BALOG_LEVEL"
    return settings, sources


_VARIABLES = ("BALOG_CONFIG", "BALOG_OUTPUT", "BALOG_LEVEL")
_NAME = re.compile(r"\$\.?(\w*)(.*)", re.DOTALL)


def _read(path: str | os.PathLike[str]) -> LoggerConfig:
    if not str(path).endswith(".env"):
        return configs.load(path, LoggerConfig)
    variables = configs.load_env(path, ("BALOG_OUTPUT", "BALOG_LEVEL", "BALOG_RUN_ID"))
    if variables.get("BALOG_RUN_ID"):
        os.environ.setdefault("BALOG_RUN_ID", variables["BALOG_RUN_ID"])
    return LoggerConfig(output=_outputs_of(variables.get("BALOG_OUTPUT")), level=variables.get("BALOG_LEVEL") or None)


def _outputs_of(text: str | None) -> list[str | OutputConfig] | None:
    return [part.strip() for part in (text or "").split(",") if part.strip()] or None


def _build(
    settings: LoggerConfig,
    sources: Mapping[str, str],
    processors: Sequence[Callable[[Any, str, dict[str, Any]], Any]] = (),
) -> Recorder:
    validator = redactor = volume = None
    if settings.validate != "off":
        from balog.recording.validation import Validator

        validator = Validator(settings.validate)
    if settings.redact is not False:
        from balog.redaction import from_config

        with _blaming(sources["redact"]):
            redactor = from_config(settings.redact)
        if redactor is not None:
            redactor = _knowing(redactor)
    if settings.volume:
        from balog.recording.volume import Volume

        with _blaming(sources["volume"]):
            volume = Volume(settings.volume, interval=settings.volume_interval)
    with _blaming(sources["level"]):
        threshold = _number(settings.level or "INFO")
    outputs = default_output() if settings.output is None else settings.output
    with _blaming(sources["output"]):
        lanes = [_lane(entry, threshold) for entry in (outputs if isinstance(outputs, list) else [outputs])]
    application, version = settings.application, settings.application_version
    if application is None:
        application, version = _program[0], version or _program[1]
    return Recorder(
        lanes,
        Surroundings(application, version, redactor.redact_encoded if redactor else None),
        redactor=redactor,
        volume=volume,
        validator=validator,
        processors=processors,
        max_tag_sets=settings.max_tag_sets,
        with_locals=settings.locals,
        strict=settings.strict,
    )


@contextmanager
def _blaming(source: str) -> Iterator[None]:
    """Let a refusal say where the refused came from."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(error.reason, error.source or source, error.path) from None


def _lane(entry: str | OutputConfig, threshold: int) -> Lane:
    """Open one output. Its own level replaces the general one, also downwards."""
    if isinstance(entry, str):
        entry = OutputConfig(to=entry)
    where = None
    if entry.where is not None:
        from balog.expressions import Expression

        where = Expression(entry.where).matches
    name = entry.to if isinstance(entry.to, str) else str(entry.to.get("type"))
    own = threshold if entry.level is None else _number(entry.level)
    return Lane(name.partition("?")[0], open_output(entry.to), own, where)


def _number(name: str) -> int:
    level = parse_level(name) if isinstance(name, str) else None
    if level is None:
        raise ConfigError(f"no level {str(name)[:40]!r}; there are {', '.join(LEVELS)}")
    return LEVELS[level]


def _configure_from_environment() -> Recorder:
    """Configure at the first event when nobody did; a wrong variable costs one line, never the application."""
    with _lock:
        ignored: list[str] = []
        kept: dict[str, Any] = {}
        while _current is None:
            try:
                _install(_build(*_settled(kept, ignored=ignored)))
            except BalogError as error:
                source = error.source if isinstance(error, ConfigError) else "BALOG_OUTPUT"
                wrong = source if source in _INSTEAD else "BALOG_CONFIG"
                if wrong in ignored:
                    raise
                ignored.append(wrong)
                instead = _INSTEAD[wrong]()
                if wrong == "BALOG_CONFIG" and (rules := _redaction_rules(os.environ["BALOG_CONFIG"])):
                    kept = {"redact": rules}
                    instead = "with its redaction rules alone"
                complain(f"{error}; going on {instead}")
        return _current


_INSTEAD: dict[str, Callable[[], str]] = {
    "BALOG_OUTPUT": lambda: f"with {default_output()}",
    "BALOG_LEVEL": lambda: "from INFO on",
    "BALOG_CONFIG": lambda: "without it",
}


def _redaction_rules(path: str) -> dict[str, Any] | None:
    """Return the redaction rules of a config file, whatever else is wrong with the file; None without valid ones."""
    from balog.redaction import from_config

    try:
        rules = configs.load(path, dict[str, Any]).get("redact")
        return rules if isinstance(rules, dict) and from_config(rules) else None
    except BalogError:
        return None


def _install(recorder: Recorder) -> None:
    global _current, _lost_before
    with _lock:
        if _diverted is not None:
            recorder = _diverted(recorder)
        before, _current = _current, recorder
    exit_hooks.at_end(_close)
    if any(isinstance(lane.output, QueuedOutput) for lane in recorder.lanes):
        exit_hooks.catch_sigterm()
    if before is not None:
        lost = before.close()
        _report_lost(before)
        with _lock:
            _lost_before += lost


_lost_before = 0
"""Events that earlier configurations of this process lost."""


def swap(recorder: Recorder | None) -> Recorder | None:
    """Put another recorder in place, without closing the one before; give that one. For tests."""
    global _current
    with _lock:
        before, _current = _current, recorder
        _conceal_again()
        return before


def peek() -> Recorder | None:
    """Give what the process logs with, or None when nobody has logged or configured yet."""
    return _current


def divert(how: Callable[[Recorder], Recorder] | None) -> Callable[[Recorder], Recorder] | None:
    """Put what this gives in the place of every recorder that is configured; give the one before. For tests."""
    global _diverted
    with _lock:
        before, _diverted = _diverted, how
        return before


def flush(deadline: float = 5.0) -> int:
    """Wait at most ``deadline`` seconds until queued events are delivered.

    An output without a spool gives up the events that its sink has not accepted by then. They count as lost.

    Returns:
        The number of events that this process has lost so far, also under earlier configurations.
    """
    return _lost_before + (0 if _current is None else _current.flush(deadline))


def _close() -> None:
    recorder = _current
    if recorder is not None:
        recorder.close()
        _report_lost(recorder)
    flush_all(_LAST_SECONDS)


def _report_lost(recorder: Recorder) -> None:
    for lane in recorder.lanes:
        if lane.lost:
            complain(f"output {lane.name}: {lane.lost} events were lost")


_LAST_SECONDS = 1.0
"""For what was written to outputs after they had been replaced."""
