"""The how-to pages on sources over HTTP: their blocks run as they are, against the example's shop."""

from itertools import pairwise
from pathlib import Path

import pytest

from examples.shop_server import Shop
from tests.documentation import blocks, docs_page, matches, paste


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("retry-requests", ["5", "200", "186"]),
        ("page-through-an-api", []),
        ("read-by-time-windows", []),
        ("send-requests-in-parallel", []),
        ("sign-in-with-oauth", []),
    ],
)
def test_the_blocks_of_a_page_run(page: str, expected: list[str], tmp_path: Path) -> None:
    text = docs_page(f"{page}.md").read_text(encoding="utf-8")
    with Shop(30) as shop:
        page_blocks = blocks(text.replace("https://api.example.com", shop.url))
        names = [f"python {block.name}" for block in page_blocks if block.name]
        printed = paste([*page_blocks, *blocks("```sh\n" + "\n".join(names) + "\n```\n")], tmp_path)
        if page == "sign-in-with-oauth":
            assert shop.refresh_token in (tmp_path / "tokens.json").read_text()
    *_, last = printed.values()
    assert "example-key" not in last
    assert [line for line in last.splitlines() if not line.startswith("{")][: len(expected)] == expected
    for block, following in pairwise(page_blocks):
        if block in printed and following.language == "text":
            assert matches(following.text, printed[block]), printed[block]
