"""The schemas of the data source and of rollups, against pyspark's own conversions."""

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types as t

from balog.analytics.closed_duckdb import type_name
from balog.analytics.reading import schemas, spark_types
from balog.analytics.reading.projection import sql_type
from balog.analytics.rollups import frames
from balog.analytics.rollups import schemas as rollups
from balog.common.errors import ConfigError

PAIRS = {
    **{name: (getattr(schemas, name), getattr(spark_types, name)) for name in ("DEFAULT", "TEXT_EVENT", "QUARANTINE")},
    **{name: (rollups.FRAMES[name], frames.FRAMES[name]) for name in rollups.FRAMES},
    "ROLLUP": (rollups.ROLLUP, frames.ROLLUP),
}


@pytest.mark.parametrize("name", PAIRS)
def test_both_forms_of_a_schema_are_the_same_for_spark(name: str) -> None:
    arrow, spark = PAIRS[name]
    assert spark_types.arrow_schema(spark).equals(pa.schema(list(arrow)), check_metadata=True)
    assert {field.name: schemas.type_name(field.type) for field in arrow} == {
        field.name: field.dataType.simpleString() for field in spark
    }
    if name == "TEXT_EVENT":  # raw events in DuckDB have the types of stored ones
        types = [type_name(field["type"]) for field in spark.jsonValue()["fields"]]
        assert [sql_type(field.type) for field in arrow] == types


@pytest.mark.parametrize("kind", [t.YearMonthIntervalType(), t.NullType(), t.BinaryType(), t.DayTimeIntervalType()])
def test_a_payload_of_a_type_that_json_has_not_is_refused(kind: t.DataType) -> None:
    schema = t.StructType([t.StructField("payload", t.StructType([t.StructField("x", kind)]))])
    with pytest.raises(ConfigError, match="the schema for format"):
        spark_types.project_spark(schema)


def test_a_variant_within_a_struct_is_refused() -> None:
    schema = t.StructType([t.StructField("payload", t.StructType([t.StructField("x", t.VariantType())]))])
    with pytest.raises(ConfigError, match=r"no column payload of type struct<x:variant>"):
        spark_types.project_spark(schema)
