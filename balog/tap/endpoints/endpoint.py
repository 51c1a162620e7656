"""The base of streams whose requests are declared by texts with placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from balog.common.text import suggest
from balog.tap.endpoints.templates import OWN, Template, Values, fill, names_in, parse
from balog.tap.errors import SourceError, TapError
from balog.tap.streams import Stream
from balog.tap.streams.settings import BOOL, Checks


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
    """A stream whose requests are declared by texts with placeholders; see ``balog.tap.endpoints.templates``.

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

    def filled_path(self, setting: str, values: Values) -> str:
        """Return a setting that is a path, with the values of its placeholders; see ``Template.fill_path``."""
        parsed = self._parsed[setting]
        return parsed.fill_path(values) if isinstance(parsed, Template) else str(parsed)

    def filled(self, setting: str, values: Values) -> Any:
        """Return a setting with the values of its placeholders; what has no value is left out."""
        return fill(self._parsed[setting], values)

    def completed(self, items: list[Any], record: Any) -> list[Any]:
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
