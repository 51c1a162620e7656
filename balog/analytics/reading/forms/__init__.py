"""The forms of a file's content: events, or something that can be converted to events.

Each form's converter produces lines of events with their offsets, which the reader handles like a file of events.
"""

from balog.analytics.reading.forms.base import EventLines, pieces
from balog.analytics.reading.forms.detection import HEAD, can_split, detect
from balog.analytics.reading.forms.options import FORMS, FormOptions
from balog.analytics.reading.forms.reader import read_parts

__all__ = ["FORMS", "HEAD", "EventLines", "FormOptions", "can_split", "detect", "pieces", "read_parts"]
