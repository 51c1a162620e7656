"""What a verdict says of a table is what Spark's tables do."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as t

from balog.analytics.reading.registry_types import spark_type
from balog.analytics.tables.evolution import merge, steps
from balog.analytics.tables.shapes import from_registry
from balog.errors import ConfigError
from balog.registry.comparing.document import SchemaDocument
from balog.registry.comparing.table import columns_of, table_steps, type_text

scalars = st.sampled_from([
    {"type": "string"}, {"type": "string", "format": "date-time"}, {"type": "string", "format": "date"},
    {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": ["string", "null"]}, {"type": "null"}, {},
    {"type": ["integer", "string"]}, {"type": ["integer", "number"]}, {"enum": ["a", "b"]}, {"const": 1},
    {"type": "object", "additionalProperties": {"type": "string"}}, {"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"},
    {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^[0-9]+$"}]}, {"enum": [1, "a"]},
])  # fmt: skip
names = st.sampled_from(["a", "A", "b", "c d", "id", "date", "level", "élan", "cls_type", "a_recovered"])


def _objects(inner: Any) -> Any:
    return st.fixed_dictionaries({
        "type": st.just("object"), "properties": st.dictionaries(names, inner, min_size=1, max_size=4)
    })  # fmt: skip


nodes = st.recursive(
    scalars,
    lambda inner: st.one_of(
        _objects(inner),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.tuples(inner, st.just({"type": "null"})).map(list)}),
        st.fixed_dictionaries({"allOf": st.lists(_objects(inner), min_size=1, max_size=2)}),
    ),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    document: dict[str, Any] = dict(draw(_objects(nodes)))
    if "const" in document["properties"].get("cls_type", {}):  # a schema of another type
        document["properties"]["cls_type"] = {"type": "string"}
    document["$defs"] = {"one": draw(_objects(scalars)), "two": draw(_objects(scalars))}
    return document


def registered(folder: Path, document: Any) -> t.StructType:
    file = folder / "order.json"
    file.write_text(json.dumps(document))
    found = from_registry("order", place=str(file))
    assert found is not None
    return found


@settings(max_examples=75, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents(), documents())
def test_the_steps_are_those_of_a_load(tmp_path_factory: pytest.TempPathFactory, old: Any, new: Any) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        before, after = registered(folder, old), registered(folder, new)
    except ConfigError:  # a type that leads to itself alone
        return
    table = merge(None, before).schema

    wanted = [(step.path, step.type.simpleString()) for step in steps(table, merge(table, after).schema)]

    found = [(step.path, step.type) for step in table_steps(SchemaDocument(old), SchemaDocument(new))]
    assert sorted(found) == sorted(wanted)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents())
def test_the_columns_are_those_of_a_load(tmp_path_factory: pytest.TempPathFactory, document: Any) -> None:
    columns = registered(tmp_path_factory.getbasetemp(), document)

    found = columns_of(SchemaDocument(document))

    assert {name: type_text(kind) for name, kind in found.items()} == {
        column.name: column.dataType.simpleString() for column in columns
    }
    assert isinstance(spark_type(document), t.StructType)
