"""The forms of a file's content: events, or something that can be converted to events.

Each form's converter produces lines of events with their offsets, which the reader handles like a file of events.
"""

from balog.analytics.reading.forms.converter import FORMS, EventLines, pieces, read_form
from balog.analytics.reading.forms.reader import HEAD, can_split, detect, read_parts

__all__ = ["FORMS", "HEAD", "EventLines", "can_split", "detect", "pieces", "read_form", "read_parts"]
