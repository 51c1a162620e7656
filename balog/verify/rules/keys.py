"""Rules of keys: present, not null, and unique."""

from __future__ import annotations

from collections.abc import Iterator

from balog.verify.catalogs import method_of
from balog.verify.rules.registration import SDK_TESTS, SPEC, Violation, check
from balog.verify.rules.selection import require_output
from balog.verify.synced_stream import SyncedStream
from balog.verify.trials import Skip, Trials

__all__: list[str] = []

_MANY = 10  # records
_MANY_SHARE = 0.1


def _keyed(trials: Trials) -> list[tuple[str, SyncedStream]]:
    streams = require_output(trials.sync).output.streams
    found = [(name, stream) for name, stream in streams.items() if stream.key_properties and stream.records]
    if not found:
        raise Skip("no stream with key properties wrote records")
    return found


@check(
    "keys-are-there", "records", "error", 8, SPEC,
    "Write all key properties in each record. A property that can be null is not a key.",
)  # fmt: skip
def keys_are_there(trials: Trials) -> Iterator[Violation]:
    """Each record has its key properties, and none is null."""
    for name, stream in _keyed(trials):
        for key, count in stream.keyless.items():
            yield Violation(f"{key} is missing or null in {count} of {stream.records} records", name)


@check(
    "keys-are-unique", "records", "error", 6, SDK_TESTS,
    "Declare the complete key of a record, and look for a page that is read twice.",
)  # fmt: skip
def keys_are_unique(trials: Trials) -> Iterator[Violation]:
    """In a full table, no key occurs twice."""
    keyed = [
        (name, stream)
        for name, stream in _keyed(trials)
        if not stream.replication_key
        and method_of(trials.entries.get(name, {})) != "LOG_BASED"  # a row, then its changes
    ]
    if not keyed:
        raise Skip("no full table with key properties wrote records")
    for name, stream in keyed:
        twice = _again(stream)
        if twice:
            is_grave = twice >= _MANY_SHARE * stream.records
            yield Violation(f"{twice} of {stream.records} records repeat a key", name, is_grave)


@check(
    "records-come-once", "records", "warning", 2, SDK_TESTS,
    "Where windows or pages overlap, omit records that were already written.",
)  # fmt: skip
def records_come_once(trials: Trials) -> Iterator[Violation]:
    """In an incremental stream, no key occurs twice in a run; an error where many do."""
    keyed = [(name, stream) for name, stream in _keyed(trials) if stream.replication_key]
    if not keyed:
        raise Skip("no incremental stream with key properties wrote records")
    for name, stream in keyed:
        twice = _again(stream)
        if twice:
            is_grave = twice >= _MANY and twice >= _MANY_SHARE * stream.records
            yield Violation(f"{twice} of {stream.records} records repeat a key", name, is_grave)


def _again(stream: SyncedStream) -> int:
    return len(stream.keys) - len(set(stream.keys))
