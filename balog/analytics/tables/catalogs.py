"""Locations in catalogs: ``hive:DB?location=DIR``, ``iceberg:CATALOG.DB?location=DIR``, ``delta:DIR``.

``location`` is a folder on a disk that the driver and all executors see. It holds the log of loads, the staged batches,
and for Hive the tables themselves.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

from balog.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

    from balog.analytics.tables.evolution import ColumnChange


_NAME = re.compile(r"\w+")


class CatalogLocation(NamedTuple):
    """A parsed location in a catalog.

    Attributes:
        kind: ``hive``, ``iceberg`` or ``delta``.
        name: the database, with its catalog for Iceberg; the tables' folder or URL for Delta.
        folder: the folder of the log; "" for the default.
    """

    kind: str
    name: str
    folder: str = ""


def parse_location(location: str) -> CatalogLocation:
    """Parse a location in a catalog.

    Raises:
        ConfigError: it is not of the catalog's form.
    """
    kind, _, rest = location.partition(":")
    name, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    folder = options.pop("location", "")
    forms = {"hive": (1, "hive:DATABASE?location=FOLDER"), "iceberg": (2, "iceberg:CATALOG.DATABASE?location=FOLDER")}
    if kind in forms:
        parts, form = forms[kind]
        names = name.split(".")
        if len(names) < parts or (kind == "hive" and len(names) > 1) or not all(map(_NAME.fullmatch, names)) or options:
            raise ConfigError(f"is not of the form {form}", location)
    elif not name or options:
        raise ConfigError("is not of the form delta:FOLDER", location)
    if "://" in folder:
        raise ConfigError("location has to be a folder on a disk that all executors see", location)
    return CatalogLocation(kind, name, folder)


def state_folder(location: CatalogLocation) -> Path:
    """Return the location's folder, or by default a folder for it in the user's state directory."""
    if location.folder:
        return Path(location.folder).absolute()
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    digest = hashlib.sha256(f"{location.kind}:{location.name}".encode()).hexdigest()[:16]
    return Path(state, "balog", "tables", f"{location.kind}-{digest}").absolute()


def session_settings(location: str) -> dict[str, str]:
    """Return the Spark settings that a session for a location needs.

    Iceberg and Delta have settings of their own, which belong with their packages: into ``spark-defaults.conf``.
    """
    return {"spark.sql.catalogImplementation": "hive"} if location.startswith("hive:") else {}


def quoted(*names: str) -> str:
    """Return a name of several parts as a quoted identifier of Spark's SQL."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def text(value: str) -> str:
    """Return a string literal of Spark's SQL."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def alter(spark: SparkSession, table: str, step: ColumnChange) -> None:
    """Add or widen a column of an Iceberg or Delta table."""
    path = quoted(*step.path)
    if step.kind == "add":
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({path} {_ddl(step.type)})")
    else:
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {path} TYPE {_ddl(step.type)}")


def columns_of(schema: StructType) -> str:
    """Return the column list of CREATE TABLE, ``date`` last."""
    return ", ".join([*(f"{quoted(column.name)} {_ddl(column.dataType)}" for column in schema), "`date` date"])


def _ddl(kind: DataType) -> str:
    """Return a type in Spark's SQL, with every name quoted."""
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return "struct<" + ", ".join(f"{quoted(field.name)}: {_ddl(field.dataType)}" for field in kind) + ">"
    if isinstance(kind, t.ArrayType):
        return f"array<{_ddl(kind.elementType)}>"
    if isinstance(kind, t.MapType):
        return f"map<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return kind.simpleString()
