"""What a stream is, declared by decorator or by class, and the order in which streams run."""

from balog.tap.streams.stream import Stream, Substream

__all__ = ["Stream", "Substream"]
