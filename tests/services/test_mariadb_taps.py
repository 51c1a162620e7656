"""The tap of a database on a real MariaDB, compared with what the server itself says of its tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pymysql")
pytest.importorskip("sqlalchemy")

from balog.tap.errors import SourceError
from balog.tap.sql import Database
from balog.tap.sql.pages import TableReader
from tests.services.servers.mariadb import MariaServer, running_mariadb
from tests.services.sql_runs import Runner

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaServer]:
    with running_mariadb(tmp_path_factory.mktemp("mariadb")) as running:
        yield running


KINDS = """
CREATE TABLE kinds (
    id bigint unsigned PRIMARY KEY, tiny tinyint, tinyu tinyint unsigned, yes boolean, small smallint unsigned,
    med mediumint, i int, iu int unsigned, n decimal(30,10), r float, d double, t text, v varchar(9), c char(4),
    day date, at timestamp(6) NULL, naive datetime(3), clock time(2), y year, j json, b varbinary(5), bl blob,
    bits bit(10), m enum('sad','it''s'), s set('a','b','c'), u uuid, net inet6, p point, `Order; DROP TABLE x --` text
);
INSERT INTO kinds VALUES (
    18446744073709551615, -128, 255, true, 65535, -8388608, -2147483648, 4294967295, 12345678901234567890.0123456789,
    16777215, 1e300, 'a\\n"b', 'ä😀', 'ab', '2024-02-29', '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05.123',
    '-100:59:59.50', 2026, '{"a": 1.00000000000000000001, "b": [1, null]}', x'00ff', x'00ff', b'101', 'it''s', 'a,c',
    '6ba7b810-9dad-11d1-80b4-00c04fd430c8', '::1', POINT(1, 2), 'x');
INSERT INTO kinds (id) VALUES (1);
"""


class TestTypes:
    @pytest.fixture(scope="class")
    @classmethod
    def url(cls, server: MariaServer) -> str:
        url = server.database("kinds")
        server.run("kinds", "SET time_zone = '+00:00';\n" + KINDS)
        return url

    def test_each_has_its_value(self, url: str, capfd: Any, tmp_path: Path) -> None:
        runner = Runner(capfd, tmp_path, url)
        runner.select(runner.discover()["kinds"])

        assert runner.run() == 0, runner.err
        first, second = sorted(runner.records("kinds"), key=lambda record: record["id"])

        assert all(value is None for name, value in first.items() if name != "id")
        assert second == {
            "id": 18446744073709551615,
            "tiny": -128,
            "tinyu": 255,
            "yes": 1,
            "small": 65535,
            "med": -8388608,
            "i": -2147483648,
            "iu": 4294967295,
            "n": 12345678901234567890.0123456789,
            "r": 16777215,
            "d": 1e300,
            "t": 'a\n"b',
            "v": "ä😀",
            "c": "ab",
            "day": "2024-02-29",
            "at": "2026-01-02T03:04:05.678901Z",
            "naive": "2026-01-02T03:04:05.123000Z",
            "clock": "-100:59:59.50",
            "y": "2026",
            "j": {"a": 1, "b": [1, None]},
            "b": "AP8=",
            "bl": "AP8=",
            "bits": "0000000101",
            "m": "it's",
            "s": "a,c",
            "u": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "net": "::1",
            "p": "POINT(1 2)",
            "Order; DROP TABLE x --": "x",
        }
        assert '"n":12345678901234567890.0123456789' in runner.out
        assert '"a":1.00000000000000000001' in runner.out
        assert "SAWarning" not in runner.err

    def test_integers_have_their_bounds_and_times_their_zone(self, url: str, capfd: Any, tmp_path: Path) -> None:
        found = Runner(capfd, tmp_path, url).discover()["kinds"]
        bounds = {
            name: (schema["minimum"], schema["maximum"])
            for name, schema in found["schema"]["properties"].items()
            if "minimum" in schema
        }
        assert bounds == {
            "id": (0, 2**64 - 1),
            "tiny": (-128, 127),
            "tinyu": (0, 255),
            "yes": (-128, 127),
            "small": (0, 65535),
            "med": (-(2**23), 2**23 - 1),
            "i": (-(2**31), 2**31 - 1),
            "iu": (0, 2**32 - 1),
        }
        zones = {
            item["breadcrumb"][1]: item["metadata"]["naive-zone"]
            for item in found["metadata"]
            if "naive-zone" in item["metadata"]
        }
        assert zones == {"naive": "UTC"}


class TestDiscovery:
    def test_tables_views_keys_and_other_databases(self, server: MariaServer, capfd: Any, tmp_path: Path) -> None:
        server.database("we ird")
        server.run("we ird", "CREATE TABLE `t``x` (id int, `a b` int, PRIMARY KEY (`a b`, id));\n")
        url = server.database("found")
        server.run(
            "found",
            "CREATE TABLE a (id int PRIMARY KEY);\nCREATE VIEW seen AS SELECT * FROM a;\nCREATE SEQUENCE numbers;\n"
            "INSERT INTO `we ird`.`t``x` VALUES (1, 2);\n",
        )
        assert sorted(Runner(capfd, tmp_path, url).discover()) == ["a", "seen"]
        runner = Runner(capfd, tmp_path, url, schemas=["we ird"])
        entry = runner.discover()["we ird-t`x"]
        assert entry["key_properties"] == ["a b", "id"]
        runner.select(entry)
        assert runner.run() == 0, runner.err
        assert runner.records("we ird-t`x") == [{"id": 1, "a b": 2}]

    def test_a_session_writes_nothing(self, server: MariaServer) -> None:
        url = server.database("kept")
        server.run("kept", "CREATE TABLE a (id int PRIMARY KEY);\n")
        database = Database(url)
        with pytest.raises(SourceError, match="READ ONLY"), database.connection() as connection:
            connection.exec_driver_sql("INSERT INTO a VALUES (1)")
        database.close()


KEYS = {
    "bigint unsigned": "18446744073709551615, 0, 9223372036854775808, 1, 2",
    "binary(2)": "x'0000', x'ff00', x'2727', x'005c', x'8000'",
    "bit(3)": "b'101', b'000', b'011', b'111', b'001'",
    "datetime(6)": "'2026-01-01 00:00:00.000001', '1000-01-01', '9999-12-31 23:59:59.999999', '2026-02-01'",
    "decimal(20, 5)": "-1.5, 0, 0.00001, 123456789012345.12345, 2",
    "double": "-1e300, 0.1, 1e-300, 0, 2",
    "enum('z', 'b', 'a', '1', 'B c')": "'a', 'z', 'b', '1', 'B c'",
    "float": "0.1, 16777215, -1.1, 0.7, 3e38",
    "set('z', 'b', 'a')": "'', 'z', 'a,z', 'b', 'z,b,a'",
    "time(3)": "'-100:59:59.5', '-100:59:59.999', '00:00:00', '00:00:00.001', '838:59:59'",
    "uuid": "uuid(), uuid(), uuid(), uuid(), uuid()",
    "varchar(20) COLLATE utf8mb4_general_ci": "'', 'B', 'a', 'ä''', 'Zz\\\\'",
    "varchar(20) COLLATE utf8mb4_bin": "'B', 'a', 'A', 'ä', '😀'",
    "year": "1999, 2026, 1901, 2155, 2000",
}


class TestPages:
    @pytest.mark.parametrize("kind", KEYS)
    def test_keys_of_each_type_come_once_and_can_be_resumed(self, server: MariaServer, kind: str) -> None:
        url = server.database("keys")
        values = "".join(f", ({value})" for value in KEYS[kind].split(", "))[2:]
        server.run("keys", f"CREATE TABLE t (k {kind} PRIMARY KEY, n int AUTO_INCREMENT UNIQUE);\n")
        server.run("keys", f"INSERT INTO t (k) VALUES {values};\n")
        ordered = [n for (n,) in server.run("keys", "SELECT n FROM t ORDER BY k;\n")]
        database = Database(url, page_rows=1)
        reader = TableReader(database, None, "t", {"k", "n"}, ["k"])

        rows = [page[0] for page in reader.pages(["k"], None)]
        after = json.loads(json.dumps(reader.position(rows[1]), default=float))
        rest = [page[0]["n"] for page in reader.pages(["k"], after)]
        database.close()

        assert [row["n"] for row in rows] == ordered
        assert rest == ordered[2:]
