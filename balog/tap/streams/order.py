"""In which order streams run: as they were declared, those that were interrupted first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from balog.tap.streams.stream import Stream

__all__ = ["below", "in_order", "root_of"]


def in_order(streams: Iterable[Stream], selected: Collection[str], resume_at: str | None) -> list[Stream]:
    """Give the streams at the top that have to run, for themselves or for one below them.

    The run goes on where the one before was interrupted: that stream first, then those after it, then those before.

    Args:
        streams: all, their parents known.
        selected: the names of those that are wanted.
        resume_at: the state's ``currently_syncing``; of a stream that has a parent, the topmost of those is meant.
    """
    every = list(streams)
    tops = [stream for stream in every if root_of(stream) is stream and any(s.name in selected for s in below(stream))]
    at = next((root_of(stream) for stream in every if stream.name == resume_at), None)
    if at in tops:
        first = tops.index(at)
        return tops[first:] + tops[:first]
    return tops


def root_of(stream: Stream) -> Stream:
    """Give the stream at whose run this one's records come."""
    while True:
        above = stream.parent or stream.given_by
        if not isinstance(above, Stream):
            return stream
        stream = above


def below(stream: Stream) -> Iterator[Stream]:
    """Give a stream and all that come with it, each after the one above it, so that schemas that refer are in order."""
    yield stream
    for other in (*stream.given, *stream.children):
        yield from below(other)
