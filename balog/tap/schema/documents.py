"""The documents of schemas: they are read from files, within limits of size and depth, and checked to be JSON Schemas.

URLs are not fetched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from balog.common.config.document import TOO_DEEP
from balog.common.config.json_text import parse_json
from balog.common.errors import ConfigError
from balog.common.text import suggest
from balog.tap.config.relative_files import Reader, read_file
from balog.tap.errors import SchemaError
from balog.tap.json_schema.keywords import ALL_TYPES, ANNOTATIONS, Steps, children, subschemas
from balog.tap.json_schema.references import follow, is_old

_FETCH_SECONDS = 30


def fetch(url: str, most: int) -> bytes:
    """Read a URL, at most ``most`` + 1 bytes, with a timeout of 30 seconds for each read.

    Raises:
        SchemaError: there is no response, or its status is not 2xx.
    """
    from balog.common.http.download import DownloadError, download

    try:
        return download(url, most + 1, _FETCH_SECONDS)
    except (ConfigError, DownloadError) as error:
        raise SchemaError(f"cannot be fetched: {error}", url) from None


@dataclass(frozen=True)
class Target:
    """The target of a reference.

    Attributes:
        node: the schema.
        document: the document of the schema.
        base: the base URL of its relative references, without a fragment.
        steps: the place in the document.
    """

    node: Any
    document: JsonDocument
    base: str
    steps: Steps = ()

    def inside(self, node: Any, steps: Steps) -> Target:
        """Return the target for a schema inside this one."""
        return Target(node, self.document, _id(node, self.base), (*self.steps, *steps))


@dataclass
class JsonDocument:
    """A document with schemas.

    Attributes:
        name: the given path of its file, or its URL; "" without either.
        location: the same as a base URL.
        is_old: whether its draft is 7 or earlier, where keywords beside a ``$ref`` have no effect.
    """

    name: str
    root: Any
    location: str = field(init=False)
    is_old: bool = field(init=False)

    def __post_init__(self) -> None:
        self.location = location_of(self.name)
        self.is_old = is_old(self.root)


class Documents:
    """Documents and their named schemas, read at the first reference.

    Args:
        read: returns the bytes of a file.
    """

    def __init__(self, read: Reader = read_file) -> None:
        self._read = read
        self._named: dict[str, Target] = {}
        self._missing: dict[str, str] = {}
        self._first = ""

    def add(self, root: Any, path: str = "") -> Target:
        """Add a document and return its root.

        Raises:
            SchemaError: the document is nested deeper than 100, or circular.
        """
        check_depth(root, path)
        document = JsonDocument(path, root)
        self._first = self._first or document.location
        root_target = Target(root, document, _id(root, document.location))
        self._named.setdefault(document.location, root_target)
        for target, name in _names(document):
            self._named.setdefault(name, target)
        return root_target

    def open(self, path: str) -> Target:
        """Read a document from a file.

        Raises:
            SchemaError: the file does not exist or is not JSON.
        """
        location = location_of(path)
        target = self._at(location, "", path)
        if target is None:
            raise SchemaError(self._missing[location], path)
        return target

    def find(self, reference: str, at: Target) -> Target | str:
        """Return the target of a reference, or the reason why it has none.

        A relative reference is resolved against the ``$id`` above it, then against the document's own file, because
        schemas are often not available at their ``$id``. Last, it is resolved against the first document, as in
        singer-python, where ``shared/a.json`` references its neighbour as ``shared/b.json``.
        """
        why = ""
        for base in dict.fromkeys((at.base, at.document.location, self._first)):
            try:
                absolute = base + reference if reference.startswith("#") else urljoin(base, reference)
                urlsplit(absolute)
                url, fragment = urldefrag(absolute)
            except ValueError as error:  # //[
                return f"it is not a URL: {error}"
            if absolute in self._named:  # a whole $id, or an anchor
                return self._named[absolute]
            resource = self._at(url, at.document.location)
            if resource is None:
                why = why or f"{unquote(url) if not is_remote(url) else url} {self._missing[url]}"
                continue
            if fragment in ("", "/"):  # Singer's own taps write ``#/`` for a whole file
                return resource
            if not fragment.startswith("/"):
                why = why or f"there is no anchor {fragment!r}"
                continue
            target = _pointed(resource, unquote(fragment))
            if isinstance(target, str) and resource.node is not resource.document.root:
                whole = _pointed(self._named[resource.document.location], unquote(fragment))
                target = target if isinstance(whole, str) else whole
            if isinstance(target, Target):
                return target
            why = why or target
        return why

    def _at(self, url: str, by: str, name: str = "") -> Target | None:
        if url not in self._named and url not in self._missing:
            target = self._load(url, by, name)
            if isinstance(target, str):
                self._missing[url] = target
            else:
                self._named[url] = target
        return self._named.get(url)

    def _load(self, url: str, by: str, name: str) -> Target | str:
        if is_remote(url):
            return "is not fetched; store a copy next to the schema"
        parts = urlsplit(url)
        if parts.scheme not in ("", "file") or is_remote(by):
            return "is not a file name, and no schema has this $id"
        path = unquote(parts.path)
        try:
            return self.add(decode(self._read(path), name or path), name or path)
        except OSError as error:
            return f"cannot be read: {error.strerror or error}"
        except ValueError as error:  # a path with a null character
            return f"cannot be read: {error}"


def location_of(name: str) -> str:
    """Return the base URL of a document: its absolute, quoted path, or its URL."""
    return name if is_remote(name) or not name else quote(os.path.abspath(name))


def is_remote(location: str) -> bool:
    """Return whether a place is a URL rather than a path."""
    return location.startswith(("http://", "https://"))


def _id(node: Any, base: str) -> str:
    """Return the base URL inside a schema: its ``$id`` (``id`` in draft 4), resolved against the outer base."""
    for name in ("$id", "id"):
        identity = node.get(name) if isinstance(node, dict) else None
        if isinstance(identity, str) and not identity.startswith("#") and "$ref" not in node:
            try:
                return urldefrag(urljoin(base, identity))[0] or base
            except ValueError:  # //[
                return base
    return base


def _names(document: JsonDocument) -> Iterator[tuple[Target, str]]:
    """Yield the schemas with ``$id``, ``id``, ``$anchor`` or ``$dynamicAnchor``, with their URLs."""
    nodes = [(Target(document.root, document, _id(document.root, document.location)), document.location)]
    seen: set[int] = set()  # schemas made in Python can share objects
    while nodes:
        target, above = nodes.pop()
        node = target.node
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        if target.base != above:
            yield target, target.base
        for name in ("$id", "id"):
            identity = node.get(name)
            if isinstance(identity, str) and identity.startswith("#") and not identity.startswith("#/"):
                yield target, target.base + identity
        for name in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(name), str):
                yield target, f"{target.base}#{node[name]}"
        nodes += [(target.inside(child, steps), target.base) for steps, child in children(node)]


def _pointed(resource: Target, pointer: str) -> Target | str:
    """Follow a JSON pointer (RFC 6901). Return the reason if it has no target."""
    target = resource
    try:
        for step, node in follow(resource.node, pointer):
            target = target.inside(node, (step,))
    except LookupError as error:
        return str(error)
    return target


_DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#",
)

MAX_BYTES = 4 << 20
"""Maximum size of a file, in bytes."""
MAX_DEPTH = 100
"""Maximum nesting of objects and lists in a document."""
MAX_NODES = 10_000
"""Maximum number of schemas in a schema with resolved references."""


def fault(reason: str, source: str = "", steps: Steps = ()) -> SchemaError:
    """Return an error with the document and the place."""
    from balog.registry.reasons import json_path  # imported only for errors: the registry is slow to import

    return SchemaError(reason, source, json_path(steps))


def decode(data: bytes, source: str) -> Any:
    """Decode a document that is, or contains, JSON Schemas.

    Raises:
        SchemaError: the document is not JSON, has a key twice, is larger than 4 MiB, or nested deeper than 100.
    """
    if len(data) > MAX_BYTES:
        raise SchemaError(f"larger than {MAX_BYTES >> 20} MiB; is this the right file?", source)
    try:
        document = parse_json(data, source)
    except ConfigError as error:
        reason = f"nested deeper than {MAX_DEPTH}" if error.reason == TOO_DEEP else error.reason
        raise SchemaError(reason, error.source) from None
    check_depth(document.data, source)
    for reason, path in document.problems:
        raise SchemaError(reason, source, path)
    return document.data


def check_depth(document: Any, source: str = "") -> None:
    """Raise if a document is nested too deep for recursive functions.

    Raises:
        SchemaError: the document is nested deeper than 100.
    """
    level, depth = [document] if isinstance(document, (dict, list)) else [], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise SchemaError(f"nested deeper than {MAX_DEPTH}", source)
        below = (inner for node in level for inner in (node.values() if isinstance(node, dict) else node))
        # Schemas made in Python can share objects.
        level = list({id(inner): inner for inner in below if isinstance(inner, (dict, list))}.values())


def check(schema: Any, source: str = "") -> None:
    """Raise at the first error of a JSON Schema, unless it is valid in draft 2020-12, 7 or 4.

    Raises:
        SchemaError: the schema is invalid in each of these drafts, or contains more than 10,000 schemas.
    """
    check_depth(schema, source)
    for count, (steps, node) in enumerate(subschemas(schema), 1):
        if count > MAX_NODES:
            raise SchemaError(f"more than {MAX_NODES} schemas in one", source)
        for name, value in node.items() if isinstance(node, dict) else ():
            if isinstance(value, tuple) and name not in ANNOTATIONS:
                raise fault("expected a list; found a tuple", source, (*steps, name))
    try:
        errors: list[Any] = [next(iter(validator.iter_errors(schema)), None) for validator in _validators()]
    except ValueError as error:  # a name that is not a text
        raise SchemaError(str(error), source) from None
    if all(errors):
        raise fault(_reason(errors[0]), source, tuple(errors[0].instance_path))


@cache
def _validators() -> list[Any]:
    """Return the validators of schemas by draft, the latest first."""
    import jsonschema_rs  # imported for the first schema

    return [jsonschema_rs.validator_for({"$schema": draft, "$ref": draft}, validate_formats=False) for draft in _DRAFTS]


def _reason(error: Any) -> str:
    from balog.registry.reasons import describe_error  # imported only for errors: the registry is slow to import

    if error.kind.name == "anyOf" and error.instance_path[-1:] == ["type"]:
        value = error.instance
        hint = suggest(value, ALL_TYPES) if isinstance(value, str) else ""
        return f"expected a type, or a list of different types; found {value!r:.60}{hint}"
    return describe_error(error)
