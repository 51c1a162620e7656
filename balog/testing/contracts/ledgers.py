"""The contract of a ledger."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given, settings
from hypothesis import strategies as st

from balog.consumers.ledgers.ledger import Ledger, LedgerEntry
from balog.event.ids import new_id

OpenLedger = Callable[..., Ledger]
"""Opens the same ledger anew; takes a window in seconds."""

_names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
_reasons = st.sampled_from(["", "ValueError: no", "ünï\ncode"])


class LedgerContract:
    """Tests that every ledger passes. Inherit it and define the fixture ``open_ledger``, an :data:`OpenLedger`."""

    def test_an_empty_ledger_knows_nothing(self, open_ledger: OpenLedger) -> None:
        assert not open_ledger().known("g", ["LGa", "LGb"])
        assert not open_ledger().known("g", [])

    def test_entries_are_known_by_event_and_consumer(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()
        ledger.record(
            "g", [LedgerEntry("LGa", "one"), LedgerEntry("LGa", "two", "ValueError: no"), LedgerEntry("LGb", "one")]
        )
        assert ledger.known("g", ["LGa", "LGb", "LGc"]) == {
            "LGa": {"one": "", "two": "ValueError: no"},
            "LGb": {"one": ""},
        }
        assert ledger.known("g", ["LGb"]) == {"LGb": {"one": ""}}

    def test_groups_know_nothing_of_each_other(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()
        ledger.record("g", [LedgerEntry("LGa", "one")])
        ledger.record("h", [LedgerEntry("LGa", "two")])
        assert ledger.known("g", ["LGa"]) == {"LGa": {"one": ""}}
        assert ledger.known("h", ["LGa"]) == {"LGa": {"two": ""}}
        assert not ledger.known("i", ["LGa"])

    def test_a_later_entry_replaces_an_earlier_one_of_the_same_pair(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()
        ledger.record("g", [LedgerEntry("LGa", "one", "failed"), LedgerEntry("LGa", "two", "failed")])
        ledger.record("g", [LedgerEntry("LGa", "one", "failed otherwise"), LedgerEntry("LGa", "one")])
        assert ledger.known("g", ["LGa"]) == {"LGa": {"one": "", "two": "failed"}}

    def test_recording_nothing_changes_nothing(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()
        ledger.record("g", [])
        assert not ledger.known("g", ["LGa"])

    def test_a_closed_ledger_opens_again(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()
        ledger.record("g", [LedgerEntry("LGa", "one")])
        ledger.close()
        assert ledger.known("g", ["LGa"]) == {"LGa": {"one": ""}}
        ledger.record("g", [LedgerEntry("LGb", "one")])
        assert ledger.known("g", ["LGb"]) == {"LGb": {"one": ""}}

    def test_thousands_of_entries_are_recorded_and_looked_up_at_once(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()
        ids = [new_id() for _ in range(2500)]
        ledger.record("g", [LedgerEntry(id, "one") for id in ids[::2]])
        assert ledger.known("g", ids) == {id: {"one": ""} for id in ids[::2]}

    def test_threads_share_a_ledger(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()

        def work(name: str) -> None:
            for number in range(20):
                ledger.record("g", [LedgerEntry(f"LG{number}", name)])
                ledger.known("g", [f"LG{number}"])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, [f"c{number}" for number in range(4)]))
        every = {f"c{number}": "" for number in range(4)}
        assert ledger.known("g", [f"LG{number}" for number in range(20)]) == {f"LG{n}": every for n in range(20)}

    def test_it_is_a_dict_by_group_event_and_consumer(self, open_ledger: OpenLedger) -> None:
        ledger = open_ledger()

        @settings(deadline=None, max_examples=25)
        @given(st.lists(st.lists(st.tuples(st.integers(0, 3), _names, _reasons), max_size=5), max_size=4))
        def check(batches: list[list[tuple[int, str, str]]]) -> None:
            group, ids = new_id(), [new_id() for _ in range(4)]
            model: dict[str, dict[str, str]] = {}
            for batch in batches:
                ledger.record(group, [LedgerEntry(ids[number], name, reason) for number, name, reason in batch])
                for number, name, reason in batch:
                    model.setdefault(ids[number], {})[name] = reason
            assert ledger.known(group, ids) == model

        check()


class DurableLedgerContract(LedgerContract):
    """Tests that a ledger passes, too, if it outlives its process."""

    def test_entries_outlive_the_ledger_object(self, open_ledger: OpenLedger) -> None:
        open_ledger().record("g", [LedgerEntry("LGa", "one")])
        assert open_ledger().known("g", ["LGa"]) == {"LGa": {"one": ""}}

    def test_entries_that_need_not_be_durable_outlive_the_ledger_object(self, open_ledger: OpenLedger) -> None:
        """A power failure may undo them, the end of the process may not."""
        ledger = open_ledger()
        ledger.record("g", [LedgerEntry("LGa", "one")], durable=False)
        assert open_ledger().known("g", ["LGa"]) == {"LGa": {"one": ""}}
