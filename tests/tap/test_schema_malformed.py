"""Junk for schemas: whatever a file holds, it gives a schema or one SchemaError, of one line."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.tap.errors import SchemaError
from balog.tap.schema import check, from_xml, schema_of, xsd

DATA = Path(__file__).parents[1] / "data" / "tap"
_ORDERS = (DATA / "orders.xsd").read_text()
_TOKENS = sorted(set(re.findall(r'"[^"<>]*"|</?xs:\w+|/?>|\w+=', _ORDERS)))

_KEYWORDS = st.sampled_from(
    [
        "type",
        "properties",
        "items",
        "allOf",
        "anyOf",
        "$ref",
        "$id",
        "id",
        "$defs",
        "enum",
        "required",
        "not",
        "$anchor",
    ]
)
_LEAVES = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        -1,
        1.5,
        "",
        "#",
        "#/",
        "#/$defs/a",
        "#/properties/a",
        "#a",
        "object",
        "string",
        "x.json",
        "a:b",
    ]
)
_JUNK = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYWORDS | st.just("a"), inner, max_size=4),
    max_leaves=20,
)


def _given_or_refused(give: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    try:
        return give()
    except SchemaError as error:
        said = str(error)
    assert said
    assert "\n" not in said
    return None


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(_KEYWORDS, _JUNK, max_size=6))
def test_json_that_is_no_schema(document: dict[str, Any]) -> None:
    found = _given_or_refused(lambda: schema_of(document, lambda: None, "things"))
    if found is not None:
        check(found)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_an_xml_schema_with_one_piece_out_of_place(tmp_path_factory: Any, data: Any) -> None:
    folder = tmp_path_factory.getbasetemp()
    for name in ("payments.xsd", "common.xsd"):
        (folder / name).write_bytes((DATA / name).read_bytes())
    text = _ORDERS
    for _ in range(data.draw(st.integers(1, 2))):
        old, new = data.draw(st.sampled_from(_TOKENS)), data.draw(st.sampled_from([*_TOKENS, "", "&x;", '"-1"', "<"]))
        places = [found.start() for found in re.finditer(re.escape(old), text)]
        if places:
            at = data.draw(st.sampled_from(places))
            text = text[:at] + new + text[at + len(old) :]
    path = folder / "junk.xsd"
    path.write_text(text)
    found = _given_or_refused(lambda: xsd(path, element="orders")(None, "x"))
    if found is not None:
        check(found)
        assert isinstance(from_xml((DATA / "orders.xml").read_bytes(), found), dict)


def test_a_tap_with_a_file_for_a_schema_imports_no_more_than_that_needs() -> None:
    code = (
        "import sys; from balog.tap.schema import json_file, resolve, flatten; flatten(resolve({}));"
        "print(*(name for name in sys.modules if name in {'urllib.request', 'http.client', 'pyexpat', 'sqlglot', "
        "'jsonschema_rs', 'balog.registry'} or name.startswith('balog.tap.schema.xml')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == []
