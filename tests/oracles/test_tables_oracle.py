"""Tables of payload types, held against a recount that knows JSON, Parquet and nothing of balog's columns."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
t = pytest.importorskip("pyspark.sql.types", reason="pyspark is not installed")

from balog.analytics.closed_duckdb import type_name  # noqa: E402
from tests.oracles.effort import SOAK, seeds  # noqa: E402
from tests.oracles.payload_recount import Table, bare, read, recount  # noqa: E402

FIELDS = ["price", "tax", "id", "date", "cls_type", "ID", "x.y", 'q"', "é", "\t", "payload_recovered", "tags", "a b"]


class Number:
    """A number of JSON, as it is written."""

    def __init__(self, text: str) -> None:
        self.text = text


def dump(value: Any) -> str:
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{dump(item)}" for name, item in value.items()) + "}"
    return f"[{','.join(map(dump, value))}]" if isinstance(value, list) else json.dumps(value)


def number(rng: random.Random) -> Number:
    digits = "".join(rng.choices("0123456789", k=rng.choice([1, 5, 16, 17, 18, 23, 40])))
    shapes: list[Callable[[], str]] = [
        lambda: str(rng.randrange(-5, 5)),
        lambda: str(rng.choice([2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**37, 10**38, 10**60])),
        lambda: repr(rng.uniform(-1e3, 1e3)),
        lambda: f"{rng.randrange(1, 10)}{digits}",
        lambda: f"{rng.randrange(10)}.{digits}",
        lambda: f"-{rng.randrange(1, 10)}{digits[:9]}.{digits[9:] or '0'}",
        lambda: f"{rng.randrange(1, 10)}{digits}{rng.choice('eE')}{rng.choice(['', '-', '+'])}{rng.randrange(20)}",
        lambda: f"1.5e{rng.choice([307, 308, 309, 400, -310, -323, -324, -400, 99999])}",
        lambda: rng.choice(["-0", "-0.0", "0.0", "0e5", "1e2", "12.500000000000000000000"]),
    ]
    return Number(rng.choice(shapes)())


def scalar(rng: random.Random) -> Any:
    texts = ["", "x", "5", "-1.50", "007", "1e400", "0.1234567890123456789", "é\u2028", "1e005", "2026-01-01T00:00:00Z"]
    return rng.choice([None, {}, [], True, False, rng.choice(texts), number(rng), number(rng)])


def source(rng: random.Random) -> Callable[[], Any]:
    """Give what makes the values of one field, as a program of that seed writes them."""
    kinds: list[Callable[[], Any]] = [
        lambda: None,
        dict,
        list,
        lambda: [None],
        lambda: rng.choice([None, {}, []]),
        lambda: Number(str(rng.randrange(10**6))),
        lambda: Number(repr(rng.random())),
        lambda: rng.choice(["a", "b", None]),
        lambda: number(rng),
        lambda: scalar(rng),
        lambda: [scalar(rng) for _ in range(rng.randrange(3))],
        lambda: [Number(repr(rng.random())) for _ in range(rng.randrange(3))],
        lambda: {"a": Number("1"), "b": rng.choice([None, {}, "x"]), "c": None},
        lambda: [{"a": number(rng), "b": None, "c": []}],
        lambda: {"a": {"tags": rng.choice([None, {}, []]), "n": scalar(rng)}, "b": [scalar(rng)]},
    ]
    one, other = rng.choice(kinds), rng.choice(kinds)
    odd = rng.choice([0.0, 0.0, 0.003, 0.3])
    return lambda: other() if rng.random() < odd else one()


def payloads(rng: random.Random, count: int, cls_type: str) -> list[str]:
    """Give payloads of one program: always the same fields, some of which never hold anything."""
    fields = {name: source(rng) for name in rng.sample(FIELDS, rng.randrange(2, 8)) if name != "cls_type"}
    late = rng.randrange(count)
    made = []
    for row in range(count):
        names = list(fields)
        if row > late:
            fields.setdefault("late", lambda: None)
        payload = {name: fields[name]() for name in names if rng.random() < 0.95}
        payload["cls_type"] = rng.choice([1, None, "other"]) if rng.random() < 0.01 else cls_type
        made.append(dump(payload))
    return made


# -- objects that evolve -----------------------------------------------------------------------------------------------


def shape(rng: random.Random, level: int = 0) -> Any:
    """Give what a field holds: ``"text"``, ``"whole"``, the fields of an object, or a list of one kind of items."""
    kinds: list[Callable[[], Any]] = [lambda: "text", lambda: "whole"]
    if level < 4:
        kinds += [lambda: {name: shape(rng, level + 1) for name in rng.sample("abc", rng.randrange(1, 3))}] * 3
        kinds += [lambda: [shape(rng, level + 1)]]
    return rng.choice(kinds)()


def grown(rng: random.Random, kind: Any, level: int = 0) -> Any:
    """Give what a field holds in the next release: objects gain fields, at every level, and lists become objects."""
    if isinstance(kind, dict):
        new = {name: shape(rng, level + 1) for name in "abcd" if level < 4 and rng.random() < 0.4}
        return {**new, **{name: grown(rng, inner, level + 1) for name, inner in kind.items()}}
    if isinstance(kind, list):
        return {"a": kind[0]} if rng.random() < 0.2 else [grown(rng, kind[0], level + 1)]
    return kind


def held(rng: random.Random, kind: Any) -> Any:
    """Give a value of a field: now and then null or empty; an object's fields may be absent."""
    if rng.random() < 0.25:
        return rng.choice([None, None, {}, []])
    if isinstance(kind, dict):
        return {name: held(rng, inner) for name, inner in kind.items() if rng.random() < 0.8}
    if isinstance(kind, list):
        return [held(rng, kind[0]) for _ in range(rng.randrange(3))]
    return rng.choice(["x", "é"]) if kind == "text" else Number(str(rng.randrange(9)))


def releases(rng: random.Random, cls_type: str) -> list[list[str]]:
    """Give the payloads of each release of a program, whose objects gain fields; one is absent first, one null."""
    kind = {name: shape(rng) for name in ("customer", "items")}
    late = {name: shape(rng) for name in ("absent_first", "null_first")}
    made = []
    for number in range(rng.randrange(2, 5)):
        fields = {**kind, **late} if number else kind
        nothing = {} if number else {"null_first": None}
        rows = ({name: held(rng, one) for name, one in fields.items() if rng.random() < 0.9} for _ in range(6))
        made.append([dump({**nothing, **row, "cls_type": cls_type}) for row in rows])
        kind, late = grown(rng, kind), {name: grown(rng, one) for name, one in late.items()}
    return made


@pytest.mark.parametrize("nothing", [None, {}, [], [None], {"a": None}])
def test_a_field_that_never_holds_anything_moves_no_other_value(nothing: Any) -> None:
    table = Table("sale")
    made = [
        {"cls_type": "sale", "coupon": nothing, "price": Number(str(row)), "tax": Number(str(10_000 + row))}
        for row in range(1000)
    ]
    rows = [row for row, _ in table.load([dump(one) for one in made], 1000)]
    assert [(row["price"], row["tax"]) for row in rows] == [(row, 10_000 + row) for row in range(1000)]


@pytest.mark.parametrize("seed", seeds(40))
def test_every_value_is_in_a_column_of_its_own_field_over_pieces_and_batches(seed: int) -> None:
    from balog.analytics.tables.verification import difference

    rng = random.Random(seed)
    table = Table("sale")
    for _ in range(rng.randrange(1, 4)):
        for row, payload in table.load(payloads(rng, rng.randrange(300, 700), "sale"), rng.choice([700, 300, 7])):
            recount(table.columns, row, payload, "sale")
            assert difference(table.schema, "sale", row, payload) is None  # type: ignore[arg-type]


class Files:
    """The files of a table, one for each release of a program, as the embedded engine is told of them.

    The first one has the payload that no reader of ``union_by_name`` in DuckDB 2.0 reads.
    """

    def __init__(self, folder: Path, rng: random.Random) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from balog.analytics.reading.spark_types import arrow_schema

        first = [['{"buyer":{"name":"x"}}', "{}"], ['{"buyer":{"name":"x","address":{"city":"y"}}}']]
        table = Table("order")
        self.payloads: list[str] = []
        self.paths: list[str] = []
        for texts in first + releases(rng, "order"):
            rows = [{"n": n, **row} for n, (row, _) in enumerate(table.load(texts, 1000), len(self.payloads))]
            self.payloads += texts
            self.schema = t.StructType(
                [t.StructField("n", t.LongType()), t.StructField("payload_recovered", t.StringType()), *table.columns]
            )
            path = folder / f"{len(self.paths)}.parquet"
            pq.write_table(pa.Table.from_pylist(rows, arrow_schema(self.schema)), path)
            self.paths.append(str(path))

    def names(self) -> list[str]:
        return ["order"]

    def columns(self, name: str) -> dict[str, str]:
        return {field["name"]: type_name(field["type"]) for field in json.loads(self.schema.json())["fields"]}

    def size(self, names: list[str]) -> int:
        return 0

    def files(self, name: str) -> list[str]:
        return self.paths

    def recount(self, rows: list[dict[str, Any]]) -> None:
        assert [row["n"] for row in rows] == list(range(len(self.payloads)))
        for row, payload in zip(rows, self.payloads):
            recount(self.schema.fields[2:], row, payload, "order")


@pytest.mark.parametrize("seed", seeds(60))
def test_the_embedded_engine_reads_objects_that_gain_fields_at_any_level(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    from balog.analytics.embedded.database import open_database

    files = Files(tmp_path, random.Random(seed))
    with open_database(files, ["order"]) as database:
        found = database.execute('SELECT * FROM "order" ORDER BY n').fetchall()
    files.recount([dict(zip(files.schema.names, row)) for row in found])


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(3))
def test_spark_reads_objects_that_gain_fields_also_without_balog(spark: Any, seed: int, tmp_path: Path) -> None:
    from balog.analytics.tables.store import read_files

    files = Files(tmp_path, random.Random(seed))
    merged = spark.read.option("mergeSchema", "true").parquet(str(tmp_path))
    for frame in (read_files(spark, files.schema, files.paths), merged.select(*files.schema.names)):
        files.recount([row.asDict(recursive=True) for row in frame.orderBy("n").collect()])


@pytest.mark.parametrize("seed", seeds(10))
def test_the_check_of_a_load_finds_a_value_that_is_not_its_own(seed: int) -> None:
    from balog.analytics.tables.verification import difference

    rng = random.Random(seed)
    table = Table("sale")
    rows = list(table.load(payloads(rng, 400, "sale"), 400))
    found = 0
    for row, payload in rows:
        other = rng.choice(rows)[0]
        names = [one.name for one in table.columns if bare(row[one.name]) != bare(other[one.name])]
        for name in names:
            if name.startswith("cls_type") or row["payload_recovered"]:
                continue  # the table's name says the one; of the other, the rest may have all digits
            wrong = {**row, name: other[name]}
            field = difference(table.schema, "sale", wrong, payload)  # type: ignore[arg-type]
            assert field is not None, (name, wrong, payload)
            found += 1
    assert found or not table.columns or seed


def event(identity: str, payload: str, day: str) -> str:
    header = f'"id":"{identity}","channel":"shop","timestamp":"{day}T07:00:00Z","level":"INFO","composition":false'
    context = '"context":{"application":"a","run_id":"r1"}'
    return f'{{"schema":"0.1.0","header":{{{header},{context}}},"payload":{payload}}}\n'


@pytest.mark.spark
@pytest.mark.parametrize("seed", seeds(1))
def test_a_load_s_files_hold_every_payload_of_every_type(spark: Any, tmp_path: Path, seed: int) -> None:
    import pyarrow.parquet as pq

    from balog.analytics.tables import open_store
    from tests.loaded_tables import load_tables

    rng = random.Random(seed)
    given: dict[str, tuple[str, str]] = {}
    lines = []
    for batch in range(2):
        path = tmp_path / f"{batch}.jsonl"
        for kind in ("sale", "счёт", "日志", "weird type!", "weird-type?", "sale", "log"):
            for payload in payloads(rng, 700 if SOAK else 200, kind):
                identity = f"LG{len(given):022d}"
                given[identity] = kind, payload
                lines.append(event(identity, payload, f"2026-11-{rng.randrange(10, 13)}"))
        rng.shuffle(lines)
        path.write_text("".join(lines))
    load_tables(spark, tmp_path / "tables", sorted(tmp_path.glob("*.jsonl")), batch_bytes=1)
    store = open_store(spark, str(tmp_path / "tables"))
    typed: dict[str, str] = {}
    for name in store.names():
        if name in ("events", "quarantine") or name.startswith("rollup_"):
            continue
        schema = store.schema(name)
        assert schema is not None
        columns = [one for one in schema if "field" in one.metadata or one.name not in schema.names[:7]]
        for file in (tmp_path / "tables" / name).rglob("*.parquet"):
            for row in pq.ParquetFile(file).read().to_pylist():
                _, payload = given[row["id"]]
                assert typed.setdefault(row["id"], name) == name
                recount(columns, row, payload, read(payload)["cls_type"])
    expected = {identity for identity, (_, payload) in given.items() if isinstance(read(payload)["cls_type"], str)}
    assert set(typed) == expected
    by_type = {name: {read(given[one][1])["cls_type"] for one, table in typed.items() if table == name}
               for name in typed.values()}  # fmt: skip
    assert all(len(kinds) == 1 for kinds in by_type.values())


@pytest.mark.spark
def test_a_load_of_lines_with_a_key_twice_finishes_and_quarantines_them_alone(spark: Any, tmp_path: Path) -> None:
    from balog.event import decode
    from tests.loaded_tables import load_tables

    rng = random.Random(11)
    given: dict[str, str] = {}
    for number in range(3000):
        payload = dump({"cls_type": "sale", "price": number, "tags": {"shop": "a", "list": [{"x": 1}, {"x": 2}]}})
        hidden = rng.choice([*[payload] * 20, payload[:-1] + ',"price":5}', payload.replace('{"x":1', '{"x":0,"x":1')])
        given[f"LG{number:022d}"] = hidden.replace('"shop"', rng.choice(['"shop"', '"shop"', '"sh\\u006fp"']))
    lines = [event(identity, payload, "2026-11-20") for identity, payload in given.items()]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    expected = {identity for identity, line in zip(given, lines) if not _is_refused(decode, line)}
    assert 0 < len(expected) < 3000
    load_tables(spark, tmp_path / "tables", [tmp_path / "a.jsonl"])
    read = {name: spark.read.parquet(str(tmp_path / "tables" / name)) for name in ("events", "sale", "quarantine")}
    for name in ("events", "sale"):
        assert {row["id"] for row in read[name].select("id").collect()} == expected
    reasons = [row["reason"] for row in read["quarantine"].collect()]
    assert len(reasons) == 3000 - len(expected)
    assert all("twice" in reason for reason in reasons)


def _is_refused(decode: Callable[[bytes], Any], line: str) -> bool:
    from balog.common.errors import EventError

    try:
        decode(line.encode())
    except EventError:
        return True
    return False
