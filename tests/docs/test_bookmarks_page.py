"""The states that the page about bookmarks shows are states."""

import json

from balog.tap.bookmarks import state_of
from tests.documentation import blocks, docs_page


def test_the_states_that_it_shows_are_states() -> None:
    page = blocks(docs_page("bookmarks.md").read_text(encoding="utf-8"))
    states = [json.loads(block.text) for block in page if block.language == "json"]
    assert len(states) == 2
    for state in states:
        assert state_of(state, ["contacts", "accounts", "notes"], log=object()).as_json() == state
