"""A response of a server."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from balog.tap.errors import SourceError
from balog.tap.http.outcomes import endpoint_of

_T = TypeVar("_T")


class Response:
    """A response.

    Attributes:
        status: the status.
        headers: the headers by lower-case names.
        body: the complete, decompressed body.
        url: the URL after redirects.
    """

    def __init__(self, status: int, headers: dict[str, str], body: bytes, url: str) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.url = url

    def json(self) -> Any:
        """Decode the body.

        Raises:
            SourceError: it is not JSON.
        """
        return self.decode(Any)

    def decode(self, type: type[_T] | Any) -> Any:
        """Decode the body as JSON of a type (of typing, or a msgspec Struct); unknown fields are ignored.

        Raises:
            SourceError: it is not JSON, or does not match the type.
        """
        try:
            return msgspec.json.decode(self.body, type=type)
        except msgspec.ValidationError as error:
            raise SourceError(f"{endpoint_of(self.url)} answered JSON of another type: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            kind = self.headers.get("content-type", "no content type")[:80]
            raise SourceError(
                f"{endpoint_of(self.url)} answered {self.status} without JSON ({kind}, {len(self.body)} bytes)"
            ) from None

    @property
    def text(self) -> str:
        """The body as text, in the charset of the response; UTF-8 if it has none."""
        _, _, charset = self.headers.get("content-type", "").lower().partition("charset=")
        try:
            return self.body.decode(charset.split(";")[0].strip(" \"'") or "utf-8", "replace")
        except (LookupError, ValueError):  # also Python's codecs that are not charsets, such as idna
            return self.body.decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"<Response {self.status} of {endpoint_of(self.url)}, {len(self.body)} bytes>"
