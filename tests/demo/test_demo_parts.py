"""The demo's checks can fail."""

import base64
import csv
import gzip
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from balog.event import Event, encode, new_id
from balog.topics import Message, open_topics
from demo import check, data
from demo.receiver import Receiver

SOURCE: list[data.Row] = [{"name": "Dr. C.P. Savage, Sr.", "latitude": 32.302}, {"name": "Thigpen", "latitude": 31.5}]


def load(path: Path, rows: list[data.Row]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["name", "latitude"])
        writer.writeheader()
        writer.writerows(rows)
    return path


def archive(folder: Path, identities: list[str]) -> Path:
    day = folder / "singer-events" / "date=2026-11-20"
    day.mkdir(parents=True)
    lines = [json.dumps({"header": {"id": identity}, "payload": {"cls_type": "run"}}) for identity in identities]
    (day / "a.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


def test_the_same_rows_are_complete(tmp_path: Path) -> None:
    assert "all 2 airports" in check.csv_is_complete(load(tmp_path / "a.csv", SOURCE), SOURCE, "airports")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (SOURCE[:1], "1 records where the source has 2"),
        ([*SOURCE, SOURCE[0]], "3 records where the source has 2"),
        ([SOURCE[0], {**SOURCE[1], "latitude": 31.6}], r"record 2: latitude is '31\.6', the source has 31\.5"),
    ],
)
def test_other_rows_are_wrong(tmp_path: Path, rows: list[data.Row], reason: str) -> None:
    with pytest.raises(check.Wrong, match=reason):
        check.csv_is_complete(load(tmp_path / "a.csv", rows), SOURCE, "airports")


@pytest.mark.parametrize(
    ("acked", "archived", "reason"),
    [(3, 3, ""), (2, 3, "not handled every event"), (3, 2, "3 events where")],
    ids=["all", "one waits", "the archive lacks one"],
)
def test_every_event_was_handled(tmp_path: Path, acked: int, archived: int, reason: str) -> None:
    identities, url = [new_id() for _ in range(3)], f"local:{tmp_path / 'topics'}"
    with open_topics(url) as home, home.topic("singer-events") as topic:
        topic.publish(Message(id=identity, body=b"{}") for identity in identities)
        topic.ack("balog", topic.receive("balog", limit=acked))
    folder = archive(tmp_path, identities[:archived])
    if reason:
        with pytest.raises(check.Wrong, match=reason):
            check.every_event_was_handled(folder, url, "balog")
    else:
        assert "same 3 events" in check.every_event_was_handled(folder, url, "balog")


def test_series_add_up_to_the_records(tmp_path: Path) -> None:
    lines = ["# TYPE record_count counter", 'record_count_total{stream="a"} 3.0', 'record_count_total{stream="b"} 4.0']
    (tmp_path / "a.prom").write_text("\n".join([*lines, 'other_total{a="b"} 7.0', ""]))
    assert "all 7 records of the syncs, in 2 series" in check.records_are_counted(tmp_path / "a.prom", 7)
    with pytest.raises(check.Wrong, match="adds up to 7, the syncs carried 8"):
        check.records_are_counted(tmp_path / "a.prom", 8)


class TestReceiver:
    def tell(self, receiver: Receiver, action: str, **more: object) -> int:
        request = {"routing_key": receiver.routing_key, "event_action": action, "dedup_key": "balog/x", **more}
        return receiver.take("/v2/enqueue", {}, json.dumps({"payload": {"summary": "it broke"}, **request}).encode())

    def call_back(self, receiver: Receiver, identity: str, body: bytes, signed: bytes) -> int:
        key = base64.b64decode(receiver.secret.removeprefix("whsec_"))
        mark = base64.b64encode(hmac.digest(key, f"{identity}.1.".encode() + signed, hashlib.sha256)).decode()
        headers = {"webhook-id": identity, "webhook-timestamp": "1", "webhook-signature": f"v1,{mark}"}
        return receiver.take("/runs", headers, body)

    @pytest.fixture
    def receiver(self) -> Iterator[Receiver]:
        with Receiver() as receiver:
            yield receiver

    def test_an_incident_is_open_from_trigger_to_resolve(self, receiver: Receiver) -> None:
        self.tell(receiver, "trigger")
        assert "it broke" in check.incident_is_open(receiver, "balog/x")
        with pytest.raises(check.Wrong, match="open are"):
            check.alerts_are_settled(receiver, "balog/x")
        self.tell(receiver, "resolve")
        assert "trigger, resolve" in check.alerts_are_settled(receiver, "balog/x")
        with pytest.raises(check.Wrong, match="expected balog/x"):
            check.incident_is_open(receiver, "balog/x")

    def test_an_incident_that_never_was_is_not_settled(self, receiver: Receiver) -> None:
        self.tell(receiver, "resolve")
        with pytest.raises(check.Wrong, match="told of balog/x"):
            check.alerts_are_settled(receiver, "balog/x")

    def test_each_run_has_to_be_called_back(self, receiver: Receiver, tmp_path: Path) -> None:
        runs = archive(tmp_path, ["LG1", "LG2"])
        assert self.call_back(receiver, "LG1", b"{}", b"{}") == 202
        with pytest.raises(check.Wrong, match="1 callbacks of 2 runs"):
            check.runs_were_called_back(receiver, runs, "/runs")
        self.call_back(receiver, "LG2", b"{}", b"{}")
        assert "all 2 runs" in check.runs_were_called_back(receiver, runs, "/runs")

    def test_a_callback_that_was_changed_on_its_way_is_refused(self, receiver: Receiver, tmp_path: Path) -> None:
        assert self.call_back(receiver, "LG1", b'{"a":2}', b'{"a":1}') == 400
        with pytest.raises(check.Wrong, match="not signed"):
            check.runs_were_called_back(receiver, archive(tmp_path, ["LG1"]), "/runs")


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
def test_a_page_that_asks_another_server_is_wrong(tmp_path: Path, asking: str) -> None:
    (tmp_path / "report.html").write_text(f"<html>{asking}</html>")
    with pytest.raises(check.Wrong, match="needs more than itself"):
        check.page_is_whole(tmp_path / "report.html")


def test_a_page_with_all_of_it_inside_passes(tmp_path: Path) -> None:
    inside = '<link rel="icon" href="data:,"><a href="https://example.org">more</a><a href="#runs">runs</a>'
    style = "<style>b { color: red }</style><script>const text = \"url('x')\"</script>"
    (tmp_path / "report.html").write_text(f"<html>{inside}{style}</html>\n")
    assert "opens offline" in check.page_is_whole(tmp_path / "report.html")


HONOLULU: list[data.Row] = [{"iata": "HNL", "state": "HI", "latitude": 21.3, "longitude": -157.9}]


class TestAirports:
    def delivered(self, folder: Path, rows: list[data.Row], acked: bool) -> str:
        with open_topics(f"local:{folder}") as home:
            home.topic("airports").publish(
                Message(id=event.header.id, body=encode(event))
                for event in (Event.new("airport", {"cls_type": "airport", **row}) for row in rows)
            )
            refused = home.topic("failed_events")
            refused.publish([Message(id=new_id(), body=b"{}")])
            got = refused.receive("replay")
            if acked:
                refused.ack("replay", got)
        return check.airports_are_delivered(f"local:{folder}", HONOLULU)

    def test_all_of_them_and_nothing_refused_is_left(self, tmp_path: Path) -> None:
        assert "all 1 airports" in self.delivered(tmp_path, HONOLULU, acked=True)

    def test_one_that_is_missing_or_twice_is_wrong(self, tmp_path: Path) -> None:
        for number, rows in enumerate([[{**HONOLULU[0], "iata": "ITO"}], [*HONOLULU, *HONOLULU]]):
            with pytest.raises(check.Wrong, match=r"\d airports where the source has 1"):
                self.delivered(tmp_path / str(number), rows, acked=True)

    def test_one_that_is_still_refused_is_wrong(self, tmp_path: Path) -> None:
        with pytest.raises(check.Wrong, match="refused"):
            self.delivered(tmp_path, HONOLULU, acked=False)

    def test_one_that_was_not_called_back_is_wrong(self) -> None:
        with Receiver() as receiver, pytest.raises(check.Wrong, match="/hawaii: callbacks of"):
            check.airports_were_called_back(receiver, HONOLULU, "/hawaii", "HI")
