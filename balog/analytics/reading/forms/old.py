"""Converts ``time⇥channel⇥payload``, the form of the first archives (see ``balog.topics.archives``)."""

from __future__ import annotations

import re
from datetime import tzinfo
from functools import lru_cache

import msgspec
from msgspec import Struct

from balog.analytics.reading.forms.base import EventLines, LineConverter
from balog.analytics.reading.forms.event_lines import read_local_time, write_time
from balog.errors import EventError


class _Object(Struct, frozen=True, gc=False):
    """Any JSON object."""


_check_object = msgspec.json.Decoder(_Object).decode
_RFC3339 = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")


class OldConverter(LineConverter):
    """Converts each line to an event of facility 0.0.1, which has no level; a line of JSON is read as an event."""

    def convert(self, piece: bytes, offset: int, lines: EventLines) -> None:
        """Convert each line."""
        for line in piece.split(b"\n"):
            start, offset = offset, offset + len(line) + 1
            if not line.strip():
                continue
            when, _, rest = line.partition(b"\t")
            channel, tab, payload = rest.partition(b"\t")
            if not tab or line[:1] == b"{":
                lines.add(line, start, line)
                continue
            try:
                # Checked separately: a payload that closes its object early must not overwrite the header.
                _check_object(payload)
                event = b'{"schema":"0.0.1","header":{"id":"%b","channel":%b,"timestamp":"%b"},"payload":%b}' % (
                    self.origin.make_id(start, line).encode(),
                    _quote(channel),
                    when if _RFC3339.fullmatch(when) else _time(when, self.origin.zone),
                    payload.rstrip(b"\r"),
                )
            except EventError as error:
                lines.reject(start, str(error), line)
            except UnicodeError:
                lines.reject(start, "$: not UTF-8", line)
            except msgspec.ValidationError:
                lines.reject(start, "$.payload: want an object", line)
            except (msgspec.DecodeError, RecursionError) as error:
                lines.reject(start, f"$.payload: not JSON: {error}", line)
            else:
                lines.add(event, start, line)


@lru_cache(maxsize=4096)
def _quote(text: bytes) -> bytes:
    return msgspec.json.encode(text.decode())


@lru_cache(maxsize=4096)
def _time(text: bytes, zone: tzinfo) -> bytes:
    return write_time(read_local_time(text.decode("ascii").strip(), zone)).encode()
