import pytest

from balog.common.counts import counted


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ((0, "event", "were"), "0 events were"),
        ((1, "event", "were"), "1 event was"),
        ((2, "file", "stay"), "2 files stay"),
        ((1, "file", "stay"), "1 file stays"),
        ((1, "dead letter"), "1 dead letter"),
        ((12_000, "line", "are"), "12000 lines are"),
        ((12_000, "line", "are", "12,000"), "12,000 lines are"),
    ],
)
def test_a_count_has_its_noun_and_verb_in_their_number(given: tuple[int, str], line: str) -> None:
    assert counted(*given) == line
