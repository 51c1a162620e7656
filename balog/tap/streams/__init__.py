"""What a stream is, declared by decorator or by class, and the order in which streams run."""

from balog.tap.streams.calling import by_names, did_you_mean
from balog.tap.streams.declaring import add, declare, link
from balog.tap.streams.order import below, in_order, root_of
from balog.tap.streams.stream import Records, Stream, place_of_caller

__all__ = [
    "Records",
    "Stream",
    "add",
    "below",
    "by_names",
    "declare",
    "did_you_mean",
    "in_order",
    "link",
    "place_of_caller",
    "root_of",
]
