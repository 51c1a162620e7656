"""The event: its two layers, its payload types, ids, versions, and fingerprints of failures."""

from balog.event.event import (
    FACILITY_VERSION,
    LEVELS,
    MAX_CHANNEL_LENGTH,
    MAX_EVENT_BYTES,
    MAX_ID_LENGTH,
    Event,
    Header,
    Level,
    check_id,
    check_keys,
    decode,
    decode_checked,
    encode,
    format_timestamp,
    is_id,
    parse_level,
    with_zone,
)
from balog.event.ids import new_id

__all__ = [
    "FACILITY_VERSION",
    "LEVELS",
    "MAX_CHANNEL_LENGTH",
    "MAX_EVENT_BYTES",
    "MAX_ID_LENGTH",
    "Event",
    "Header",
    "Level",
    "check_id",
    "check_keys",
    "decode",
    "decode_checked",
    "encode",
    "format_timestamp",
    "is_id",
    "new_id",
    "parse_level",
    "with_zone",
]
