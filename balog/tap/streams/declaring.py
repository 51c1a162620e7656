"""Streams declared by decorating a function or a class, under one name or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from balog.tap.errors import TapError
from balog.tap.streams.calling import did_you_mean
from balog.tap.streams.stream import Records, Stream

__all__ = ["add", "declare", "link"]


def declare(
    family: dict[str, Stream], names: Sequence[str], settings: Mapping[str, Any], place: str
) -> Callable[[Any], Any]:
    """Give a decorator that makes a stream a name of a function or a class and adds them to ``family``.

    A function under one name becomes its ``Stream``, which can still be called; else what was decorated stays what it
    is. A class may be a ``Stream`` or any other with a method ``records``: one object is made for each name, and
    ``self.name`` tells which.

    Raises:
        TapError: a name that is taken, or settings that cannot be.
    """

    if not all(isinstance(name, str) for name in names):
        raise TapError(f"a stream ({place}): want names, and parentheses after the decorator also without any")

    def decorate(subject: Any) -> Any:
        if isinstance(subject, type):
            kind = subject if issubclass(subject, Stream) else _with_settings(subject, place)
            for name in names or (getattr(subject, "name", ""),):
                add(family, kind(name, place=place, **settings))
            return subject
        if not callable(subject):
            raise TapError(f"stream {', '.join(names)!r} ({place}): want a function or a class")
        made = [_Function(name, subject, place, settings) for name in names or (subject.__name__,)]
        for stream in made:
            add(family, stream)
        return made[0] if len(made) == 1 else subject

    return decorate


def add(family: dict[str, Stream], stream: Stream) -> None:
    """Add a stream.

    Raises:
        TapError: there is one of its name.
    """
    before = family.get(stream.name)
    if before is not None:
        raise TapError(f"{stream.title}: there is a stream of this name already ({before.place})")
    stream.family = family
    family[stream.name] = stream


def link(family: Mapping[str, Stream]) -> None:
    """Let streams know their children and those that they give, also where a parent was named before it was declared.

    Raises:
        TapError: a parent that there is not, or one that is its own; a stream without a function.
    """
    for stream in family.values():
        stream.children, stream.given = [], []
    for stream in family.values():
        stream.parent = _named(family, stream, stream.parent, "parent")
        stream.given_by = _named(family, stream, stream.given_by, "given_by")
        if stream.given_by is None and _has_no_function(stream):
            raise TapError(f"{stream.title}: has no function that gives records; say given_by= when another's does")
        if stream.parent is not None:
            stream.parent.children.append(stream)
        if stream.given_by is not None:
            stream.given_by.given.append(stream)
    for stream in family.values():
        above, seen = stream, {stream.name}
        while (above := above.parent or above.given_by) is not None:  # type: ignore[assignment]
            if above.name in seen:
                raise TapError(f"{stream.title}: is below itself, by {above.name!r}")
            seen.add(above.name)


def _named(family: Mapping[str, Stream], stream: Stream, said: Stream | str | None, setting: str) -> Stream | None:
    if said is None:
        return None
    name = said if isinstance(said, str) else said.name
    found = family.get(name)
    if found is None or (isinstance(said, Stream) and found is not said):
        raise TapError(f"{stream.title}: {setting}={name!r}: there is no such stream{did_you_mean(name, family)}")
    return found


def _has_no_function(stream: Stream) -> bool:
    return "records" not in vars(stream) and type(stream).records is Stream.records


def _with_settings(subject: type, place: str) -> type[Stream]:
    """Make a class of streams of one that has a method ``records``."""
    if not callable(getattr(subject, "records", None)):
        raise TapError(f"class {subject.__name__} ({place}): has no method 'records'")

    own = vars(subject).get("__init__")

    def make(self: Stream, name: str = "", **settings: Any) -> None:
        Stream.__init__(self, name, **settings)
        if own is not None:
            own(self)

    return type(subject.__name__, (subject, Stream), {"__init__": make, "__module__": subject.__module__})


class _Function(Stream):
    def __init__(self, name: str, function: Callable[..., Records], place: str, settings: Mapping[str, Any]) -> None:
        self.records = function  # type: ignore[method-assign]
        super().__init__(name, place=place, **settings)

    @property
    def __wrapped__(self) -> Callable[..., Records]:
        return self.records
