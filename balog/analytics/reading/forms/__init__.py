"""What the bytes of a file are: events already, or something that events can be made of.

Each form gives lines of events, each with the place that it came from; the reader takes them from there as it takes a
file of events.
"""

from balog.analytics.reading.forms.base import EventLines, pieces
from balog.analytics.reading.forms.detection import HEAD, can_cut, detect
from balog.analytics.reading.forms.options import FORMS, FormOptions
from balog.analytics.reading.forms.reader import read_parts

__all__ = ["FORMS", "HEAD", "EventLines", "FormOptions", "can_cut", "detect", "pieces", "read_parts"]
