"""Statistics of one stream in one run: counts, hashes and extremes, but no records."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from typing import Any

import msgspec

from balog.common.errors import MissingExtraError
from balog.registry.json_schema import JsonValidator
from balog.registry.schema import InvalidSchemaError
from balog.singer.bookmarks import is_after, is_naive

_DRAFT_4 = "http://json-schema.org/draft-04/schema#"
_MAX_FAULTS = 50
_MAX_NAMES = 10_000
_MAX_NAME = 1000
_INDEX = re.compile(r"\[\d+\]")
_encode = msgspec.json.Encoder(order="sorted").encode


class RecordTally:
    """A count of records, and the line of the first one; 0 if there is none."""

    def __init__(self) -> None:
        self.count = self.line = 0

    def add(self, line: int) -> None:
        """Count a record."""
        self.count += 1
        self.line = self.line or line


class SyncedStream:
    """Statistics of a stream's messages. It keeps 16 bytes per record: hashes of the key and of the content.

    Attributes:
        schemas: number of SCHEMA messages.
        schema: the last schema; ``schema_fault`` is its error, ``can_validate`` whether records are validated with it.
        key_properties: the keys of the last SCHEMA.
        bookmark_properties: those of the last SCHEMA; None without any.
        records: number of records; ``before_schema`` counts those before the first SCHEMA.
        bytes: total size of the record lines.
        invalid: records that violate the schema. Records that violate formats alone are ``ill_formatted``.
        faults: counts by place and reason; ``format_faults`` has those of formats.
        keyless: by key property, records in which it is missing or null.
        properties: number of records with each property.
        undeclared_at: the line of the first record with a property that the schema does not declare.
        keys: a hash of each record's keys, or of its content without keys.
        contents: a hash of each record's content.
        replication_key: the replication key; "" when none is known.
        lowest: the smallest replication value; ``highest`` is the largest.
        valueless: records without a replication value.
        naive: records whose replication value is a time without an offset.
        started_from: the initial bookmark; ``bookmark`` is that of the last STATE, ``latest`` the largest one.
        lost: records older than the bookmark of a STATE before them.
        ahead: number of STATEs whose bookmark is later than all records before them.
        versions: number of records by version; "none" counts those without one.
        activated: version and preceding records of each ACTIVATE_VERSION.
    """

    def __init__(self, name: str, replication_key: str = "", started_from: Any = None) -> None:
        self.name = name
        self.schemas = 0
        self.schema: dict[str, Any] = {}
        self.schema_fault = ""
        self.key_properties: list[str] = []
        self.bookmark_properties: list[str] | None = None
        self.records = self.before_schema = self.bytes = self.batches = 0
        self.invalid, self.ill_formatted = RecordTally(), RecordTally()
        self.faults: Counter[str] = Counter()
        self.format_faults: Counter[str] = Counter()
        self.keyless: defaultdict[str, RecordTally] = defaultdict(RecordTally)
        self.undeclared_at = 0
        self._declared: dict[str, Any] | None = None
        self.properties: Counter[str] = Counter()
        self.keys = array("q")
        self.contents = array("q")
        self.replication_key = replication_key
        self.lowest: Any = None
        self.highest: Any = None
        self.valueless, self.naive, self.lost = RecordTally(), RecordTally(), RecordTally()
        self.started_from = self.bookmark = self.latest = started_from
        self.ahead = 0
        self.versions: Counter[int | str] = Counter()
        self.activated: list[tuple[int, int]] = []
        self._validator: JsonValidator | None = None

    @property
    def can_validate(self) -> bool:
        """Whether records are validated."""
        return self._validator is not None

    def add_schema(self, schema: dict[str, Any], keys: list[str], bookmarks: list[str] | None) -> None:
        """Add a SCHEMA."""
        self.schemas += 1
        self.key_properties, self.bookmark_properties = keys, bookmarks
        if bookmarks and not self.replication_key:
            self.replication_key = bookmarks[0]
        if self.schemas > 1 and schema == self.schema:
            return
        self.schema = schema
        declared = schema.get("properties")
        self._declared = declared if isinstance(declared, dict) and "patternProperties" not in schema else None
        try:
            self._validator = validator_for(schema)
        except InvalidSchemaError as error:
            self._validator, self.schema_fault = None, str(error)
        except MissingExtraError:
            self._validator = None

    def add_record(self, record: dict[str, Any], size: int, line: int, version: int | None) -> None:
        """Add a RECORD of ``size`` bytes."""
        self.records += 1
        self.bytes += size
        if not self.schemas:
            self.before_schema += 1
        encoded = _encode(record)
        content = hash(encoded)
        self.contents.append(content)
        self.keys.append(self._key(record, line) if self.key_properties else content)
        if not self.undeclared_at and self._declared is not None and not record.keys() <= self._declared.keys():
            self.undeclared_at = line
        for name in record:
            if name in self.properties or (len(self.properties) < _MAX_NAMES and len(name) <= _MAX_NAME):
                self.properties[name] += 1
        self.versions["none" if version is None else version] += 1
        if self._validator is not None:
            self._validate(record, encoded, line)
        if self.replication_key:
            self._replicate(record, line)

    def add_batch(self) -> None:
        """Add a BATCH."""
        self.batches += 1

    def add_bookmark(self, value: Any) -> None:
        """Add the stream's bookmark of a STATE."""
        if value == self.bookmark:
            return
        self.bookmark = value
        if self.latest is None or is_after(value, self.latest):
            self.latest = value
        if self.records and self.highest is not None and is_after(value, self.highest):
            self.ahead += 1

    def _key(self, record: dict[str, Any], line: int) -> int:
        values = [record.get(name) for name in self.key_properties]
        for name, value in zip(self.key_properties, values):
            if value is None:
                self.keyless[name].add(line)
        return hash(_encode(values))

    def _validate(self, record: dict[str, Any], encoded: bytes, line: int) -> None:
        assert self._validator is not None  # noqa: S101
        try:
            if self._validator.is_valid(record):
                return
        except ValueError:
            pass
        others = False
        for fault in self._validator.check(encoded):
            is_format = fault.reason.startswith('is not a "')
            others = others or not is_format
            faults = self.format_faults if is_format else self.faults
            text = f"{_INDEX.sub('[*]', fault.path)} {fault.reason}"[:_MAX_NAME]
            if text in faults or len(faults) < _MAX_FAULTS:
                faults[text] += 1
        (self.invalid if others else self.ill_formatted).add(line)

    def _replicate(self, record: dict[str, Any], line: int) -> None:
        value = record.get(self.replication_key)
        if value is None:
            self.valueless.add(line)
            return
        if is_naive(value):
            self.naive.add(line)
        if self.highest is None:
            self.lowest = self.highest = value
        elif is_after(value, self.highest):
            self.highest = value
        elif is_after(self.lowest, value):
            self.lowest = value
        if self.bookmark != self.started_from and is_after(self.bookmark, value):
            self.lost.add(line)


def validator_for(schema: dict[str, Any]) -> JsonValidator:
    """Return a validator. Taps seldom name a draft, and ``exclusiveMaximum: true`` of database taps is draft 4.

    Raises:
        InvalidSchemaError: the schema is invalid in each of these drafts.
    """
    try:
        return JsonValidator(schema)
    except InvalidSchemaError:
        if "$schema" in schema:
            raise
        try:
            return JsonValidator({"$schema": _DRAFT_4, **schema})
        except InvalidSchemaError:
            pass
        raise
