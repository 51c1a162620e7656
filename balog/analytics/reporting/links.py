"""Links from runs, failures and streams of a report to logs and dashboards elsewhere: URLs with fields in braces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from balog.analytics.engine import micros
from balog.analytics.reporting.model import Failure, Report, RunStats, StreamSummary
from balog.common.errors import ConfigError
from balog.common.text import suggest

_TIMES = ("since", "until", "since_ms", "until_ms")
_FIELDS = {
    "run_id": ("run_id", "application", *_TIMES),
    "fingerprint": ("fingerprint", "application", "channel", *_TIMES),
    "stream": ("stream", "application", *_TIMES),
}
"""The fields of a link, by the one that says whether it belongs to runs, failures or streams."""

_FIELD = re.compile(r"\{([^{}]*)\}")
_LABELLED = re.compile(r"([^=:/?#{}]{1,60})=(https?://.*)", re.IGNORECASE | re.DOTALL)
_OPTION = "--link"


class Link(NamedTuple):
    """A link, and the text that it shows."""

    label: str
    url: str


class LinkTemplate(NamedTuple):
    """A URL with fields in braces.

    Attributes:
        label: the text of the link.
        subject: ``run_id``, ``fingerprint`` or ``stream``: whether it belongs to runs, failures or streams.
        template: the URL, with fields.
    """

    label: str
    subject: str
    template: str

    def url(self, values: Mapping[str, str | None]) -> str | None:
        """Return the URL with percent-encoded values; None if a value is missing or would change the URL's path."""
        if any(values.get(field) in (None, "", ".", "..") for field in _FIELD.findall(self.template)):
            return None
        return _FIELD.sub(lambda field: quote(values[field[1]] or "", safe="", errors="replace"), self.template)


def parse_link(text: str) -> LinkTemplate:
    """Parse ``https://…/{run_id}``, or the same after a label: ``logs=https://…/{run_id}``.

    Raises:
        ConfigError: it is not a URL of http or https, or its fields are unknown or do not belong together.
    """
    labelled = _LABELLED.fullmatch(text.strip())
    label, url = (labelled[1].strip(), labelled[2]) if labelled else ("", text.strip())
    fields, rest = _FIELD.findall(url), _FIELD.sub("", url)
    if "{" in rest or "}" in rest:
        raise ConfigError(f"{text!r:.200} is not a URL with fields in braces", _OPTION)
    try:
        split = urlsplit(url)
        host = split.hostname
    except ValueError:
        host = None
    if host is None or split.scheme.lower() not in ("http", "https") or not url.isprintable() or " " in rest:
        raise ConfigError(f"{text!r:.200} is not a URL of http or https; give 'https://…/{{run_id}}'", _OPTION)
    if "{" in split.netloc or "@" in split.netloc:
        raise ConfigError(f"{text!r:.200} has a field or a password before its path; leave it out", _OPTION)
    known = sorted({name for names in _FIELDS.values() for name in names})
    for name in fields:
        if name not in known:
            raise ConfigError(f"unknown field {{{name:.60}}}{suggest(name, known)}", _OPTION)
    subjects = [name for name in _FIELDS if name in fields]
    if len(subjects) != 1:
        raise ConfigError(f"{text!r:.200} needs one of {{run_id}}, {{fingerprint}} and {{stream}}", _OPTION)
    (subject,) = subjects
    if strange := [name for name in fields if name not in _FIELDS[subject]]:
        raise ConfigError(f"{{{strange[0]}}} is not a field of links with {{{subject}}}", _OPTION)
    return LinkTemplate(label or host, subject, url)


def links_of_run(templates: Iterable[LinkTemplate], run: RunStats) -> list[Link]:
    """Return the links of a run; its times are its own, from its start to its last event."""
    others = [name for name in run.applications if name != "balog"] or run.applications
    values = {"run_id": run.run_id, "application": _one(others)}
    return _links(templates, "run_id", {**values, **_times(run.started, run.ended or run.started)})


def links_of_failure(templates: Iterable[LinkTemplate], failure: Failure) -> list[Link]:
    """Return the links of a failure; its times are those of its first and last event."""
    values = {
        "fingerprint": failure.fingerprint,
        "application": _one(failure.applications),
        "channel": _one(failure.channels),
    }
    return _links(templates, "fingerprint", {**values, **_times(failure.first, failure.last)})


def links_of_stream(templates: Iterable[LinkTemplate], stream: StreamSummary, report: Report) -> list[Link]:
    """Return the links of a stream; its times are those of the report."""
    values = {"stream": stream.stream, "application": _one(stream.applications)}
    period = report.period
    return _links(templates, "stream", {**values, **(_times(period.since, period.until) if period else {})})


def _one(names: list[str]) -> str | None:
    return names[0] if names else None


def _times(since: datetime, until: datetime) -> dict[str, str | None]:
    texts = {name: when.strftime("%Y-%m-%dT%H:%M:%S.%fZ") for name, when in (("since", since), ("until", until))}
    return {**texts, **{f"{name}_ms": str((micros(when) or 0) // 1000)
                        for name, when in (("since", since), ("until", until))}}  # fmt: skip


def _links(templates: Iterable[LinkTemplate], subject: str, values: Mapping[str, str | None]) -> list[Link]:
    pairs = [(template.label, template.url(values)) for template in templates if template.subject == subject]
    return [Link(label, url) for label, url in pairs if url is not None]
