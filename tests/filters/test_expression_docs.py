"""Each example in docs/reference/expressions.md gives what it says."""

import re

import pytest

from balog.common.errors import ConfigError
from balog.event import decode
from balog.filters import Expression
from balog.filters.functions import FUNCTIONS
from tests.documentation import docs_page

PAGE = docs_page("expressions.md").read_text()
EVENT = decode(re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)[1])
LINES = [line for block in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
CELLS = re.findall(r"\| `([^`|]+)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", LINES)
def test_an_example_gives_what_its_comment_says(line: str) -> None:
    text, expected = re.fullmatch(r"(.*?) +-- (.*)", line).groups()
    if expected.startswith("error: "):
        with pytest.raises(ConfigError, match=re.escape(expected.removeprefix("error: "))):
            Expression(text)
    else:
        value = Expression(line, gives="any").evaluate(EVENT)
        assert value is {"true": True, "false": False, "NULL": None}[expected]


@pytest.mark.parametrize("text", CELLS)
def test_an_example_of_a_function_is_true(text: str) -> None:
    assert Expression(text).matches(EVENT)


def test_the_page_names_every_function() -> None:
    assert len(CELLS) == 11
    assert [name for name in FUNCTIONS if f"`{name}" not in PAGE] == []
