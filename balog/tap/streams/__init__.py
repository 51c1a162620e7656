"""Streams, declared by decorator or by class, and the order in which they run."""

from balog.tap.streams.family import in_run_order, link, with_descendants
from balog.tap.streams.injection import Providers, inject
from balog.tap.streams.stream import Records, Stream, add, declare, place_of_caller

__all__ = [
    "Providers",
    "Records",
    "Stream",
    "add",
    "declare",
    "in_run_order",
    "inject",
    "link",
    "place_of_caller",
    "with_descendants",
]
