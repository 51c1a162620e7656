"""The header ``Link`` (RFC 8288), in which many APIs have the URL of the next page."""

from __future__ import annotations

import re
from urllib.parse import urljoin

_TARGET = re.compile(r"[\s,]*<([^>]*)>", re.ASCII)
_PARAMETER = re.compile(r'\s*;\s*(?:([!#$%&\'*+.^_`|~\w-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?)?', re.ASCII)
_MAX = 16 * 1024


def links(header: str, base: str = "") -> dict[str, str]:
    """Return the target URLs by their relations in lower case; the first if a relation has several.

    Parsing stops at the first syntax error; the links before it are returned.

    Args:
        header: the value, or several joined by commas.
        base: the base URL of relative targets.
    """
    found: dict[str, str] = {}
    at = 0
    header = header[:_MAX]
    while match := _TARGET.match(header, at):
        at = match.end()
        relations: str | None = None
        while parameter := _PARAMETER.match(header, at):
            at = parameter.end()
            if (parameter[1] or "").lower() == "rel" and relations is None:  # a second one is ignored: section 3.3
                quoted, plain = parameter[2], parameter[3]
                relations = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain or ""
        try:
            target = urljoin(base, match[1].strip())
        except ValueError:  # not a URL
            break
        for relation in (relations or "").lower().split():
            found.setdefault(relation, target)
    return found
