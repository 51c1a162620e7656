"""Places in catalogs: ``hive:DB?location=DIR``, ``iceberg:CATALOG.DB?location=DIR``, ``delta:DIR``.

``location`` is a folder on a disk that the driver and all executors see. There is the log of what was loaded, there
batches wait until they are in the tables, and for Hive the tables themselves are there.
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

    from balog.analytics.tables.evolution import Step

__all__ = [
    "Place",
    "alter",
    "columns_of",
    "quoted",
    "read_place",
    "session_settings",
    "state_folder",
    "text",
]

_NAME = re.compile(r"\w+")


class Place(NamedTuple):
    """A place's name, taken apart: what follows the kind, and the ``location``, which may be empty."""

    kind: str
    name: str
    location: str = ""


def read_place(place: str) -> Place:
    """Take a place's name apart.

    Raises:
        ConfigError: it can't be understood.
    """
    kind, _, rest = place.partition(":")
    name, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    location = options.pop("location", "")
    forms = {"hive": (1, "hive:DATABASE?location=FOLDER"), "iceberg": (2, "iceberg:CATALOG.DATABASE?location=FOLDER")}
    if kind in forms:
        parts, form = forms[kind]
        names = name.split(".")
        if len(names) < parts or (kind == "hive" and len(names) > 1) or not all(map(_NAME.fullmatch, names)) or options:
            raise ConfigError(f"is not of the form {form}", place)
    elif not name or options:
        raise ConfigError("is not of the form delta:FOLDER", place)
    if "://" in location:
        raise ConfigError("location has to be a folder on a disk that all executors see", place)
    return Place(kind, name, location)


def state_folder(place: Place) -> Path:
    """Give the location, or a folder of the user's state that belongs to the place where none is given."""
    if place.location:
        return Path(place.location).absolute()
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    named = hashlib.sha256(f"{place.kind}:{place.name}".encode()).hexdigest()[:16]
    return Path(state, "balog", "tables", f"{place.kind}-{named}").absolute()


def session_settings(place: str) -> dict[str, str]:
    """Give the settings that a session has to be started with for a place.

    Iceberg and Delta have settings of their own, which belong with their packages: into ``spark-defaults.conf``.
    """
    return {"spark.sql.catalogImplementation": "hive"} if place.startswith("hive:") else {}


def quoted(*names: str) -> str:
    """Write a name of several parts as Spark's SQL has it."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def text(value: str) -> str:
    """Write a text as Spark's SQL has it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def alter(spark: SparkSession, table: str, step: Step) -> None:
    """Add or widen a column, as Iceberg and Delta understand it."""
    path = quoted(*step.path)
    if step.kind == "add":
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({path} {_ddl(step.type)})")
    else:
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {path} TYPE {_ddl(step.type)}")


def columns_of(schema: StructType) -> str:
    """Write the columns of a table that is to be made, ``date`` last."""
    return ", ".join([*(f"{quoted(column.name)} {_ddl(column.dataType)}" for column in schema), "`date` date"])


def _ddl(kind: DataType) -> str:
    """Write a type as Spark's SQL has it, with every name in quotes."""
    from pyspark.sql import types as t

    if isinstance(kind, t.StructType):
        return "struct<" + ", ".join(f"{quoted(field.name)}: {_ddl(field.dataType)}" for field in kind) + ">"
    if isinstance(kind, t.ArrayType):
        return f"array<{_ddl(kind.elementType)}>"
    if isinstance(kind, t.MapType):
        return f"map<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return kind.simpleString()
