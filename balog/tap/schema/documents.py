"""Documents that schemas are in, by where they are: files, files inside of a zip, web addresses when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from balog.errors import ConfigError
from balog.tap.errors import SchemaError
from balog.tap.relative_files import Reader, read_file
from balog.tap.schema.keywords import Steps, children
from balog.tap.schema.validity import MAX_BYTES, check_depth, decode

__all__ = ["Documents", "JsonDocument", "Target", "fetch", "is_remote", "location_of"]

_FETCH_SECONDS = 30
_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")


def fetch(url: str, most: int = MAX_BYTES) -> bytes:
    """Read a web address, ``most`` bytes and one at most; no wait for a piece of it is longer than 30 seconds.

    Raises:
        SchemaError: there is no answer, or one that is not 2xx.
    """
    from balog.http.download import DownloadError, download

    try:
        return download(url, most + 1, _FETCH_SECONDS)
    except (ConfigError, DownloadError) as error:
        raise SchemaError(f"cannot be fetched: {error}", url) from None


@dataclass(frozen=True)
class Target:
    """What a reference leads to.

    Attributes:
        node: the schema.
        document: the one it is in.
        base: what relative references in it are relative to, a URL without a fragment.
        steps: where in the document it is.
    """

    node: Any
    document: JsonDocument
    base: str
    steps: Steps = ()

    def inside(self, node: Any, steps: Steps) -> Target:
        """Return a schema that is inside of this one."""
        return Target(node, self.document, _id(node, self.base), (*self.steps, *steps))


@dataclass
class JsonDocument:
    """One document.

    Attributes:
        name: its file's path as it was given, or its web address; "" when it is in none.
        location: the same as a URL that others are seen from.
        is_old: of draft 7 or before, in which what stands beside a ``$ref`` does not count.
    """

    name: str
    root: Any
    location: str = field(init=False)
    is_old: bool = field(init=False)

    def __post_init__(self) -> None:
        self.location = location_of(self.name)
        draft = self.root.get("$schema") if isinstance(self.root, dict) else None
        self.is_old = isinstance(draft, str) and any(name in draft for name in _OLD)


class Documents:
    """Documents and what has a name in them, read when a reference first leads there.

    Args:
        read: gives a file's bytes.
        allow_remote: whether http and https are fetched.
    """

    def __init__(self, read: Reader = read_file, allow_remote: bool = False) -> None:
        self._read = read
        self._allow_remote = allow_remote
        self._named: dict[str, Target] = {}
        self._missing: dict[str, str] = {}
        self._first = ""

    def add(self, root: Any, path: str = "") -> Target:
        """Take in a document; gives its root.

        Raises:
            SchemaError: it is nested deeper than 100, or inside of itself.
        """
        check_depth(root, path)
        document = JsonDocument(path, root)
        self._first = self._first or document.location
        found = Target(root, document, _id(root, document.location))
        self._named.setdefault(document.location, found)
        for target, name in _names(document):
            self._named.setdefault(name, target)
        return found

    def open(self, path: str) -> Target:
        """Read a document by its file's path.

        Raises:
            SchemaError: it is not there, or is not JSON.
        """
        location = location_of(path)
        found = self._at(location, "", path)
        if found is None:
            raise SchemaError(self._missing[location], path)
        return found

    def find(self, reference: str, at: Target) -> Target | str:
        """Return what a reference leads to, or say why it leads nowhere.

        A relative one is seen from the ``$id`` above it, and where nothing is there from the document's own file:
        an ``$id`` is often the web address under which nobody keeps the schema. Last, it is seen from the first
        document, as singer-python's are: there ``shared/a.json`` refers to ``shared/b.json`` beside it by that name.
        """
        why = ""
        for base in dict.fromkeys((at.base, at.document.location, self._first)):
            try:
                absolute = base + reference if reference.startswith("#") else urljoin(base, reference)
                urlsplit(absolute)
                url, fragment = urldefrag(absolute)
            except ValueError as error:  # //[
                return f"it is no address: {error}"
            if absolute in self._named:  # a whole $id, or an anchor
                return self._named[absolute]
            resource = self._at(url, at.document.location)
            if resource is None:
                why = why or f"{unquote(url) if not is_remote(url) else url} {self._missing[url]}"
                continue
            if fragment in ("", "/"):  # ``#/`` is what Singer's own taps write for all of a file
                return resource
            if not fragment.startswith("/"):
                why = why or f"there is no anchor {fragment!r}"
                continue
            found = _pointed(resource, unquote(fragment))
            if isinstance(found, str) and resource.node is not resource.document.root:
                whole = _pointed(self._named[resource.document.location], unquote(fragment))
                found = found if isinstance(whole, str) else whole
            if isinstance(found, Target):
                return found
            why = why or found
        return why

    def _at(self, url: str, by: str, name: str = "") -> Target | None:
        if url not in self._named and url not in self._missing:
            found = self._load(url, by, name)
            if isinstance(found, str):
                self._missing[url] = found
            else:
                self._named[url] = found
        return self._named.get(url)

    def _load(self, url: str, by: str, name: str) -> Target | str:
        if is_remote(url):
            if not self._allow_remote:
                return "is not fetched; keep a copy beside the schema, or say allow_remote=True"
            return self.add(decode(fetch(url), url), url)
        parts = urlsplit(url)
        if parts.scheme not in ("", "file") or is_remote(by):
            return "is no file's name, and no schema has it for its $id"
        path = unquote(parts.path)
        try:
            return self.add(decode(self._read(path), name or path), name or path)
        except OSError as error:
            return f"cannot be read: {error.strerror or error}"
        except ValueError as error:  # a path with a null character
            return f"cannot be read: {error}"


def location_of(name: str) -> str:
    """Return the URL of a document that others are seen from: a path made absolute and quoted, or a web address."""
    return name if is_remote(name) or not name else quote(os.path.abspath(name))


def is_remote(location: str) -> bool:
    """Tell a web address from a path."""
    return location.startswith(("http://", "https://"))


def _id(node: Any, base: str) -> str:
    """Return the base inside of a schema: its own ``$id`` (``id`` in draft 4), seen from the base around it."""
    for name in ("$id", "id"):
        identity = node.get(name) if isinstance(node, dict) else None
        if isinstance(identity, str) and not identity.startswith("#") and "$ref" not in node:
            try:
                return urldefrag(urljoin(base, identity))[0] or base
            except ValueError:  # //[
                return base
    return base


def _names(document: JsonDocument) -> Iterator[tuple[Target, str]]:
    """Yield what has a name of its own: by ``$id`` and ``id``, ``$anchor`` and ``$dynamicAnchor``."""
    nodes = [(Target(document.root, document, _id(document.root, document.location)), document.location)]
    seen: set[int] = set()  # one object may be in many places of a schema that was made in Python
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
    """Follow a JSON pointer (RFC 6901); gives why it leads nowhere when it does."""
    found = resource
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        node = found.node
        if isinstance(node, dict) and key in node:
            found = found.inside(node[key], (key,))
        elif isinstance(node, list) and key.isdecimal() and len(key) < 10 and int(key) < len(node):
            found = found.inside(node[int(key)], (int(key),))
        else:
            has = f"{len(node)} items" if isinstance(node, list) else ", ".join(node) if isinstance(node, dict) else ""
            way = "".join(f"/{step}" for step in found.steps)
            return f"#{way} has no {key!r}; it has {has[:200] or 'nothing'}"
    return found
