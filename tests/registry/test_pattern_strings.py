"""Texts for examples: of patterns and of formats."""

import re

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.registry.comparing.strings import FORMAT_EXAMPLES, matching_strings

PATTERNS = ["^[a-z]{3}-\\d+$", "a|b", "^(ab)?c*$", "^[^a]$", "\\w+@\\w+", "^\\S{2,}$", "[A-F0-9]{8}"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_texts_of_a_pattern_match_it(pattern: str) -> None:
    texts = matching_strings(pattern)

    assert texts
    assert all(re.search(pattern, text) for text in texts)


@given(st.text(max_size=20))
def test_what_is_no_pattern_gives_none_and_raises_nothing(pattern: str) -> None:
    assert len(matching_strings(pattern)) <= 4


@pytest.mark.parametrize("name", FORMAT_EXAMPLES)
def test_the_text_of_a_format_has_it(name: str) -> None:
    assert jsonschema_rs.is_valid({"format": name}, FORMAT_EXAMPLES[name], validate_formats=True)
