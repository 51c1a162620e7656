"""How streams depend on each other, and the order in which they run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from balog.common.text import suggest
from balog.tap.errors import TapError
from balog.tap.streams.stream import Stream


def link(family: Mapping[str, Stream]) -> None:
    """Resolve ``parent`` and ``source_stream`` of all streams, and set their ``children`` and ``emitted_streams``.

    Args:
        family: the streams by name. It may be linked again after streams were added.

    Raises:
        TapError: a parent or source stream that does not exist, a cycle, a stream without a function, or a setting
            without effect.
    """
    for stream in family.values():
        stream.children, stream.emitted_streams = [], []
    for stream in family.values():
        stream.parent = _resolved(family, stream, stream.parent, "parent")
        stream.source_stream = _resolved(family, stream, stream.source_stream, "source_stream")
        if stream.source_stream is None and not stream.has_function:
            raise TapError(
                f"{stream.title}: has no function that yields records; set source_stream= if another stream's does"
            )
        if stream.parent is not None:
            stream.parent.children.append(stream)
        if stream.source_stream is not None:
            stream.source_stream.emitted_streams.append(stream)
    for stream in family.values():
        stream.check_effects()
        seen, above = {stream.name}, _above(stream)
        while above is not None:
            if above.name in seen:
                raise TapError(f"{stream.title}: depends on itself through {above.name!r}")
            seen.add(above.name)
            above = _above(above)


def in_run_order(streams: Iterable[Stream], selected: Collection[str], resume_at: str | None) -> list[Stream]:
    """Return the top-level streams to run: those that are selected, or that a selected stream depends on.

    A run resumes where the previous one was interrupted: with that stream, then those after it, then those before.

    Args:
        streams: all streams, linked.
        selected: names of the selected streams.
        resume_at: the state's ``currently_syncing``; a substream stands for its top-level stream.
    """
    families = [{each.name: each for each in with_descendants(stream)} for stream in streams if _above(stream) is None]
    needed = [family for family in families if not family.keys().isdisjoint(selected)]
    first = next((index for index, family in enumerate(needed) if resume_at in family), 0)
    return [next(iter(family.values())) for family in (*needed[first:], *needed[:first])]


def with_descendants(stream: Stream) -> Iterator[Stream]:
    """Yield a stream and all that are synced with it, in the order of their SCHEMA messages: parents first."""
    yield stream
    for other in (*stream.emitted_streams, *stream.children):
        yield from with_descendants(other)


def _above(stream: Stream) -> Stream | None:
    above = stream.parent or stream.source_stream
    return above if isinstance(above, Stream) else None


def _resolved(
    family: Mapping[str, Stream], stream: Stream, named: Stream | type | str | None, setting: str
) -> Stream | None:
    if named is None:
        return None
    if isinstance(named, type):
        group = [each for each in family.values() if isinstance(each, named)]
        if len(group) != 1:
            raise TapError(
                f"{stream.title}: {setting}={named.__name__}: expected a class of one stream; it is one of {len(group)}"
            )
        return group[0]
    name = named if isinstance(named, str) else named.name
    named_stream = family.get(name)
    if named_stream is None or (isinstance(named, Stream) and named_stream is not named):
        raise TapError(f"{stream.title}: {setting}={name!r}: there is no such stream{suggest(name, family, limit=0)}")
    return named_stream
