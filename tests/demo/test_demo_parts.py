"""The demo's checks can fail, and its pipes keep every exit code."""

import csv
import gzip
import json
import sys
from pathlib import Path

import pytest

from balog.event import new_id
from balog.topics import Message, open_topics
from demo import check, data
from demo.pipeline import Pipeline

SOURCE: list[data.Row] = [{"name": "Dr. C.P. Savage, Sr.", "latitude": 32.302}, {"name": "Thigpen", "latitude": 31.5}]


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def load(path: Path, rows: list[data.Row]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["name", "latitude"])
        writer.writeheader()
        writer.writerows(rows)
    return path


def archive(folder: Path, identities: list[str]) -> Path:
    day = folder / "singer-events" / "date=2026-11-20"
    day.mkdir(parents=True)
    lines = [json.dumps({"header": {"id": identity}}) for identity in identities]
    (day / "a.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


class TestCsvIsComplete:
    def test_the_same_rows_pass(self, tmp_path: Path) -> None:
        assert "all 2 airports" in check.csv_is_complete(load(tmp_path / "a.csv", SOURCE), SOURCE, "airports")

    def test_a_missing_record_is_wrong(self, tmp_path: Path) -> None:
        with pytest.raises(check.Wrong, match="1 records where the source has 2"):
            check.csv_is_complete(load(tmp_path / "a.csv", SOURCE[:1]), SOURCE, "airports")

    def test_a_record_too_many_is_wrong(self, tmp_path: Path) -> None:
        with pytest.raises(check.Wrong, match="3 records where the source has 2"):
            check.csv_is_complete(load(tmp_path / "a.csv", [*SOURCE, SOURCE[0]]), SOURCE, "airports")

    def test_another_value_is_wrong(self, tmp_path: Path) -> None:
        other: list[data.Row] = [SOURCE[0], {**SOURCE[1], "latitude": 31.6}]
        with pytest.raises(check.Wrong, match=r"record 2: latitude is '31\.6', the source has 31\.5"):
            check.csv_is_complete(load(tmp_path / "a.csv", other), SOURCE, "airports")


class TestEveryEventWasHandled:
    def handled(self, url: str, identities: list[str], acked: int) -> None:
        with open_topics(url) as home, home.topic("singer-events") as topic:
            topic.publish(Message(id=identity, body=b"{}") for identity in identities)
            topic.ack("balog", topic.receive("balog", limit=acked))

    def test_as_many_in_the_archive_as_handled_pass(self, tmp_path: Path) -> None:
        identities, url = [new_id() for _ in range(3)], f"local:{tmp_path / 'topics'}"
        self.handled(url, identities, acked=3)
        assert "same 3 events" in check.every_event_was_handled(archive(tmp_path, identities), url, "balog")

    def test_an_event_that_waits_is_wrong(self, tmp_path: Path) -> None:
        identities, url = [new_id() for _ in range(3)], f"local:{tmp_path / 'topics'}"
        self.handled(url, identities, acked=2)
        with pytest.raises(check.Wrong, match="not handled every event"):
            check.every_event_was_handled(archive(tmp_path, identities), url, "balog")

    def test_an_event_that_the_archive_lacks_is_wrong(self, tmp_path: Path) -> None:
        identities, url = [new_id() for _ in range(3)], f"local:{tmp_path / 'topics'}"
        self.handled(url, identities, acked=3)
        with pytest.raises(check.Wrong, match="3 events where"):
            check.every_event_was_handled(archive(tmp_path, identities[:2]), url, "balog")

    def test_an_event_twice_in_the_archive_is_wrong(self, tmp_path: Path) -> None:
        twice = [new_id()] * 2
        with pytest.raises(check.Wrong, match="2 events with 1 ids"):
            check.every_event_was_handled(archive(tmp_path, twice), f"local:{tmp_path / 'topics'}", "balog")


class TestPageIsWhole:
    def page(self, folder: Path, text: str) -> Path:
        (folder / "report.html").write_text(text)
        return folder / "report.html"

    @pytest.mark.parametrize(
        "asking",
        [
            '<script src="https://cdn.example/vega.js"></script>',
            '<link rel="stylesheet" href="style.css">',
            '<img src="//cdn.example/a.png">',
            "<style>body { background: url('a.png') }</style>",
            "<style>@import 'https://cdn.example/a.css';</style>",
        ],
    )
    def test_a_page_that_asks_another_server_is_wrong(self, tmp_path: Path, asking: str) -> None:
        with pytest.raises(check.Wrong, match="needs more than itself"):
            check.page_is_whole(self.page(tmp_path, f"<html>{asking}</html>"))

    def test_a_page_that_breaks_off_is_wrong(self, tmp_path: Path) -> None:
        with pytest.raises(check.Wrong, match="breaks off"):
            check.page_is_whole(self.page(tmp_path, "<html><body>"))

    def test_a_page_with_all_of_it_inside_passes(self, tmp_path: Path) -> None:
        inside = '<link rel="icon" href="data:,"><a href="https://example.org">more</a><a href="#runs">runs</a>'
        style = "<style>b { color: red }</style><script>const text = \"url('x')\"</script>"
        assert "opens offline" in check.page_is_whole(self.page(tmp_path, f"<html>{inside}{style}</html>\n"))


class TestPipeline:
    def test_every_exit_code_is_kept_in_order(self, tmp_path: Path) -> None:
        pipeline = Pipeline([python("raise SystemExit(3)"), python("import sys; sys.stdin.read()")], tmp_path / "out")
        assert pipeline.run() == [3, 0]

    def test_the_output_of_one_is_the_input_of_the_next(self, tmp_path: Path) -> None:
        upper = python("import sys; print(sys.stdin.read().upper(), end='')")
        assert Pipeline([python("print('abc')"), upper], tmp_path / "out").run() == [0, 0]
        assert (tmp_path / "out").read_text() == "ABC\n"

    def test_a_command_whose_reader_is_gone_sees_it(self, tmp_path: Path) -> None:
        endless = python("import sys\nwhile True: sys.stdout.write('x' * 65536)")
        assert Pipeline([endless, python("pass")], tmp_path / "out").run()[0] != 0

    def test_it_reads_as_one_would_type_it(self) -> None:
        pipeline = Pipeline([["tap", "--config", "a b.json"], ["target"]], Path("out"))
        assert str(pipeline) == "tap --config 'a b.json' \\\n    | target \\\n    > out"
