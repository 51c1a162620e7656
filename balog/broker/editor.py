"""Editors, which change messages of a stream, and chains of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from balog.common.errors import BalogError

Line = tuple[str, bytes]
"""The type of a message in upper case (``RECORD``), and its line with the newline."""


class PipeError(BalogError):
    """The config requires the stream to end: the broker prints this one line and exits with code 1."""


class Editor(Protocol):
    """Changes some messages of a Singer stream.

    Attributes:
        types: the message types that it must see.
        is_strict: no line that other readers may understand as one of these messages passes unseen; an ambiguous line
            is passed to ``edit`` as a RECORD, which rejects it.
        streams: the streams whose RECORD messages it must see; None for all. It sees all messages of other types.
    """

    types: frozenset[str]
    is_strict: bool
    streams: frozenset[str] | None

    def edit(self, kind: str, line: bytes) -> Iterable[Line] | None:
        """Return the messages that replace a message: none, one or more; None passes it byte for byte.

        The result may be lazy, because the rows of a BATCH may not fit in memory. It is read once, to its end,
        before the next message.

        A message that can't be read passes or goes to quarantine, according to the config, with one line for the user.

        Raises:
            PipeError: the stream must not go on.
        """

    def due(self) -> Iterable[Line]:
        """Return messages that are due without input, by default none; called often."""
        return ()

    def end(self) -> Iterable[Line]:
        """Return the messages after the last one, by default none."""
        return ()


class Chain:
    """Editors in a row: each edits the output of the previous one."""

    def __init__(self, editors: Sequence[Editor]) -> None:
        self._editors = list(editors)
        self.is_strict = any(editor.is_strict for editor in editors)
        self.types = frozenset().union(*(editor.types for editor in editors))
        named = [editor.streams for editor in editors if "RECORD" in editor.types]
        self.streams = None if None in named else frozenset().union(*(names or () for names in named))
        # For each position, by type: the next editor that sees it, as its position and its method.
        self._next: list[dict[str, tuple[int, Callable[[str, bytes], Iterable[Line] | None]]]] = [{}]
        for number, editor in reversed(list(enumerate(editors))):
            self._next.insert(0, {**self._next[0], **dict.fromkeys(editor.types, (number, editor.edit))})

    def edit(self, kind: str, line: bytes) -> Iterable[Line] | None:
        """See ``Editor``."""
        return self._from(0, kind, line)

    def due(self) -> Iterable[Line]:
        """See ``Editor``."""
        return self._collect("due")

    def end(self) -> Iterable[Line]:
        """See ``Editor``."""
        return self._collect("end")

    def _from(self, first: int, kind: str, line: bytes) -> Iterable[Line] | None:
        while (step := self._next[first].get(kind)) is not None:
            number, edit = step
            edited = edit(kind, line)
            if edited is not None:
                return self._through(number + 1, edited)
            first = number + 1
        return None

    def _through(self, first: int, lines: Iterable[Line]) -> Iterable[Line]:
        """Pass an editor's output lazily to the following editors."""
        behind = self._next[first]
        if not behind or (isinstance(lines, (tuple, list)) and not any(kind in behind for kind, _ in lines)):
            return lines
        return self._pass_on(first, lines)

    def _pass_on(self, first: int, lines: Iterable[Line]) -> Iterator[Line]:
        for line in lines:
            edited = self._from(first, *line)
            if edited is None:
                yield line
            else:
                yield from edited

    def _collect(self, method: str) -> Iterator[Line]:
        for number, editor in enumerate(self._editors):
            yield from self._through(number + 1, getattr(editor, method)())
