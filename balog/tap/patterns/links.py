"""The header ``Link`` (RFC 8288), by which many APIs say where the next page is."""

from __future__ import annotations

import re
from urllib.parse import urljoin

__all__ = ["links"]

_TARGET = re.compile(r"[\s,]*<([^>]*)>", re.ASCII)
_PARAMETER = re.compile(r'\s*;\s*(?:([!#$%&\'*+.^_`|~\w-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?)?', re.ASCII)
_MAX = 16 * 1024


def links(header: str, base: str = "") -> dict[str, str]:
    """Give the targets by their relations in lower case; of several with one relation the first.

    What is no link ends the reading: the ones before it count.

    Args:
        header: the value, or several joined by commas.
        base: a URL, from which relative targets are seen.
    """
    found: dict[str, str] = {}
    at = 0
    header = header[:_MAX]
    while match := _TARGET.match(header, at):
        at = match.end()
        relations: str | None = None
        while parameter := _PARAMETER.match(header, at):
            at = parameter.end()
            if (parameter[1] or "").lower() == "rel" and relations is None:  # a second one is passed over: section 3.3
                quoted, plain = parameter[2], parameter[3]
                relations = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain or ""
        try:
            target = urljoin(base, match[1].strip())
        except ValueError:  # no URL
            break
        for relation in (relations or "").lower().split():
            found.setdefault(relation, target)
    return found
