"""``.ci/prose.py`` finds sentences as a reader does, and reports the long ones."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ci_scripts import ci_script

PROSE = ci_script("prose")


def words(text: str) -> list[int]:
    """Return the number of words of each sentence."""
    return [each.words for each in PROSE.sentences(text)]


@pytest.fixture
def prose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The checker, for the pages of a temporary folder."""
    monkeypatch.setattr(PROSE, "ROOT", tmp_path)
    monkeypatch.setattr(PROSE, "CHECKED", ("docs",))
    (tmp_path / "docs").mkdir()
    return PROSE


class TestSentences:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("One two. Three!\nFour five six?", [2, 1, 3]),
            ("One\ntwo three", [3]),
            ("- one two\n- three\n\n1. four", [2, 1, 1]),
            ("# A heading of words\n\nOne.", [1]),
            ("One two:\n\n```text\nmany words. In code\n```\n\nThree.", [2, 1]),
            ("| a table | has words |\n|---|---|\n| one two | three |\n\nOne.", [1]),
            ("Run `balog run -- tap.py` now.", [3]),
            ("Set `a.b`. Then go.", [2, 2]),
            ("See [the page of sinks](a.md#b.c) now.", [6]),
            ("One (e.g. two) three, i.e. four. Five.", [6, 1]),
            ("Wait 1.5 seconds. gzip is found.", [3, 3]),
            ("[One](a.md): two · three four", [2, 2]),
            ("One – two.", [2]),
            ("", []),
        ],
    )
    def test_words_of_each_sentence(self, text: str, expected: list[int]) -> None:
        assert words(text) == expected

    @given(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    def test_sentences_are_found_wherever_the_lines_break(self, lengths: list[int]) -> None:
        text = " ".join("Word" + " word" * (length - 1) + "." for length in lengths)

        assert words(text) == words(text.replace(" ", "\n")) == lengths

    def test_a_sentence_has_the_line_of_its_paragraph(self) -> None:
        assert [each.line for each in PROSE.sentences("# A\n\nOne.\n\n- two\n- three")] == [3, 5, 6]


class TestCheck:
    def page(self, prose: ModuleType, text: str) -> list[str]:
        """Return the problems of a page with this text."""
        path = prose.ROOT / "docs" / "page.md"
        path.write_text(text, encoding="utf-8")
        return list(prose.check(prose.read_page(path)))

    def test_a_sentence_of_40_words_may_stand(self, prose: ModuleType) -> None:
        assert self.page(prose, "word " * 40 + ".\n\nShort. Short. Short.") == []

    def test_a_sentence_of_41_words_is_reported_with_its_line(self, prose: ModuleType) -> None:
        (problem,) = self.page(prose, "Short. Short.\n\n" + "word " * 41 + ".")

        assert problem.startswith("docs/page.md:3: 41 words in one sentence, more than 40: word word")
        assert len(problem) < 200

    def test_the_mean_of_a_page(self, prose: ModuleType) -> None:
        assert self.page(prose, "word " * 18) == []
        assert self.page(prose, "word " * 19) == ["docs/page.md: 19.0 words a sentence, more than 18"]

    def test_the_command_prints_problems_and_fails(
        self, prose: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["prose.py"])
        self.page(prose, "Short.")
        assert prose.main() == 0
        self.page(prose, "word " * 19)

        assert prose.main() == 1
        assert capsys.readouterr().out == "docs/page.md: 19.0 words a sentence, more than 18\n"


def test_plain_words_read_easier_than_long_ones() -> None:
    pytest.importorskip("pyphen")

    def ease(text: str) -> float:
        return float(PROSE.Page("page", tuple(PROSE.sentences(text))).reading_ease)

    assert ease("The cat sat on the mat.") > 90
    assert ease("Institutional considerations necessitate comprehensive organizational documentation.") < 10
