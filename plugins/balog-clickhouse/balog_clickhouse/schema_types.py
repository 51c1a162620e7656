"""The columns that the schemas of a registry give to the tables in ClickHouse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from balog.common.errors import BalogError, ConfigError, SinkError
from balog_clickhouse.table import column_of_schema

if TYPE_CHECKING:
    from balog.registry.registry import Registry


class SchemaTypes:
    """A function from a payload type to the column types of its fields.

    Args:
        location: the registry's folder or URL; None for balog's own types.
        options: options of the URL's file system.

    Raises:
        ConfigError: there is no such folder, or the place is invalid.
    """

    def __init__(self, location: str | None, options: Mapping[str, Any]) -> None:
        from balog.registry.registry import check_folder, open_registry

        self._folder = location
        if location is not None:
            try:
                check_folder(location)
            except ConfigError as error:
                raise ConfigError(str(error), path="registry") from None
        self._registry: Registry = open_registry(location, options)

    def __call__(self, name: str) -> Mapping[str, str]:
        """Return the columns that the type's newest schema declares; empty for a type without a schema.

        Raises:
            SinkError: the schema can't be read now. Columns made from values instead would stay for ever.
        """
        from balog.registry.listing import UnknownTypeError
        from balog.registry.registry import check_folder

        try:
            if self._folder is not None:
                check_folder(self._folder)
            schema = self._registry.get(name)
            if schema.form == "json":
                self._registry.validator(name)  # also fails for a $ref that leads nowhere
                document = msgspec.json.decode(schema.source)
            else:
                from balog.registry.protobuf import compile_proto

                document = compile_proto(schema.source, schema.message).json_schema()
        except UnknownTypeError:
            return {}
        except (BalogError, msgspec.DecodeError) as error:
            raise SinkError(f"the columns of {name} depend on its schema, which can't be read: {error}") from None
        properties = document.get("properties", {}) if isinstance(document, dict) else {}
        return {field: column_of_schema(inner) for field, inner in properties.items()}

    def close(self) -> None:
        """Close the registry."""
        self._registry.close()
