"""The page on watching names what each kind of monitor needs."""

from balog.watch.config.monitors import KINDS
from tests.documentation import docs_page

PAGE = docs_page("watching.md").read_text(encoding="utf-8")


def test_it_names_what_each_kind_needs() -> None:
    table = PAGE.partition("| kind | needs |")[2].partition("## ")[0]
    assert all(f"`{kind}`" in table for kind in KINDS)
