"""Tables of payload types, held against a recount that knows JSON, Parquet and nothing of balog's columns."""

import json
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
t = pytest.importorskip("pyspark.sql.types", reason="pyspark is not installed")

from tests.oracles.effort import SOAK, seeds  # noqa: E402

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


# -- the recount -------------------------------------------------------------------------------------------------------


def read(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def bare(value: Any) -> Any:
    """Give a value without what holds nothing."""
    if isinstance(value, dict):
        kept = {name: bare(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item is not None} or None
    if isinstance(value, list):
        items = [bare(item) for item in value]
        return items if any(item is not None for item in items) else None
    return value


def document(row: dict[str, Any], columns: Any) -> dict[str, Any]:
    """Give what a row's columns hold, as a document again; a column's metadata names its field."""
    found: dict[str, Any] = {}
    for column in columns:
        value = row[column.name]
        if value is not None:
            field = column.metadata.get("field", column.name)
            assert field not in found, "two columns of one field have a value"
            found[field] = plain(value, column.dataType)
    return found


def plain(value: Any, kind: Any) -> Any:
    if isinstance(kind, t.StructType) and value is not None:
        return document(value, kind.fields)
    if isinstance(kind, t.ArrayType) and value is not None:
        return [plain(item, kind.elementType) for item in value]
    return value


def both(columns: Any, rest: Any) -> Any:
    """Give what columns and ``payload_recovered`` hold together; digits in the latter are those that were written."""
    if isinstance(columns, dict) and isinstance(rest, dict):
        return {**columns, **{name: both(columns.get(name), value) for name, value in rest.items()}}
    if columns is not None and not isinstance(columns, (dict, list)):
        assert isinstance(columns, float)
        assert float(rest) == columns, "the column has another value than the rest"
    return rest


def same(want: Any, got: Any) -> bool:
    if isinstance(want, dict) and isinstance(got, dict):
        return set(want) == set(got) and all(same(item, got[name]) for name, item in want.items())
    if isinstance(want, list) and isinstance(got, list):
        return len(want) == len(got) and all(map(same, want, got))
    if isinstance(want, str) and isinstance(got, (int, float, Decimal)) and not isinstance(got, bool):
        want = read(want)  # a number written as a text, in a column of numbers
    digits = len("".join(map(str, want.as_tuple().digits)).strip("0")) if isinstance(want, Decimal) else 0
    if isinstance(want, Decimal) and isinstance(got, float):
        return float(want) == got and (want == Decimal(got) or digits <= 17)
    if isinstance(want, Decimal) and isinstance(got, Decimal) and digits <= 17:
        return want == got or 0 != float(want) == float(got) < float("inf")  # written again from a double
    if isinstance(want, (int, Decimal)) and isinstance(got, (int, float, Decimal)):
        return want == got and isinstance(want, bool) == isinstance(got, bool)
    return type(want) is type(got) and bool(want == got)


def recount(columns: Any, row: dict[str, Any], payload: str, cls_type: str) -> None:
    """Hold a row against its payload: each value is there, in a column of its own field, and no other one."""
    kept = row["payload_recovered"]
    rest = read(kept) if kept is not None else {}
    want = read(payload)
    got = both(document(row, columns), rest)
    if want.get("cls_type") == cls_type and "cls_type" not in got:  # the table's name says it
        del want["cls_type"]
    assert same(bare(want) or {}, bare(got) or {}), (payload, kept)


class Table:
    """The table of a type in memory: batches grow its columns as the loader does."""

    def __init__(self, cls_type: str) -> None:
        self.cls_type, self.schema = cls_type, None

    def load(self, texts: list[str], piece: int) -> Iterator[tuple[dict[str, Any], str]]:
        """Give rows and payloads; ``piece`` payloads are handed over at a time, to the same columns."""
        from balog.analytics.tables.shapes import ShapeObserver
        from balog.analytics.tables.table_schema import merge
        from balog.analytics.tables.typed_columns import Columns

        watcher = ShapeObserver(self.cls_type, self.schema)
        watcher.observe([text.encode() for text in texts])
        self.schema = merge(self.schema, watcher.seen.struct()).schema
        columns = Columns(self.schema, self.cls_type)
        for start in range(0, len(texts), piece):
            some = texts[start : start + piece]
            made = {name: array.to_pylist() for name, array in columns.arrays([one.encode() for one in some]).items()}
            assert {len(values) for values in made.values()} == {len(some)}
            yield from (({name: made[name][row] for name in made}, text) for row, text in enumerate(some))

    @property
    def columns(self) -> list[Any]:
        from balog.analytics.tables.table_schema import payload_fields

        return payload_fields(self.schema)  # type: ignore[arg-type]


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

    def columns(self, name: str) -> dict[str, Any]:
        return {field["name"]: field["type"] for field in json.loads(self.schema.json())["fields"]}

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
    from balog.analytics.tables.loader import LoadOptions, load

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
    store = open_store(spark, str(tmp_path / "tables"))
    with store.writing():
        paths = [str(path) for path in sorted(tmp_path.glob("*.jsonl"))]
        load(spark, store, paths, LoadOptions(batch_bytes=1))
    typed: dict[str, str] = {}
    for name in store.names():
        if name in ("events", "quarantine") or name.startswith("rollup_"):
            continue
        schema = store.schema(name)
        assert schema is not None
        columns = [one for one in schema if "field" in one.metadata or one.name not in schema.names[:7]]
        for file in (tmp_path / "tables" / name).rglob("*.parquet"):
            found = pq.ParquetFile(file).read()
            had = set(found.column_names)
            for row in found.to_pylist():
                _, payload = given[row["id"]]
                assert typed.setdefault(row["id"], name) == name
                whole = {column.name: row.get(column.name) for column in schema}
                recount([column for column in columns if column.name in had], whole, payload, read(payload)["cls_type"])
    expected = {identity for identity, (_, payload) in given.items() if isinstance(read(payload)["cls_type"], str)}
    assert set(typed) == expected
    by_type = {name: {read(given[one][1])["cls_type"] for one, table in typed.items() if table == name}
               for name in typed.values()}  # fmt: skip
    assert all(len(kinds) == 1 for kinds in by_type.values())


@pytest.mark.spark
def test_a_load_of_lines_with_a_key_twice_finishes_and_quarantines_them_alone(spark: Any, tmp_path: Path) -> None:
    from balog.analytics.tables import open_store
    from balog.analytics.tables.loader import LoadOptions, load
    from balog.event import decode

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
    store = open_store(spark, str(tmp_path / "tables"))
    with store.writing():
        load(spark, store, [str(tmp_path / "a.jsonl")], LoadOptions())
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
