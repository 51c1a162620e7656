"""Expressions as SQL for Spark: the text, and that real Spark chooses the rows that ``matches`` chooses."""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from predicates import NUMBERS, STRINGS, Predicates

from balog.common.errors import ConfigError
from balog.event import LEVELS, Event, decode, parse_level
from balog.filters import Expression
from balog.filters.spark import SEVERITIES


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("level = 'error'", "(`level` = 'ERROR')"),
        ("level >= 'WARNING'", "(`level` IN ('WARNING', 'ERROR', 'CRITICAL'))"),
        ("'INFO' > level", "(`level` IN ('DEBUG'))"),
        ("level > 'FATAL'", "(`level` <> `level`)"),
        ("level IN ('info', 'WARN')", "(`level` IN ('INFO', 'WARNING'))"),
        ("timestamp >= '2026-11-20T07:00:00+02:00'", "(`timestamp` >= TIMESTAMP '2026-11-20 05:00:00Z')"),
        ("context['k8s.pod'] = 'p'", "(context['k8s.pod'] = 'p')"),
        ("channel LIKE 'a!%b\\_%' ESCAPE '!'", r"(`channel` LIKE 'a\\%b\\\\_%')"),
        ("channel ILIKE 'Tap%'", "(lower(`channel`) LIKE 'tap%')"),
        ("channel RLIKE '^\\d'", r"(substring(`channel`, 1, 65536) RLIKE '(?d)^\\d')"),
        ("channel = 'it''s \\ ${x}'", r"(`channel` = 'it\'s \\ \u0024{x}')"),
        ("payload.a.b IS NULL", "(try_variant_get(payload, '$.a.b', 'variant') IS NULL OR "
                                "is_variant_null(try_variant_get(payload, '$.a.b', 'variant')))"),
        ("payload.a = 'x'", "(CASE WHEN schema_of_variant(try_variant_get(payload, '$.a', 'variant')) = 'STRING' "
                            "THEN try_variant_get(payload, '$.a', 'string') END = 'x')"),
        ("payload['a b'][0]['it''s'] IS NULL",
         """(try_variant_get(payload, '$[\\'a b\\'][0]["it\\'s"]', 'variant') IS NULL OR """
         """is_variant_null(try_variant_get(payload, '$[\\'a b\\'][0]["it\\'s"]', 'variant')))"""),
        ("LENGTH(channel) / 0 > -1.5", "(try_divide(CAST(length(`channel`) AS DOUBLE), 0.0D) > (-1.5D))"),
        ("composition OR NULL", "(`composition` OR CAST(NULL AS BOOLEAN))"),
    ],
)  # fmt: skip
def test_an_expression_becomes_sql_over_the_columns_of_the_source(text: str, sql: str) -> None:
    assert Expression(text).to_spark() == sql


def test_every_spelling_of_a_level_has_its_severity() -> None:
    from balog.event import facility

    assert {name: LEVELS[parse_level(name) or ""] for name in facility._LEVEL_ALIASES} == SEVERITIES


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("payload['\"''both'] = 1", "cannot look up the key"),
        ("payload[''] = 1", "cannot look up the key"),
        ("NULLIF(" * 30 + "payload.a" + ", payload.b)" * 30 + " = 1", "too long for Spark"),
        (
            "CASE " * 25 + "payload.a" + " WHEN payload.b THEN payload.c WHEN 1 THEN 2 END" * 25 + " = 1",
            "too long for Spark",
        ),
    ],
)
def test_what_cannot_be_said_in_spark_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Expression(text).to_spark()


def test_an_expression_over_rows_has_no_columns_in_spark() -> None:
    with pytest.raises(ConfigError, match="over rows"):
        Expression("a = 1", "row").to_spark()


def test_a_value_is_no_condition_for_where() -> None:
    with pytest.raises(ConfigError, match="this gives text"):
        Expression("UPPER(channel)", gives="any").to_spark()


# Against Spark itself

TEXTS = ["channel", "id", "cls_type", "context.k", "context['k8s.pod']", "payload.a", "payload.b", "payload.n['k s']",
         "payload.n.l[1].z", "payload.n.l[0]"]  # fmt: skip
NUMERIC = ["payload.a", "payload.b", "payload.c", "payload.n.l[0]", "payload.missing"]
SPECIAL = [
    "level >= 'WARNING'",
    "level < 'error'",
    "level IN ('INFO', 'FATAL')",
    "level <> 'DEBUG'",
    "level > 'CRITICAL'",
    "level LIKE 'E%'",
    "level = payload.a",
    "level IS DISTINCT FROM 'INFO'",
    "COALESCE(level, 'INFO') = 'INFO'",
    "COALESCE(payload.a, level) = 'error'",
    "timestamp >= '2026-11-20'",
    "timestamp = payload.a",
    "timestamp BETWEEN '2026-11-20' AND TIMESTAMP '2026-11-20T05:46:12Z'",
    "COALESCE(timestamp, payload.a) = '2026-11-20'",
    "timestamp IN ('2025-01-01', '2026-11-20T05:46:12Z')",
    "CASE WHEN composition THEN timestamp ELSE payload.a END = payload.b",
    "payload.a = payload.b",
    "payload.a < payload.n.l[0]",
    "payload.c <> payload.d",
    "payload.a IS NULL",
    "payload IS NULL",
    "payload.n IS NOT NULL",
    "payload.a IS DISTINCT FROM payload.b",
    "NULLIF(payload.a, payload.b) IS NULL",
    "COALESCE(payload.a, payload.b, 1) = 1",
    "CASE payload.a WHEN 'a' THEN payload.b WHEN 1 THEN payload.c END = payload.d",
    "CAST(payload.a AS STRING) = '1'",
    "CAST(payload.b AS STRING) LIKE '%.%'",
    "CAST(payload.a AS INT) = 1",
    "CAST(payload.a AS BIGINT) < 2",
    "CAST(payload.a AS DOUBLE) > 1",
    "CAST(payload.a AS BOOLEAN)",
    "CAST(composition AS STRING) = 'true'",
    "CAST(LENGTH(channel) AS STRING) = '5'",
    "CAST(payload.a * 1 AS STRING) = '1'",
    "payload.a IN ('a', 1, true)",
    "payload.a NOT IN ('a', 1)",
    "payload.a BETWEEN payload.b AND 5",
    "context IS NULL",
    "payload.a RLIKE '^[a-c]+$'",
    "channel RLIKE '\\.[ab]$'",
    "payload.a LIKE 'a!%c' ESCAPE '!'",
    "payload.a ILIKE '%B%'",
    "SUBSTR(payload.a, -2) = 'bc'",
    "SUBSTR(channel, 0, 3) = 'tap'",
    "SUBSTR(channel, -9, 6) = 'tap'",
    "ROUND(payload.a) = 1",
    "payload.a = 'it''s'",
    "payload.a = '${x}'",
    "payload.a || channel = 'atap.a'",
    "payload.a / 0 IS NULL",
    "payload.a % 2 = 1",
    "- payload.a > 0",
    "schema = '0.0.1'",
]
VALUES = [*STRINGS, *STRINGS, *NUMBERS, -3, 0, 1, 2, 9, True, False, None, [1], {"a": 1}, "error", "${x}", "2026-11-20",
          "2026-11-20T07:46:12+02:00", "2026-11-20 05:46:12.000000999", "2026-11-20T05:46Z"]  # fmt: skip


def make_predicates(random: Random) -> Predicates:
    return Predicates(random, TEXTS, NUMERIC, ["composition", "payload.c", "payload.d"], SPECIAL)


def make_event(random: Random, number: int) -> Event:
    payload: dict[str, Any] = {key: random.choice(VALUES) for key in "abcd" if random.random() < 0.9}
    payload["n"] = {"k s": random.choice(VALUES), "l": [random.choice(VALUES), {"z": random.choice(VALUES)}]}
    payload |= {"cls_type": random.choice(["metric", "log"])} if random.random() < 0.7 else {}
    header = {
        "id": f"LG{number}",
        "channel": random.choice(["tap.a", "tap.b", "ab"]),
        "timestamp": random.choice(["2026-11-20T05:46:12Z", "2026-11-20T00:00:00.123456Z", "2025-01-01T00:00:00Z"]),
        "composition": random.random() < 0.3,
        "context": {key: random.choice(STRINGS) for key in ("k", "k8s.pod") if random.random() < 0.7},
    }
    old = random.random() < 0.15
    header |= {} if old else {"level": random.choice(list(LEVELS))}
    return decode(msgspec.json.encode({"schema": "0.0.1" if old else "1.0.0", "header": header, "payload": payload}))


EVENTS = [make_event(random, number) for random in [Random(5)] for number in range(60)]


@pytest.fixture(scope="module")
def table() -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    settings = {
        "spark.sql.session.timeZone": "America/New_York",  # that no literal may depend on
        "spark.sql.codegen.wholeStage": "false",  # compiling so much SQL takes longer than running it
    }
    before = {key: session.conf.get(key) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    names = ["id", "channel", "timestamp", "level", "schema", "composition", "context", "cls_type", "json"]
    types = ["string", "string", "timestamp", "string", "string", "boolean", "map<string,string>", "string", "string"]
    rows = []
    for event in EVENTS:
        header, payload = event.header, bytes(event.raw_payload).decode()
        facts = (header.id, header.channel, header.timestamp, event.level, event.schema, header.composition)
        rows.append((*facts, header.context, event.cls_type, payload))
    schema = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types))
    yield session.createDataFrame(rows, schema).selectExpr("*", "parse_json(json) payload").cache()
    for key, value in before.items():
        session.conf.set(key, value)


@pytest.mark.spark
@pytest.mark.parametrize("batch", range(6))
def test_spark_chooses_the_rows_that_matches_chooses(table: Any, batch: int) -> None:
    predicates = make_predicates(Random(batch))
    texts = [*SPECIAL[batch::6], *(predicates.condition(1 + number % 4) for number in range(16))]
    expressions = [Expression(text) for text in texts]
    found = table.selectExpr(*(f"({expression.to_spark()}) AS c{i}" for i, expression in enumerate(expressions)))
    theirs = list(zip(*found.collect()))
    for expression, column in zip(expressions, theirs):
        values = [expression.evaluate(event) for event in EVENTS]
        ours = [value if isinstance(value, bool) else None for value in values]
        assert ours == list(column), expression.text


@pytest.mark.spark
def test_where_takes_the_text(table: Any) -> None:
    expression = Expression("level >= 'ERROR' AND (payload.a IS NOT NULL OR payload.b > 1)")
    chosen = {row.id for row in table.where(expression.to_spark()).select("id").collect()}
    assert chosen == {event.header.id for event in EVENTS if expression.matches(event)} != set()
