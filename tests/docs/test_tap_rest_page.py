"""The page about streams of REST endpoints has all settings, and its pagings exist."""

import re

from balog.tap.endpoints import RestStream
from balog.tap.paging.named import named_paging
from tests.documentation import docs_page

TEXT = docs_page("tap-rest.md").read_text(encoding="utf-8")


def test_it_has_all_settings_and_only_pagings_that_exist() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", TEXT, re.MULTILINE)
    mentioned = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(RestStream.own_settings) <= mentioned

    pagings = re.findall(r'^\| `"([^"]+)"` \|', TEXT, re.MULTILINE)
    assert len(pagings) == 6
    for text in pagings:
        named_paging(text)
