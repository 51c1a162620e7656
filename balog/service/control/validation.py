"""Validates a control document before it is applied, and reports all problems at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from balog.common.config.problems import intact, problems
from balog.common.duplicate_keys import find_duplicate_keys
from balog.common.errors import ConfigError
from balog.service.document import ControlDocument
from balog.service.intake.router import route_problems

_MAX_TWICE = 20


def read_document(data: bytes, source: str = "") -> tuple[ControlDocument | None, list[ConfigError]]:
    """Read a document and find its problems, except those that only a service can find, such as missing secrets.

    Args:
        data: the document as JSON.
        source: the file or version, for errors.

    Returns:
        The document, or None if it cannot be read, and the problems.
    """
    try:
        plain = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, [ConfigError(f"is not JSON: {error or 'nested too deep'}", source)]
    if isinstance(plain, dict) and isinstance(plain.get("$schema"), str):
        del plain["$schema"]  # for editors
    twice = islice(find_duplicate_keys(data.removeprefix(b"\xef\xbb\xbf")), _MAX_TWICE)
    repeated = [ConfigError("this key is there twice; expected once", source, path) for path in twice]
    errors = [*repeated, *problems(plain, ControlDocument, source)]
    document, left_out, original = intact(plain, ControlDocument)
    if document is None:
        return None, errors
    errors += (ConfigError(error.reason, source, original(error.path)) for error in check(document))
    return (None if left_out or repeated else document), errors


def check(document: ControlDocument) -> list[ConfigError]:
    """Return the problems of a document's parts: names, expressions, streams, cycles of filters."""
    return list(_problems(document))


def _problems(document: ControlDocument) -> Iterator[ConfigError]:
    from balog.filters import Expression
    from balog.service.jobs.callbacks.endpoint import check_callback
    from balog.service.jobs.filters import filter_problems  # brings the engine
    from balog.service.jobs.tables import check_table

    yield from route_problems(document)
    yield from filter_problems(document)
    for kind in ("streams", "filters", "tables", "callbacks"):
        names: set[str] = set()
        for number, part in enumerate(getattr(document, kind)):
            path = f"$.{kind}[{number}]"
            if part.name in names:
                yield ConfigError(f"there are two {kind} {part.name!r}; rename one", path=f"{path}.name")
            names.add(part.name)
            sources = getattr(part, "sources", ())
            twice = next((at for at, topic in enumerate(sources) if topic in sources[:at]), None)
            if twice is not None:
                yield ConfigError("is listed twice", path=f"{path}.sources[{twice}]")
            try:
                if kind == "callbacks":
                    check_callback(part)
                elif kind == "tables":
                    check_table(part)
                if kind in ("callbacks", "tables") and getattr(part, "where", None) is not None:
                    Expression(part.where)
            except ConfigError as error:
                yield ConfigError(error.reason, path=f"{path}.{error.path or 'where'}")
