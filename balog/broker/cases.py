"""Test cases of a broker's config: sample input and expected output. ``balog test`` runs a file of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from balog import config as configs
from balog.broker.broker import run_broker
from balog.broker.config import BrokerConfig
from balog.broker.config_check import find_in_document, find_problems
from balog.broker.dry_run import Diverted, offline
from balog.errors import ConfigError, split_refusal
from balog.sinks import Delivery
from balog.tagged_config import convert

_MAX_FAILURES = 20
_MAX_SHOWN = 300


class Case(Struct, forbid_unknown_fields=True, kw_only=True):
    """One run of a broker over a sample. What is not stated is not looked at."""

    name: Annotated[str, Meta(min_length=1, description="What the case shows.")]
    input: Annotated[
        list[dict[str, Any] | str] | None,
        Meta(description="The lines of the stream: messages as objects, or texts as they are."),
    ] = None
    input_file: Annotated[str, Meta(description="A file of the stream, instead of input.")] | None = None
    output: Annotated[
        list[dict[str, Any] | str] | None,
        Meta(description="All that goes on, line by line: an object by its JSON value, a text as it is."),
    ] = None
    events: Annotated[
        list[list[dict[str, Any]]] | None,
        Meta(description="For each sink of the config, its events in order; of each, the parts that are stated."),
    ] = None
    quarantine: Annotated[
        list[str] | None, Meta(description="What goes to quarantine: for each line, a part of its reason.")
    ] = None
    said: Annotated[list[str] | None, Meta(description="Texts that the broker's messages contain.")] = None
    exit_code: Annotated[int, Meta(description="The exit code of the broker.")] = 0

    def __post_init__(self) -> None:
        if (self.input is None) == (self.input_file is None):
            raise ValueError("a case has input or input_file, one of the two")
        stated = (self.output, self.events, self.quarantine, self.said)
        if not self.exit_code and all(one is None for one in stated):
            raise ValueError(f"the case {self.name!r:.100} states nothing; give output, events, quarantine or said")


class CaseFile(Struct, forbid_unknown_fields=True, kw_only=True):
    """Cases of one config."""

    examples: ClassVar = (
        {
            "config": "broker.json",
            "cases": [
                {
                    "name": "An invalid line goes to quarantine",
                    "input": ["not JSON"],
                    "output": [],
                    "quarantine": ["not JSON"],
                    "said": ["1 line"],
                },
                {
                    "name": "LOG messages become events",
                    "input_file": "sample.jsonl",
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
    document, found = configs.read(path)
    source, folder = str(path), Path(path).parent
    found += configs.find_problems(document, CaseFile, source)
    if not isinstance(document, dict):
        return found
    cases = document.get("cases")
    for number, case in enumerate(cases if isinstance(cases, list) else []):
        named = case.get("input_file") if isinstance(case, dict) else None
        if isinstance(named, str) and not (folder / named).is_file():
            found.append(ConfigError(f"{folder / named} is no file", source, f"$.cases[{number}].input_file"))
    config = document.get("config")
    try:
        if isinstance(config, str):
            found += find_problems(folder / config)[1]
        elif isinstance(config, dict):
            found += find_in_document(config, BrokerConfig, source, "$.config")[1]
    except ConfigError as error:
        found.append(error)
    return found


def load_cases(path: str | os.PathLike[str]) -> tuple[BrokerConfig, list[Case]]:
    """Read a file of cases; files that it names are relative to its folder.

    Raises:
        ConfigError: the file, its config or a case's input is not there or not of that form.
    """
    file = configs.load(path, CaseFile)
    folder = Path(path).parent
    for case in file.cases:
        if case.input_file is not None:
            case.input_file = str(folder / case.input_file)
    if isinstance(file.config, str):
        return configs.load(folder / file.config, BrokerConfig), file.cases
    try:
        return convert(file.config, BrokerConfig), file.cases
    except msgspec.ValidationError as error:
        reason, place = split_refusal(error)
        raise ConfigError(reason, str(path), "$.config" + place.removeprefix("$")) from None


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
        source, target, quarantine = folder / "input", folder / "output", folder / "quarantine"
        _write_input(case, source)
        target.touch()
        inside = offline(config, str(quarantine))
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
        self._quarantined = _lines(quarantine.read_bytes()) if quarantine.exists() else []

    def failures(self) -> Iterator[str]:
        case = self._case
        if self._code != case.exit_code:
            yield f"exit code {self._code}, want {case.exit_code}{self._unexpected_messages()}"
        if case.output is not None:
            yield from _compare("output", self._output, case.output, _is_line)
        if case.events is not None:
            yield from self._compare_events(case.events)
        if case.quarantine is not None:
            yield from _compare("quarantine", self._quarantined, case.quarantine, _has_reason)
        for text in case.said or ():
            if not any(text in line for line in self._messages):
                yield f"nobody said {text!r}{self._unexpected_messages()}"

    def _unexpected_messages(self) -> str:
        return "".join(f"; it said: {line}" for line in self._messages)

    def _compare_events(self, wanted: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[str]:
        if len(wanted) != len(self._events):
            yield f"events has {len(wanted)} lists, and the config {len(self._events)} sinks"
            return
        for number, (found, want) in enumerate(zip(self._events, wanted)):
            bodies = [delivery.body for delivery in found]
            yield from _compare(f"events of sink {number}", bodies, want, _is_part)


def _write_input(case: Case, path: Path) -> None:
    if case.input_file is not None:
        try:
            path.symlink_to(Path(case.input_file).resolve(strict=True))
            path.open("rb").close()
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror or error}", case.input_file) from None
        return
    lines = [line.encode() if isinstance(line, str) else msgspec.json.encode(line) for line in case.input or ()]
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def _lines(data: bytes) -> list[bytes]:
    """Split at newlines only; ``splitlines`` also splits at a carriage return."""
    lines = data.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _compare(
    what: str, found: Sequence[bytes], wanted: Sequence[Any], fits: Callable[[bytes, Any], bool]
) -> Iterator[str]:
    for number, (line, want) in enumerate(zip(found, wanted), 1):
        if not fits(line, want):
            yield f"{what}, line {number}: {_shown(line)}, want {_shown(want)}"
    for number, line in enumerate(found[len(wanted) :], len(wanted) + 1):
        yield f"{what}, line {number}: {_shown(line)}, want no more"
    for number, want in enumerate(wanted[len(found) :], len(found) + 1):
        yield f"{what}, line {number} is not there, want {_shown(want)}"


def _is_line(line: bytes, want: Any) -> bool:
    return line == want.encode() if isinstance(want, str) else _read(line) == want


def _has_reason(line: bytes, want: str) -> bool:
    entry = _read(line)
    return isinstance(entry, dict) and want in entry.get("reason", "")


def _is_part(line: bytes, want: Any) -> bool:
    return is_part(want, _read(line))


def is_part(want: Any, found: Any) -> bool:
    """Return whether a value has all expected parts: objects may have more keys, everything else is equal."""
    if isinstance(want, Mapping) and isinstance(found, Mapping):
        return all(key in found and is_part(value, found[key]) for key, value in want.items())
    if isinstance(want, list) and isinstance(found, list):
        return len(want) == len(found) and all(map(is_part, want, found))
    return bool(want == found) and isinstance(want, bool) == isinstance(found, bool)


def _read(line: bytes) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _shown(item: Any) -> str:
    text = item.decode("utf-8", "replace") if isinstance(item, bytes) else item
    text = text if isinstance(text, str) else msgspec.json.encode(text).decode()
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
