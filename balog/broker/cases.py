"""Test cases of a broker's config: sample input and expected output. ``balog test`` runs a file of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from balog.broker.broker import run_broker
from balog.broker.config import BrokerConfig
from balog.broker.config_check import find_in_document, find_problems
from balog.broker.dry_run import Diverted, offline
from balog.common import config as configs
from balog.common.config.tagged_config import convert
from balog.common.errors import ConfigError, split_refusal
from balog.common.text import cut
from balog.sinks import Delivery

_MAX_FAILURES = 20
_MAX_SHOWN = 300


class Case(Struct, forbid_unknown_fields=True, kw_only=True):
    """One run of a broker over a sample. What is not stated is not compared."""

    name: Annotated[str, Meta(min_length=1, description="What the case shows.")]
    input: Annotated[
        list[dict[str, Any] | str],
        Meta(description="The lines of the stream: messages as objects, or texts as they are."),
    ]
    output: Annotated[
        list[dict[str, Any] | str] | None,
        Meta(description="All that goes on, line by line: an object by its JSON value, a text as it is."),
    ] = None
    events: Annotated[
        list[list[dict[str, Any]]] | None,
        Meta(description="For each sink of the config, its events in order; of each, the parts that are stated."),
    ] = None

    def __post_init__(self) -> None:
        if self.output is None and self.events is None:
            raise ValueError(f"the case {self.name!r:.100} states nothing; give output or events")


class CaseFile(Struct, forbid_unknown_fields=True, kw_only=True):
    """Cases of one config."""

    examples: ClassVar = (
        {
            "config": "broker.json",
            "cases": [
                {"name": "A line that is no message passes", "input": ["not JSON"], "output": ["not JSON"]},
                {
                    "name": "LOG messages become events",
                    "input": [{"type": "LOG", "level": "INFO", "value": {"message": "hello"}}],
                    "events": [[{"payload": {"message": "hello"}}]],
                },
            ],
        },
    )

    config: Annotated[str | dict[str, Any], Meta(description="The broker's config: its file, or the config itself.")]
    cases: Annotated[list[Case], Meta(min_length=1, description="The runs, one after the other.")]


def find_case_problems(path: str | os.PathLike[str]) -> list[ConfigError]:
    """Return all problems of a file of cases and of the broker's config that it names.

    Raises:
        ConfigError: there is no such file, or it is not JSON.
    """
    document, problems = configs.read(path)
    source, folder = str(path), Path(path).parent
    problems += configs.find_problems(document, CaseFile, source)
    if not isinstance(document, dict):
        return problems
    config = document.get("config")
    try:
        if isinstance(config, str):
            problems += find_problems(folder / config)[1]
        elif isinstance(config, dict):
            problems += find_in_document(config, BrokerConfig, source, "$.config")[1]
    except ConfigError as error:
        problems.append(error)
    return problems


def load_cases(path: str | os.PathLike[str]) -> tuple[BrokerConfig, list[Case]]:
    """Read a file of cases; the config's file is relative to its folder.

    Raises:
        ConfigError: the file or its config is not there or not of that form.
    """
    file = configs.load(path, CaseFile)
    if isinstance(file.config, str):
        return configs.load(Path(path).parent / file.config, BrokerConfig), file.cases
    try:
        return convert(file.config, BrokerConfig), file.cases
    except msgspec.ValidationError as error:
        reason, config_path = split_refusal(error)
        raise ConfigError(reason, str(path), "$.config" + config_path.removeprefix("$")) from None


def failures(config: BrokerConfig, case: Case) -> list[str]:
    """Run a case without the config's sinks, state and spool, and with new files of a BATCH in a temporary folder.

    Returns:
        What came out otherwise than stated, a line each; none when all is as it should be.

    Raises:
        ConfigError: the config cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="balog-case-") as folder:
        run = _Run(config, case, Path(folder))
        return list(run.failures())[:_MAX_FAILURES]


class _Run:
    def __init__(self, config: BrokerConfig, case: Case, folder: Path) -> None:
        self._case = case
        self._messages: list[str] = []
        self._events: list[list[Delivery]] = [[] for _ in config.sinks]
        source, target = folder / "input", folder / "output"
        lines = [line.encode() if isinstance(line, str) else msgspec.json.encode(line) for line in case.input]
        source.write_bytes(b"".join(line + b"\n" for line in lines))
        target.touch()
        inside = offline(config, str(folder / "quarantine"))
        if inside.batch is not None and inside.batch.location is not None:
            batch = msgspec.structs.replace(inside.batch, location=str(folder / "batches"), options={})
            inside = msgspec.structs.replace(inside, batch=batch)
        reading, writing = os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY)
        try:
            self._code = run_broker(
                inside,
                source=reading,
                target=writing,
                say=self._messages.append,
                sinks=[Diverted(sink, self._events[number].extend) for number, sink in enumerate(config.sinks)],
            )
        finally:
            os.close(reading)
            os.close(writing)
        self._output = _lines(target.read_bytes())

    def failures(self) -> Iterator[str]:
        case = self._case
        if self._code:
            yield f"exit code {self._code}" + "".join(f"; the broker reported: {line}" for line in self._messages)
        if case.output is not None:
            yield from _compare("output", self._output, case.output, _is_line)
        if case.events is not None:
            yield from self._compare_events(case.events)

    def _compare_events(self, wanted: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[str]:
        if len(wanted) != len(self._events):
            yield f"events has {len(wanted)} lists, and the config {len(self._events)} sinks"
            return
        for number, (deliveries, expected) in enumerate(zip(self._events, wanted)):
            bodies = [delivery.body for delivery in deliveries]
            yield from _compare(f"events of sink {number}", bodies, expected, _is_part)


def _lines(data: bytes) -> list[bytes]:
    """Split at newlines only; ``splitlines`` also splits at a carriage return."""
    lines = data.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _compare(
    what: str, lines: Sequence[bytes], wanted: Sequence[Any], fits: Callable[[bytes, Any], bool]
) -> Iterator[str]:
    for number, (line, expected) in enumerate(zip(lines, wanted), 1):
        if not fits(line, expected):
            yield f"{what}, line {number}: {_shown(line)}, expected {_shown(expected)}"
    for number, line in enumerate(lines[len(wanted) :], len(wanted) + 1):
        yield f"{what}, line {number}: {_shown(line)}, expected no more"
    for number, expected in enumerate(wanted[len(lines) :], len(lines) + 1):
        yield f"{what}, line {number} is not there, expected {_shown(expected)}"


def _is_line(line: bytes, expected: Any) -> bool:
    return line == expected.encode() if isinstance(expected, str) else _read(line) == expected


def _is_part(line: bytes, expected: Any) -> bool:
    return is_part(expected, _read(line))


def is_part(expected: Any, actual: Any) -> bool:
    """Return whether a value has all expected parts: objects may have more keys, everything else is equal."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return all(key in actual and is_part(value, actual[key]) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(is_part, expected, actual))
    return bool(expected == actual) and isinstance(expected, bool) == isinstance(actual, bool)


def _read(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _shown(item: Any) -> str:
    text = item.decode("utf-8", "replace") if isinstance(item, bytes) else item
    text = text if isinstance(text, str) else msgspec.json.encode(text).decode()
    return cut(text, _MAX_SHOWN)
