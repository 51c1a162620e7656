"""The page of all types: what it says, and that a browser shows it on a desk and on a phone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from balog.registry import Registry, Schema, open_registry
from balog.registry.page import list_fields, render

ORDER = {
    "type": "object",
    "description": "An order <b>as placed</b>.",
    "required": ["id", "lines"],
    "properties": {
        "cls_type": {"const": "order"},
        "id": {"type": "string", "format": "uuid", "description": "Of the shop."},
        "currency": {"enum": ["EUR", "USD"]},
        "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/line"}},
        "tags": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 20}},
        "parent": {"$ref": "#"},
    },
    "$defs": {"line": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}}}},
    "examples": [{"cls_type": "order", "id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "lines": [{"sku": "a"}]}],
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with open_registry(str(tmp_path_factory.mktemp("registry"))) as found:
        found.register(Schema("order", "1.0.0", "json", json.dumps(ORDER).encode()))
        more = {**ORDER, "properties": {**ORDER["properties"], "note": {"type": "string"}}}  # type: ignore[dict-item]
        found.register(Schema("order", "1.1.0", "json", json.dumps(more).encode()))
        wide = {"properties": {f"a_field_with_a_rather_long_name_{n}": {"pattern": "x" * 200} for n in range(5)}}
        found.register(Schema("Wide-" + "type" * 20, "1.0.0", "json", json.dumps(wide).encode()))
        yield found


def test_fields_are_told_with_their_paths_and_rules() -> None:
    rows = {field.path: field[1:] for field in list_fields(ORDER)}

    assert rows["id"] == ("string", True, "uuid", "Of the shop.")
    assert rows["currency"] == ("string", False, 'one of "EUR", "USD"', "")
    assert rows["lines"] == ("array of object", True, "≥ 1 items", "")
    assert rows["lines[].sku"] == ("string", True, "", "")
    assert rows["tags.*"] == ("string", False, "≤ 20 characters", "")
    assert rows["parent"][0] == "object"
    assert "parent.parent" not in rows  # a type within itself is told once


def test_a_schema_that_refers_to_itself_or_to_nothing_ends() -> None:
    assert list_fields({"$ref": "#"}) == []
    assert list_fields({"properties": {"a": {"$ref": "#/properties/a"}}})[0].path == "a"
    assert list_fields({"properties": {"a": True, "b": False}})[1].kind == "nothing"


def test_the_page_has_every_type_and_what_changed(registry: Registry) -> None:
    page = render(registry, "Types of the shop")

    for type in registry.types():
        assert f'id="{type}"' in page
    assert "An order &lt;b&gt;as placed&lt;/b&gt;." in page
    assert "<b>as placed" not in page
    assert "f81d4fae-7dec-11d0-a765-00a0c91e6bf6" in page
    changed = page.partition("<b>1.1.0</b>")[2].partition("</li>")[0]
    assert "note" in changed
    assert "http" not in page.replace("https://json-schema.org", "").replace("http://json-schema.org", "")


def test_a_type_that_cannot_be_read_is_told_among_the_others(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "1.0.0.json").write_text("{")
    with open_registry(str(tmp_path)) as registry:
        page = render(registry)

    assert "not JSON" in page
    assert 'id="metric"' in page


@pytest.mark.service
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_browser_shows_it_and_asks_for_nothing(
    browser: Any, registry: Registry, tmp_path: Path, width: int, scheme: str
) -> None:
    (tmp_path / "types.html").write_text(render(registry), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, requests, messages = context.new_page(), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto((tmp_path / "types.html").as_uri())

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.click("nav >> text=order")
    assert page.locator("#order h2").is_visible()
    assert page.locator("#order tbody tr").first.inner_text().startswith("cls_type")
    assert len(requests) == 1
    assert messages == []
    context.close()
