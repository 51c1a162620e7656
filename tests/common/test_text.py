import pytest

from balog.common.text import counted, cut, one_line, printable


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


@pytest.mark.parametrize(
    ("text", "line"),
    [("plain", "plain"), (" a\n\tb ", "a b"), ("\x1b[31mred\x1b[0m", "[31mred [0m"), ("\u202eleft", "left"), ("", "")],
)
def test_a_text_of_others_is_one_line_without_control_characters(text: str, line: str) -> None:
    assert one_line(text) == line
    assert printable(text).isprintable()


def test_a_long_text_is_cut_to_its_length_with_an_ellipsis() -> None:
    assert [cut("abcd", 4), cut("abcde", 4)] == ["abcd", "abc…"]
