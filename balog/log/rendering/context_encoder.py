"""Join and encode the parts of a context: of the process, ``structlog.contextvars``, ``bound`` and a logger."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from balog.common.redaction.structure import VALUE_NAMES
from balog.log.context import bound_values, trace_context
from balog.log.rendering.callsites import KEY

_MAX_VARIABLES = 64  # beyond, most of them are bound in other contexts only
_MAX_KNOWN = 256
_MAX_KNOWN_VALUE = 256
_LARGE = 1 << 63
_UNCHANGING = frozenset({str, int, float, bool, type(None)})
_UNCHANGING_OR_UNBOUND = _UNCHANGING | {type(...)}
_KNOWN_TYPES = frozenset({str, int, bool, type(None)})

_Reader = tuple[str, Callable[..., Any], dict[Any, bytes]]
"""A variable of structlog: its name, what reads it, and its encoded texts."""

Joined = tuple[dict[str, Any], bytes, object]
"""A context as data, encoded as the members of a JSON object, and what must stay in use while this is cached."""


class ContextEncoder:
    """Joins an inner part of a context with an outer one, which it hides. Caches the results and each encoded key.

    Args:
        encode: encodes values as the members of a JSON object, redacted.
        keeps_numbers_of: returns whether no integer under a name is a secret.

    Attributes:
        variables: the result of ``structlog_variables``.
    """

    def __init__(
        self, encode: Callable[[Mapping[str, Any]], bytes], keeps_numbers_of: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._encode = encode
        self._keeps_numbers_of = keeps_numbers_of
        self.variables: dict[str, ContextVar[Any]] | None = None
        self._current: tuple[tuple[str, ...], tuple[Callable[..., Any], ...]] = (), ()
        self._known: dict[tuple[int, ...], Joined] = {}
        self._members: dict[tuple[str, type, Any], bytes] = {}
        self._number_names: dict[str, bytes] = {}
        self._readers: list[_Reader] = []
        self._checked: dict[int, dict[str, Any]] = {}
        self.structlog_variables()

    def join(self, outer: dict[str, Any], encoded: bytes, inner: Mapping[str, Any], identity: object) -> Joined:
        """Join two parts of a context.

        Args:
            outer: never changed in place.
            encoded: the same as the members of a JSON object.
            inner: equal whenever ``identity`` is the same object.
        """
        key = id(outer), id(identity)
        joined = self._known.get(key)
        return joined if joined is not None else self._keep(key, self._make(outer, encoded, inner, (outer, identity)))

    def join_all(
        self, process: tuple[dict[str, Any], bytes], bound: Mapping[str, Any], encoded_bound: bytes, site: bytes
    ) -> bytes:
        """Encode all parts of a context. If two have the same name, the one nearer to the call wins.

        Args:
            process: the context of the process and the thread, encoded as the members of a JSON object, too.
            bound: the logger's own part.
            encoded_bound: the same, encoded.
            site: the encoded callsite; empty without one.
        """
        known, encoded = process
        if self.structlog_variables():
            known, encoded, _ = self.join_structlog(known, encoded)
        if passing := bound_values():
            known, encoded, _ = self.join(known, encoded, passing, passing)
        trace = trace_context()
        if trace and known.keys().isdisjoint(trace):
            known = {**known, **trace}
            encoded = b"%b,%b" % (encoded, self._encode(trace))
        if bound and known.keys().isdisjoint(bound):
            encoded = b"%b,%b" % (encoded, encoded_bound)
        elif bound:
            encoded = self.join(known, encoded, bound, encoded_bound)[1]
        if site and KEY not in known and KEY not in bound:
            encoded = b"%b,%b" % (encoded, site)
        return encoded

    def structlog_variables(self) -> dict[str, ContextVar[Any]] | None:
        """Return the variables that any context of this process has bound. They stay. None until structlog is imported.

        structlog is not imported for this: a program that only uses the standard library's loggers does not need it.
        """
        if self.variables is None and "structlog.contextvars" in sys.modules:
            self.variables = getattr(sys.modules["structlog.contextvars"], "_CONTEXT_VARS", None)
        return self.variables

    def encode_structlog(self, outer: dict[str, Any], encoded: bytes) -> bytes | None:
        """Return the encoded members of ``join_structlog`` for most contexts, in less time; None for the others."""
        variables = self.variables or {}
        if len(self._readers) != len(variables):
            names, getters = _without_prefix(variables.copy())
            known = {name: texts for name, _, texts in self._readers}
            self._checked = {}
            self._readers = [(name, get, known.get(name, {})) for name, get in zip(names, getters, strict=True)]
        if self._checked.get(id(outer)) is not outer and not self._is_apart(outer):
            return None
        parts = encoded
        for name, get, texts in self._readers:
            value = get(...)
            if value is ...:
                continue
            kind = type(value)
            if kind is str:
                member = texts.get(value)
            elif kind is int and -_LARGE < value < _LARGE:
                number = self._number_names.get(name)
                member = number % value if number is not None else None
            else:
                member = None
            if member is None:
                member = self._member(name, kind, value)
                if not member:
                    return None
                if kind is str and len(value) <= _MAX_KNOWN_VALUE:
                    _add(texts, value, member)
            parts = b"%b,%b" % (parts, member)
        return parts

    def join_structlog(self, outer: dict[str, Any], encoded: bytes) -> Joined:
        """Join the current keys of ``structlog.contextvars`` with an outer part.

        Results are found again by the identity of the values, if all of them are of types that never change.
        """
        names, getters = self._current
        bound = self.variables or {}
        if len(names) != len(bound):
            names, getters = self._current = _without_prefix(bound.copy())
        if len(names) > _MAX_VARIABLES:
            values = sys.modules["structlog.contextvars"].get_contextvars()
            return self._make(outer, encoded, values, None) if values else (outer, encoded, None)
        current = [get(...) for get in getters]
        key = (id(outer), *map(id, current))
        cached = self._known.get(key)
        if cached is not None:
            return cached
        values = {name: value for name, value in zip(names, current) if value is not ...}
        if not values:
            return self._keep(key, (outer, encoded, (outer, current)))
        joined = self._make(outer, encoded, values, (outer, current))
        kinds = [type(value) for value in current]
        is_unchanging = {type}.issuperset(map(type, kinds)) and _UNCHANGING_OR_UNBOUND.issuperset(kinds)
        return self._keep(key, joined) if is_unchanging else joined

    def _is_apart(self, outer: dict[str, Any]) -> bool:
        """Return whether the variables are few, of other names than the rest, and no name may redact another."""
        names = [name for name, _, _ in self._readers]
        if len(names) > _MAX_VARIABLES or not VALUE_NAMES.isdisjoint(names) or not {KEY, *outer}.isdisjoint(names):
            return False
        if len(self._checked) >= _MAX_KNOWN:
            self._checked.clear()
        self._checked[id(outer)] = outer
        return True

    def _keep(self, key: tuple[int, ...], joined: Joined) -> Joined:
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[key] = joined
        return joined

    def _make(self, outer: dict[str, Any], encoded: bytes, inner: Mapping[str, Any], kept: object) -> Joined:
        joined = {**outer, **inner}
        if len(joined) == len(outer) + len(inner) and VALUE_NAMES.isdisjoint(inner):  # a name may redact its neighbor
            members = [encoded]
            number_names, known = self._number_names, self._members
            for name, value in inner.items():
                kind = type(value)
                if type(kind) is not type:  # its hash may raise
                    break
                if kind is int and name in number_names and -_LARGE < value < _LARGE:
                    member = number_names[name] % value
                else:
                    member = known.get((name, kind, value), b"") if kind in _KNOWN_TYPES else b""
                    member = member or self._member(name, kind, value)
                    if not member:
                        break
                members.append(member)
            else:
                return joined, b",".join(members), kept
        return joined, self._encode(joined), kept

    def _member(self, name: str, kind: type, value: Any) -> bytes:
        """Encode one key. Return nothing if that takes the whole context, whose ``problem`` reports replaced values."""
        if type(kind) is not type or kind not in _UNCHANGING:
            return b""
        member = self._encode({name: value})
        if b'"problem' in member:
            return b""
        if kind in _KNOWN_TYPES and len(member) <= _MAX_KNOWN_VALUE:
            if kind is int and type(name) is str and self._keeps_numbers_of(name):
                number = member[: member.rindex(b":") + 1].replace(b"%", b"%%") + b"%d"
                _add(self._number_names, name, number)
            else:
                _add(self._members, (name, kind, value), member)
        return member


def _add(known: dict[Any, bytes], key: object, encoded: bytes) -> None:
    if len(known) >= _MAX_KNOWN:
        known.clear()
    known[key] = encoded


def _without_prefix(known: dict[str, ContextVar[Any]]) -> tuple[tuple[str, ...], tuple[Callable[..., Any], ...]]:
    prefix = getattr(sys.modules["structlog.contextvars"], "STRUCTLOG_KEY_PREFIX", "structlog_")
    return tuple(name[len(prefix) :] for name in known), tuple(variable.get for variable in known.values())
