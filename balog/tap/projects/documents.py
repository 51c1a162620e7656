"""OpenAPI documents: read from a file or a URL, JSON or YAML."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec

from balog.common.config.json_text import parse_json
from balog.common.errors import ConfigError
from balog.common.http.urls import check_url
from balog.tap.errors import SchemaError
from balog.tap.schema.documents import Documents, Target, check_depth, fetch, is_remote

_MAX_BYTES = 32 << 20
_MAX_HOPS = 20


class ApiDocument:
    """An OpenAPI document of version 3 with its references.

    References lead to the document itself, and to files in its folder and below. Others are errors.

    Args:
        location: a file or a URL.

    Attributes:
        root: the document.

    Raises:
        SchemaError: it cannot be read, is too large, or is not an OpenAPI document.
        MissingExtraError: it is YAML, and the extra ``config`` is not installed.
    """

    def __init__(self, location: str) -> None:
        self.place = location
        self._folder = "" if is_remote(location) else os.path.dirname(os.path.realpath(location))
        root = _decoded(fetch(location, _MAX_BYTES) if is_remote(location) else self._bytes(location), location)
        if not isinstance(root, dict) or not isinstance(root.get("paths"), dict):
            raise SchemaError("is not an OpenAPI document: it has no paths", location)
        if not str(root.get("openapi")).startswith(("3.0", "3.1", "3.2")):
            raise SchemaError("is not an OpenAPI document of version 3; convert one of Swagger 2.0 first", location)
        self.root = root
        self.documents = Documents(self._file)
        self.whole = self.documents.add(self.root, location)

    def target(self, node: Any) -> Target:
        """Return a part of the document as a target of references; a reference is followed.

        Raises:
            SchemaError: a reference leads nowhere, or in circles.
        """
        part = self.whole.inside(node, ())
        for _ in range(_MAX_HOPS):
            reference = part.node.get("$ref") if isinstance(part.node, dict) else None
            if not isinstance(reference, str):
                return part
            target = self.documents.find(reference, part)
            if isinstance(target, str):
                raise SchemaError(f"{reference[:200]!r}: {target}", self.place)
            part = target
        raise SchemaError("a reference leads back to itself", self.place)

    def mapping(self, node: Any) -> dict[str, Any]:
        """Return a part that is an object, after its references; {} for anything else."""
        part = self.target(node).node
        return part if isinstance(part, dict) else {}

    def base_url(self) -> str:
        """Return the URL of the first server, with the defaults of its variables; "" without a usable one."""
        servers = self.root.get("servers")
        server = self.mapping(servers[0]) if isinstance(servers, list) and servers else {}
        url = str(server.get("url", ""))
        variables = server.get("variables")
        for name, variable in variables.items() if isinstance(variables, dict) else ():
            url = url.replace(f"{{{name}}}", str(self.mapping(variable).get("default", "")))
        try:
            url = urljoin(self.place, url) if is_remote(self.place) and not urlsplit(url).scheme else url
        except ValueError:
            return ""
        return url.rstrip("/") if is_usable(url) else ""

    def _bytes(self, path: str) -> bytes:
        try:
            with open(path, "rb") as file:
                return file.read(_MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            raise SchemaError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path) from None

    def _file(self, path: str) -> bytes:
        """Read a file that a reference names, as JSON."""
        real = os.path.realpath(path)
        if not self._folder or os.path.commonpath((self._folder, real)) != self._folder:
            raise ValueError("it is not in the folder of the document")
        return msgspec.json.encode(_decoded(self._bytes(real), path))


def is_usable(url: Any) -> bool:
    """Return whether a text of a document is a URL that a client accepts."""
    try:
        check_url(url if isinstance(url, str) else "")
    except ConfigError:
        return False
    return True


def _decoded(data: bytes, location: str) -> Any:
    """Decode JSON or YAML."""
    if len(data) > _MAX_BYTES:
        raise SchemaError(f"larger than {_MAX_BYTES >> 20} MiB; is this the right file?", location)
    try:
        document = parse_json(data, location).data
    except ConfigError as fault:
        if data.lstrip()[:1] in (b"{", b"["):
            raise SchemaError(fault.reason, fault.source) from None
        from balog.common.config.yaml_text import parse_yaml

        try:
            document = parse_yaml(data, location, None, None).data
        except ConfigError as error:
            raise SchemaError(f"not JSON, and as YAML: {error.reason}", location, error.path) from None
    check_depth(document, location)
    return document
