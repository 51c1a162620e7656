"""The base of streams whose requests are declared by texts with placeholders.

| placeholder | |
|---|---|
| ``{bookmark}``, ``{start_date}``, ``{now}`` | those of the context |
| ``{selected}`` | the names of the selected properties, joined by commas |
| ``{config.NAME}`` | a setting of the tap's config |
| ``{NAME}``, ``{NAME.NAME}`` | a field of the parent's record, or of the item of ``for_each`` |

Times may have a format after a colon: ``unix``, ``unix_ms``, ``date``, or codes of ``strftime``. So a request has
``customers/{id}/orders``, ``{bookmark:unix}`` or ``{config.site}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from datetime import date, datetime, timezone
from decimal import Decimal
from string import Formatter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import quote

from balog.common.text import suggest
from balog.tap.errors import SourceError, TapError
from balog.tap.records.plain import finite
from balog.tap.records.times import from_iso, to_date_time
from balog.tap.streams import Stream
from balog.tap.streams.settings import BOOL, Checks

if TYPE_CHECKING:
    from balog.tap.streams.context import Context

OWN = ("bookmark", "start_date", "now", "selected")
"""Placeholders that are not fields of a parent's record."""
_NAME = re.compile(r"[^\s.{}\[\]!]+(?:\.[^\s.{}\[\]!]+)*")


class Values(NamedTuple):
    """The values of placeholders in one request.

    Attributes:
        context: the stream's context.
        record: the parent's record, or the item of ``for_each``; None at the top level.
    """

    context: Context
    record: Any

    def get(self, name: str) -> Any:
        """Return the value of a placeholder; None if it is missing."""
        if name == "selected":
            return ",".join(sorted(self.context.selected))
        if name in OWN:
            return getattr(self.context, name)
        root, path = (self.context.config, name[7:]) if name.startswith("config.") else (self.record, name)
        if name == "item" and not isinstance(self.record, Mapping):  # an item of for_each that has no fields
            return self.record
        for step in path.split("."):
            if isinstance(root, Mapping):
                root = root.get(step)
            else:
                root = None if step.startswith("_") else getattr(root, step, None)
        return root


class Template:
    """A text with placeholders.

    Args:
        text: the text; ``{{`` and ``}}`` are braces.

    Attributes:
        names: the names of its placeholders.

    Raises:
        ValueError: it is invalid, in one line.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            pieces = list(Formatter().parse(text))
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}; write {{{{ and }}}} for braces") from None
        self._pieces: list[tuple[str, str | None, str]] = []
        for literal, name, form, conversion in pieces:
            if name is not None and (conversion or not _NAME.fullmatch(name)):
                raise ValueError(
                    f"{text!r}: {{{name}}} is not a placeholder; expected {{bookmark}}, {{id}} or {{config.x}}"
                )
            if form and form not in ("unix", "unix_ms", "date") and "%" not in form:
                raise ValueError(
                    f"{text!r}: {form!r} is not a format; expected unix, unix_ms, date or codes such as %Y-%m-%d"
                )
            self._pieces.append((literal, name, form or ""))
        self.names = [name for _, name, _ in self._pieces if name is not None]

    def fill(self, values: Values) -> Any:
        """Return the text with values; None if one of them is missing.

        A text that is a placeholder alone keeps the type of its value, so that a number in a JSON body stays one.
        """
        if len(self._pieces) == 1 and self._pieces[0][0] == "" and self._pieces[0][1] is not None:
            return _formatted(values.get(self._pieces[0][1]), self._pieces[0][2])
        texts = []
        for literal, name, form in self._pieces:
            value = "" if name is None else _formatted(values.get(name), form)
            if value is None:
                return None
            texts.append(literal + str(value))
        return "".join(texts)

    def fill_path(self, values: Values) -> str:
        """Return the text as a path of a URL, each value percent-encoded as one segment.

        Raises:
            SourceError: a value is missing, or cannot be a segment of a path.
        """
        texts = []
        for literal, name, form in self._pieces:
            texts.append(literal)
            if name is not None:
                value = _formatted(values.get(name), form)
                if isinstance(value, (float, Decimal)) and finite(value):  # ids whose type is number
                    value = int(value) if value == int(value) else value
                elif isinstance(value, bool) or not isinstance(value, (str, int)):
                    raise SourceError(
                        f"the path {self.text!r} needs {name!r}: expected a text or a number, as in an id"
                    )
                if value in ("", ".", ".."):
                    raise SourceError(f"the path {self.text!r} needs {name!r}: {value!r} can't be part of a path")
                texts.append(quote(str(value), safe=""))
        return "".join(texts)


def parse(value: Any) -> Any:
    """Replace the texts inside dicts and lists by templates, if they have placeholders.

    Raises:
        ValueError: a text is not a valid template.
    """
    if isinstance(value, str):
        template = Template(value)
        return template if template.names else template.fill(Values(None, None))  # type: ignore[arg-type]
    if isinstance(value, Mapping):
        return {name: parse(inner) for name, inner in value.items()}
    return [parse(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def fill(value: Any, values: Values) -> Any:
    """Fill the templates inside a value of ``parse``; members of dicts and lists without a value are left out."""
    if isinstance(value, Template):
        return value.fill(values)
    if isinstance(value, Mapping):
        filled = {name: fill(inner, values) for name, inner in value.items()}
        return {name: inner for name, inner in filled.items() if inner is not None or value[name] is None}
    if isinstance(value, list):
        return [member for inner in value if (member := fill(inner, values)) is not None or inner is None]
    return value


def names_in(value: Any) -> Iterator[str]:
    """Yield the names of all placeholders inside a value of ``parse``."""
    if isinstance(value, Template):
        yield from value.names
    elif isinstance(value, (Mapping, list)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from names_in(inner)


def _formatted(value: Any, form: str) -> Any:
    if value is None or not form:
        return value.isoformat() if isinstance(value, date) else value
    if isinstance(value, str):
        text = to_date_time(value)
        if text is None:
            raise SourceError(f"{value!r} is not a time, which the format {form!r} needs")
        value = from_iso(text)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    if not isinstance(value, datetime):
        raise SourceError(f"a {type(value).__name__} is not a time, which the format {form!r} needs")
    if form in ("unix", "unix_ms"):
        seconds = value.timestamp()
        return int(seconds) if form == "unix" else int(seconds * 1000)
    return value.strftime("%Y-%m-%d" if form == "date" else form)


def values_at(value: Any, path: str) -> Any:
    """Return the value at a path, such as ``files.url``: a list if one is on the way, None if nothing is there."""
    for name in filter(None, path.split(".")):
        if isinstance(value, list):
            value = [each.get(name) if isinstance(each, Mapping) else None for each in value]
        else:
            value = value.get(name) if isinstance(value, Mapping) else None
    return value


def is_map(value: Any) -> bool:
    """Return whether a value is a dict with texts as keys."""
    return isinstance(value, Mapping) and all(isinstance(name, str) and name for name in value)


def _is_fields(value: Any) -> bool:
    return is_map(value) and all(isinstance(path, str) and path for path in value.values())


TEXT = (lambda value: isinstance(value, str) and bool(value.strip()), "a text")

ENDPOINT_SETTINGS: Checks = {
    "from_parent": (_is_fields, "a dict: for each property, the name of a field of the parent's record"),
    "items": TEXT,
    "may_repeat": BOOL,
    "replaces": BOOL,
}
"""The settings that all streams of endpoints have."""


class EndpointStream(Stream):
    """A stream whose requests are declared by texts with placeholders; see this module.

    Attributes:
        items: the path of the records in the response, ``data.orders``; None means the response itself.
        from_parent: properties that each record gets from the parent's record, or the item of ``for_each``:
            ``{"customer_id": "id"}``.
        may_repeat: see ``balog.tap.patterns.pages``.
        replaces: each sync is a new version of the table: targets delete rows that the source no longer has.
        templates: the settings that have placeholders, by name.
        placeholders: those that are not fields of the parent's record.
    """

    items: str | None = None
    from_parent: Mapping[str, str] = {}
    may_repeat: bool | None = None
    replaces: bool = False
    templates: ClassVar[tuple[str, ...]] = ()
    placeholders: ClassVar[tuple[str, ...]] = OWN
    own_settings: ClassVar[Checks] = ENDPOINT_SETTINGS

    def __init__(self, name: str = "", *, place: str = "", **settings: Any) -> None:
        super().__init__(name, place=place, **settings)
        self._parsed: dict[str, Any] = {}
        for setting in self.templates:
            try:
                self._parsed[setting] = parse(getattr(self, setting))
            except ValueError as error:
                raise TapError(f"{self.title}: {setting}: {error}") from None
        has_record = self.parent is not None or self.for_each is not None
        for name in () if has_record else names_in(self._parsed):
            if name not in self.placeholders and not name.startswith("config."):
                raise TapError(
                    f"{self.title}: {{{name}}} is a field of the parent's record, and the stream has no parent; "
                    f"set parent= or for_each={suggest(name, OWN, limit=0)}"
                )
        if self.from_parent and not has_record:
            raise TapError(f"{self.title}: from_parent= needs parent= or for_each=")
        if self.replaces and (has_record or self.replication_key):
            raise TapError(f"{self.title}: replaces= is for streams without replication_key, parent and for_each")

    def check(self, settings: Mapping[str, Any], has_client: bool) -> None:
        """Check that the config has the settings of the placeholders, and that the tap has a client."""
        if not has_client and self.client is None:
            raise TapError(f"{self.title}: sends requests; declare the tap's client with @tap.client")
        for name in names_in(self._parsed):
            setting = name.partition(".")[2].partition(".")[0]
            if name.startswith("config.") and settings and setting not in settings:
                raise TapError(
                    f"{self.title}: {{{name}}}: the config has no setting {setting!r}"
                    + suggest(setting, settings, limit=0)
                )

    def records(self, client: Any, context: Context, parent: Any = None, item: Any = None) -> Iterator[Any]:
        """Yield the records, a page at a time."""
        record = parent if item is None else item
        with context.full_table() if self.replaces else nullcontext():
            for page in self._requested(client, context, Values(context, record)):
                yield self._completed(page, record)

    def _requested(self, client: Any, context: Context, values: Values) -> Iterator[list[Any]]:
        """Yield the pages of the requests with some values; subclasses define it, or ``records``."""
        raise NotImplementedError

    def filled_path(self, setting: str, values: Values) -> str:
        """Return a setting that is a path, with the values of its placeholders; see ``Template.fill_path``."""
        parsed = self._parsed[setting]
        return parsed.fill_path(values) if isinstance(parsed, Template) else str(parsed)

    def filled(self, setting: str, values: Values) -> Any:
        """Return a setting with the values of its placeholders; what has no value is left out."""
        return fill(self._parsed[setting], values)

    def _completed(self, items: list[Any], record: Any) -> list[Any]:
        """Return records with the properties that come from the parent's record.

        Raises:
            SourceError: the parent's record lacks one of them.
        """
        if not self.from_parent:
            return items
        given = Values(None, record)  # type: ignore[arg-type]
        added = {name: given.get(path) for name, path in self.from_parent.items()}
        missing = [self.from_parent[name] for name, value in added.items() if value is None]
        if missing:
            raise SourceError(f"the parent's record has no {missing[0]!r}, which from_parent copies")
        return [{**item, **added} if isinstance(item, Mapping) else item for item in items]
