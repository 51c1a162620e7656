"""The event: its two layers, its payload types, ids, versions, and fingerprints of failures."""

from balog.event.event import (
    MAX_EVENT_BYTES,
    Event,
    check_keys,
    decode,
    decode_checked,
    decode_own,
    encode,
)
from balog.event.facility import (
    FACILITY_VERSION,
    LEVELS,
    MAX_CHANNEL_LENGTH,
    Header,
    Level,
    parse_level,
    with_zone,
)
from balog.event.ids import MAX_ID_LENGTH, check_id, format_timestamp, is_id, new_id

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
    "decode_own",
    "encode",
    "format_timestamp",
    "is_id",
    "new_id",
    "parse_level",
    "with_zone",
]
