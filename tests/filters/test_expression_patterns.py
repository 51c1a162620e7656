"""LIKE against the regular expression that it stands for, and which regular expressions are taken."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from balog.common.errors import ConfigError
from balog.filters import Expression
from balog.filters.patterns import MAX_PATTERN, MAX_SEARCHED, compile_regex, read_like


def as_regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    translated = "".join({"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern)
    return re.compile(translated, re.DOTALL | flags)


@given(st.text("ab%_\n\\.", max_size=8), st.text("ab\n\\.%", max_size=10))
@example("a%a", "a")
@example("%%", "")
@example("a_%_b", "aab")
@example("%ab%ab", "abab")
def test_like_matches_what_its_regular_expression_matches(pattern: str, text: str) -> None:
    assert read_like(pattern).matcher()(text) == (as_regex(pattern).fullmatch(text) is not None)


@given(st.text("aAbB%_", max_size=6), st.text("aAbB", max_size=8))
def test_ilike_does_so_without_regard_to_case(pattern: str, text: str) -> None:
    expected = as_regex(pattern, re.IGNORECASE).fullmatch(text) is not None
    assert read_like(pattern, folded=True).matcher()(text) == expected


@given(st.text("a%_!", max_size=8))
def test_an_escaped_text_is_like_itself_alone(text: str) -> None:
    match = read_like(re.sub("[%_!]", r"!\g<0>", text), "!").matcher()
    assert match(text)
    assert not match(text + "a")
    assert not match(text.replace("%", "x").replace("_", "x")) or text == text.replace("%", "x").replace("_", "x")


def test_like_takes_time_linear_in_the_text() -> None:
    """A regular expression with so many ``.*`` would not end."""
    assert not read_like("%a" * 100 + "%b_c%").matcher()("a" * 100_000)


@pytest.mark.parametrize(
    ("pattern", "escape"), [("a!", "!"), ("!a", "!"), ("a", ""), ("a", "!!"), ("a" * (MAX_PATTERN + 1), None)]
)
def test_a_like_pattern_that_says_nothing_is_refused(pattern: str, escape: str | None) -> None:
    with pytest.raises(ValueError, match=r"escape|ESCAPE|characters"):
        read_like(pattern, escape)


@pytest.mark.parametrize(
    "pattern",
    [
        "abc",
        "^tap_[a-z]+(?:\\.[a-z]+)?$",
        "(?i)timeout|refused",
        "\\d{1,3}(\\.\\d{1,3}){3}",
        "a{2}b{1,}c{1,2}?",
        "[^\\]\\[a-]+",
        "\\bword\\b",
        "\\x41\\u0042",
        "(a|b)?",
        "((ab)+)?",
        ".*",
    ],
)
def test_a_regular_expression_that_python_and_java_share_is_taken(pattern: str) -> None:
    compile_regex(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "a)",
        "*a",
        "a**",
        "a++",
        "a?+",
        "a{,2}",
        "a{x",
        "{",
        "[",
        "[]a]",
        "[[:alpha:]]",
        "[a&&b]",
        "[a--b]",
        "[z-a]",
        "(?P<name>a)",
        "(?<name>a)",
        "(?>a)",
        "(?#a)",
        "(?s)a",
        "a(?i)b",
        "(?(1)a)",
        "\\1",
        "\\Z",
        "\\z",
        "\\p{L}",
        "\\h",
        "\\v",
        "\\Qa\\E",
        "\\",
        "a{2}{3}",
        "(?=a)a",
        "a(?!b)",
        "(?<=a)b",
        "(?<!c)a",
        "(a+)+",
        "(a*)*b",
        "(a|aa)+",
        "(a?){20}",
        "((a+))*",
        "(a{1,5})+",
        "(a+){3}",
        "(\\d+\\.)+",
        "a$b",
        "(a|b$)\\n",
        "(a|$){2}",
        "a" * (MAX_PATTERN + 1),
    ],
)
def test_any_other_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compile_regex(pattern)
    with pytest.raises(ConfigError, match="column 15: "):
        Expression(f"channel RLIKE '{pattern}'")


@given(st.text("ab(|)*+?{}1,[]^-\\d.$", max_size=12), st.text("ab1-", max_size=12))
def test_any_pattern_is_taken_or_refused_and_one_that_is_taken_ends(pattern: str, text: str) -> None:
    try:
        regex = compile_regex(pattern)
    except ValueError:
        return
    assert regex.search(text) == (re.search(pattern, text, re.ASCII) is not None)


def test_rlike_knows_ascii_classes_and_finds_anywhere() -> None:
    for pattern, text, found in (
        (r"\d", "٣", False),
        (r"^\w+$", "é", False),
        ("b.", "abc", True),
        ("a.b", "a\nb", False),
    ):
        assert Expression(f"t RLIKE '{pattern}'", "row").matches({"t": text}) is found


def test_rlike_looks_at_the_beginning_of_a_long_text() -> None:
    expression = Expression("t RLIKE 'x'", "row")
    assert expression.matches({"t": "a" * (MAX_SEARCHED - 1) + "x"})
    assert not expression.matches({"t": "a" * MAX_SEARCHED + "x"})
