import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from balog.common.errors import ConfigError
from balog.tap.bookmarks import State, read_state, state_of

STREAMS = ["contacts", "deals"]


class Log:
    def __init__(self) -> None:
        self.warnings: list[tuple[str, dict[str, Any]]] = []

    def warning(self, message: str, **fields: Any) -> None:
        self.warnings.append((message, fields))


def read(document: Any, log: Log | None = None) -> dict[str, Any]:
    return state_of(document, STREAMS, "state.json", log or Log()).as_json()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state.json"


class TestForms:
    def test_singer_pythons_is_taken_as_it_is(self) -> None:
        document = {"bookmarks": {"contacts": {"at": "2026-11-20"}}, "currently_syncing": "deals", "mine": {"a": [1]}}
        log = Log()
        assert read(document, log) == document
        assert log.warnings == [("The state has unknown keys; they are kept", {"keys": ["mine"]})]

    def test_an_empty_one_is_a_first_run(self) -> None:
        log = Log()
        assert read({}, log) == {"bookmarks": {}}
        assert log.warnings == []

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda inner: {"completed": {"singer_state": inner}, "partial": {}},
            lambda inner: {"singer_state": inner},
            lambda inner: {"type": "STATE", "value": inner},
        ],
    )
    def test_wrappings_are_looked_through(self, wrap: Any) -> None:
        inner = {"bookmarks": {"contacts": {"at": "2026-11-20"}}}
        assert read(wrap(inner)) == inner

    def test_the_meltano_sdks_is_read(self) -> None:
        said = {
            "contacts": {
                "replication_key": "at",
                "replication_key_value": "2026-11-20",
                "starting_replication_value": "2026-11-01",
                "replication_key_signpost": "2026-11-21",
                "mine": 1,
            },
            "deals": {},
        }
        assert read({"bookmarks": said})["bookmarks"] == {"contacts": {"at": "2026-11-20", "mine": 1}, "deals": {}}

    def test_of_the_sdks_partitions_the_smallest_counts(self) -> None:
        partitions = [
            {"context": {"id": n}, "replication_key": "at", "replication_key_value": f"2026-11-2{n}"} for n in (3, 1, 2)
        ]
        assert read({"bookmarks": {"contacts": {"partitions": partitions}}})["bookmarks"] == {
            "contacts": {"at": "2026-11-21"}
        }

    @pytest.mark.parametrize("other", [{"context": {}}, {"replication_key": "at", "replication_key_value": 5}, 7])
    def test_partitions_that_have_no_smallest_have_no_bookmark(self, other: Any) -> None:
        one = {"context": {}, "replication_key": "at", "replication_key_value": "2026-11-20"}
        assert read({"bookmarks": {"contacts": {"partitions": [one, other]}}})["bookmarks"] == {"contacts": {}}

    def test_the_sdks_markers_of_an_unfinished_run_say_nothing(self) -> None:
        markers = {"replication_key": "at", "replication_key_value": "2026-11-20", "Note": "not resumable"}
        assert read({"bookmarks": {"contacts": {"progress_markers": markers}}})["bookmarks"] == {"contacts": {}}

    def test_numbers_keep_their_last_digit(self, file: Path) -> None:
        file.write_text(
            '{"bookmarks": {"contacts": {"id": 12345678901234567890.125, "no": 0.1, "big": 99999999999999999999}}}'
        )
        state = read_state(file, STREAMS)
        assert state.get("contacts", "id") == Decimal("12345678901234567890.125")
        assert state.get("contacts", "no") == 0.1
        assert state.get("contacts", "big") == 99999999999999999999


class TestRefused:
    def test_the_state_of_another_tap_is_named(self) -> None:
        with pytest.raises(
            ConfigError,
            match=r"state.json: \$.bookmarks: .*another tap: it has invoices, users; the streams are contacts, deals",
        ):
            read({"bookmarks": {"users": {"id": 1}, "invoices": {}}})

    @pytest.mark.parametrize(
        ("document", "place"),
        [
            ([], r"\$: expected a state, an object, not an array"),
            ("x", r"\$: .* not a string"),
            ({"type": "STATE", "value": 5}, r"\$\.value: .* not an integer"),
            ({"bookmarks": []}, r"\$\.bookmarks: "),
            ({"bookmarks": {"contacts": "2026"}}, r"\$\.bookmarks\['contacts'\]: expected an object"),
            (
                {"completed": {"singer_state": {"bookmarks": 1}}},
                r"\$\.completed\.singer_state\.bookmarks: expected an object",
            ),
        ],
    )
    def test_another_shape_is_refused_with_the_place(self, document: Any, place: str) -> None:
        with pytest.raises(ConfigError, match=place):
            read(document)

    def test_a_key_that_is_there_twice_is_refused_with_the_place(self, file: Path) -> None:
        file.write_text('{"bookmarks": {"contacts": {"at": 1, "at": 2}}}')
        with pytest.raises(ConfigError, match=r"\$\.bookmarks\.contacts\.at: this key is there twice"):
            read_state(file, STREAMS)

    @pytest.mark.parametrize("text", ["", "{", '{"bookmarks": {}}\n{"bookmarks": {}}\n'])
    def test_what_is_no_json_is_refused_with_the_place(self, file: Path, text: str) -> None:
        file.write_text(text)
        with pytest.raises(ConfigError, match=r"state\.json"):
            read_state(file, STREAMS)

    def test_a_file_that_is_not_there(self, file: Path) -> None:
        with pytest.raises(ConfigError, match=r"state\.json: cannot be read"):
            read_state(file, STREAMS)


class TestTold:
    def test_a_few_unknown_streams_are_kept(self) -> None:
        log = Log()
        document = {"bookmarks": {"contacts": {"at": 1}, "old": {"at": 2}}}
        assert read(document, log) == document
        assert log.warnings[0][1] == {"streams": ["old"]}

    def test_a_state_without_bookmarks(self) -> None:
        log = Log()
        assert read({"contacts": "2026-11-20"}, log) == {"bookmarks": {}, "contacts": "2026-11-20"}
        assert "no bookmarks" in log.warnings[0][0]

    def test_a_stream_at_which_a_run_was_that_there_is_not(self) -> None:
        log = Log()
        assert "currently_syncing" not in read({"bookmarks": {}, "currently_syncing": "old"}, log)
        assert log.warnings[0][1] == {"stream": "old"}

    def test_the_taps_logger_is_used_when_none_is_given(self, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
        file.write_text(json.dumps({"bookmarks": {"contacts": {}, "old": {}}}))
        read_state(file, STREAMS)
        assert "old" in capfd.readouterr().err


class TestState:
    def test_what_is_given_and_what_is_handed_out_are_copies(self) -> None:
        given: dict[str, Any] = {"bookmarks": {"contacts": {"at": [1]}}}
        state = State(given)
        state.set("contacts", "no", 1)
        state.as_json()["bookmarks"].clear()
        state.entry("contacts")["at"].append(2)
        assert given == {"bookmarks": {"contacts": {"at": [1]}}}
        assert state.as_json() == {"bookmarks": {"contacts": {"at": [1], "no": 1}}}

    def test_none_takes_away(self) -> None:
        state = State({"bookmarks": {"contacts": {"at": 1}}, "currently_syncing": "contacts"})
        state.set("contacts", "at", None)
        state.mark_syncing(None)
        assert state.as_json() == {"bookmarks": {"contacts": {}}}
        assert state.has("contacts")
        assert not state.has("deals")
