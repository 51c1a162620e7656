"""Streams, declared by decorator or by class, and the order in which they run."""

from balog.tap.streams.discovery import DiscoveryContext, StreamFinder
from balog.tap.streams.family import in_run_order, link, with_descendants
from balog.tap.streams.injection import Providers, inject
from balog.tap.streams.stream import Records, Stream, StreamFamily, add, declare

__all__ = [
    "DiscoveryContext",
    "Providers",
    "Records",
    "Stream",
    "StreamFamily",
    "StreamFinder",
    "add",
    "declare",
    "in_run_order",
    "inject",
    "link",
    "with_descendants",
]
