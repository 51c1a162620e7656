"""Downloads: bodies of responses that go to a file instead of memory."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import BinaryIO

from balog.tap.http.client import Client
from balog.tap.http.outcomes import Response


def download(
    client: Client,
    path: str,
    file: BinaryIO,
    *,
    max_bytes: int = 16 << 30,
    max_seconds: float = 6 * 3600,
    allow: tuple[int, ...] = (),
) -> Response:
    """Write the body of a successful GET to a file, which is empty before each try of the client's policy.

    Args:
        client: its credentials, policy and bounds apply, except the next two.
        path: see ``Client.request``.
        file: open for writing.
        max_bytes: the maximum size of the decompressed body.
        max_seconds: the maximum time of one try.
        allow: statuses that are returned like a success; their bodies are in the response.

    Returns:
        The response, with an empty body if it was a success.

    Raises:
        HttpError: another status, after all retries.
        SourceError: no response, one that is too large or incomplete, a redirect to another server.
    """
    twin = copy.copy(client)
    twin.connections = replace(client.connections, max_bytes=max_bytes, max_seconds=max_seconds, file=file, _pool=None)
    try:
        return twin.get(path, headers={"Accept": "*/*"}, allow=allow)
    finally:
        twin.connections.close()
