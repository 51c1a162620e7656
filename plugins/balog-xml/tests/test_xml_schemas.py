"""XML Schema and WSDL as JSON Schema: what is valid XML becomes a valid record. The oracle is the xmlschema package."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import jsonschema
import pytest
import xmlschema
from balog_xml import from_xml, parser, wsdl, xsd
from balog_xml.parser import parse
from balog_xml.simple import BUILT_IN, restricted
from balog_xml.values import scalar
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from balog.tap.errors import SchemaError
from balog.tap.schema import check

FOLDER = Path(__file__).parents[1]
DATA = FOLDER / "tests" / "data"
PUBLISHED = Path(xmlschema.__file__).parent / "schemas"
_OPEN = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'


def _is_valid(value: Any, schema: dict[str, Any]) -> bool:
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    return bool(validator.is_valid(value))


def _written(folder: Path, body: str) -> Path:
    path = folder / "main.xsd"
    path.write_text(f"{_OPEN}{body}</xs:schema>")
    return path


@pytest.fixture(scope="module")
def orders() -> dict[str, Any]:
    return xsd(DATA / "orders.xsd", element="orders")(None, "orders")


def test_the_document_is_valid_xml_and_its_record_valid_json(orders: dict[str, Any]) -> None:
    places = {"https://example.com/common": str(DATA / "common.xsd")}
    xmlschema.XMLSchema(str(DATA / "orders.xsd"), locations=places, defuse="never").validate(DATA / "orders.xml")
    check(orders)
    record = from_xml((DATA / "orders.xml").read_bytes(), orders)
    assert _is_valid(record, orders)
    first, second = record["order"]
    assert first["issued"] == "2026-11-22T08:00:00Z"
    assert first["due"] == "2026-12-01"
    assert first["address"] == {"lang": "fr", "_value_1": "c/o Ann ", "street": ["1, rue A", "2e étage"], "zip": None}
    assert first["line"][0]["sizes"] == [38, 40]
    assert (first["line"][0]["attr__sku"], first["line"][0]["sku"]) == (12, "A-1")
    assert first["line"][0]["weight"] is None
    assert first["total"] == {"_value_1": Decimal("1234567890.12"), "currency": "EUR"}
    assert (first["rev"], second["rev"]) == (1, -3)
    assert second["note"] == ["first", "second"]
    assert second["status"] is None


def test_elements_of_the_standard_library_give_the_same_record(orders: dict[str, Any]) -> None:
    data = (DATA / "orders.xml").read_bytes()
    assert from_xml(ElementTree.fromstring(data), orders)["order"][1] == from_xml(data, orders)["order"][1]


def test_what_an_order_is(orders: dict[str, Any]) -> None:
    order = orders["properties"]["order"]["items"]
    assert order["description"] == "An order of a customer."
    assert order["additionalProperties"] is True  # xs:any
    properties = order["properties"]
    assert "additionalProperties" not in properties["card"]
    assert properties["number"] == {"type": "integer", "minimum": 1}
    assert properties["status"] == {"type": ["null", "string"], "enum": ["open", "paid", None]}
    assert properties["card"]["type"] == ["null", "object"]
    assert properties["shipped"]["type"] == ["null", "array"]
    line = properties["line"]["items"]["properties"]
    assert line["quantity"] == {"type": "number", "exclusiveMinimum": 0, "maximum": 999.5}
    assert line["sku"] == {"type": "string", "maxLength": 12, "$comment": "pattern of XML Schema: [A-Z0-9-]+"}
    assert line["level"] == {"type": ["null", "integer", "string"]}
    assert line["part"]["properties"]["part"] == {"type": ["null", "object"]}


def test_levels_and_depth_say_where_it_ends() -> None:
    flat = xsd(DATA / "orders.xsd", element="order", levels=1)(None, "x")
    assert flat["properties"]["line"]["items"] == {"type": "object"}
    deep = xsd(DATA / "orders.xsd", type="Line", depth=3)(None, "x")
    assert "properties" in deep["properties"]["part"]["properties"]["part"]["properties"]["part"]


@pytest.mark.parametrize(
    ("said", "stream"),
    [({"element": "orders/order"}, "x"), ({"type": "Order"}, "x"), ({"element": "order"}, "x"), ({}, "order")],
)
def test_ways_to_say_the_record(said: dict[str, str], stream: str) -> None:
    assert "issued" in xsd(DATA / "orders.xsd", **said)(None, stream)["properties"]  # type: ignore[arg-type]


def test_what_an_operation_of_a_service_answers() -> None:
    whole = wsdl(DATA / "orders.wsdl", operation="ListOrders")(None, "x")
    assert list(whole["properties"]) == ["orders", "next"]
    order = wsdl(DATA / "orders.wsdl", operation="ListOrders/orders/order")(None, "x")
    assert order == wsdl(DATA / "orders.wsdl", type="Order")(None, "x")
    parts = wsdl(DATA / "orders.wsdl", operation="Count")(None, "x")
    assert parts["properties"]["count"]["maximum"] == 2**32 - 1
    assert "issued" in parts["properties"]["last"]["properties"]
    assert wsdl(DATA / "orders.wsdl", element="ListOrders")(None, "x")["properties"]["since"]["format"] == "date-time"


def test_a_wsdl_in_two_files(tmp_path: Path) -> None:
    text = (DATA / "orders.wsdl").read_text()
    begin, end = text.index("<wsdl:types>"), text.index("<wsdl:portType")
    head = text[:begin]
    for name in ("orders.xsd", "payments.xsd", "common.xsd"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    (tmp_path / "types.wsdl").write_text(f"{head}{text[begin:end]}</wsdl:definitions>")
    (tmp_path / "main.wsdl").write_text(f'{head}<wsdl:import namespace="x" location="types.wsdl"/>{text[end:]}')
    schema = wsdl(tmp_path / "main.wsdl", operation="ListOrders")(None, "x")
    assert schema == wsdl(DATA / "orders.wsdl", operation="ListOrders")(None, "x")


_KEY = (
    '<KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#" Id="k"><KeyName>a</KeyName><X509Data><X509IssuerSerial>'
    "<X509IssuerName>CN=a</X509IssuerName><X509SerialNumber>12345678901234567890</X509SerialNumber>"
    "</X509IssuerSerial></X509Data></KeyInfo>"
)
_FAULT = (
    '<Fault xmlns="http://schemas.xmlsoap.org/soap/envelope/"><faultcode xmlns="">a</faultcode>'
    '<faultstring xmlns="">no</faultstring></Fault>'
)


@pytest.mark.parametrize(
    ("name", "element", "document"),
    [
        ("DSIG/xmldsig-core-schema.xsd", "KeyInfo", _KEY),
        ("WSDL/wsdl.xsd", "definitions", (DATA / "orders.wsdl").read_text()),
        ("WSDL/soap-envelope.xsd", "Fault", _FAULT),
        ("XSD_1.0/XMLSchema.xsd", "complexType", (DATA / "common.xsd").read_text()),
    ],
)
def test_published_schemas(name: str, element: str, document: str) -> None:
    schema = xsd(PUBLISHED / name, element=element, levels=4)(None, "x")
    check(schema)
    nodes = [node for node in parse(document.encode()).iter() if node.tag.rpartition("}")[2] == element]
    assert nodes
    for node in nodes:
        record = from_xml(node, schema)
        assert record
        assert _is_valid(record, schema), record


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"<a>", "not XML: no element found, line 1"),
        (b"", "not XML: no element found, line 1"),
        (b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>", "declares the entity 'x', which is no"),
        (
            b"<!DOCTYPE a [<!ENTITY x 'y'><!ENTITY z '&x;&x;'>]><a>&z;</a>",
            "declares the entity 'z', which is not a short",
        ),
        (
            b"<!DOCTYPE a [<!ENTITY x '" + b"y" * 101 + b"'>]><a>&x;</a>",
            "declares the entity 'x', which is not a short",
        ),
        (b"<!DOCTYPE a [<!ENTITY % x SYSTEM 'http://example.com/x'> %x;]><a/>", "declares the entity 'x'"),
        (b"<!DOCTYPE a [<!ENTITY x '&#38;y;'>]><a/>", "declares the entity 'x'"),
        (
            b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>" + b"&x;" * 400_000 + b"</a>",
            "declares entities, and is larger than 1 MiB",
        ),
        (b"<a>" * 300, "nested deeper than 200, line 1"),
        (b"<a>" + b" " * (16 << 20) + b"</a>", "larger than 16 MiB"),
    ],
)
def test_documents_that_unfold_or_read_others_are_refused(document: bytes, reason: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(reason)):
        from_xml(document, {})


_A, _END = '<xs:element name="a" type="T"/><xs:complexType name="T">', "</xs:complexType>"


@pytest.mark.parametrize(
    ("body", "element", "reason"),
    [
        ('<xs:element name="a" type="b"/>', "a", "no complexType b is declared, line 1"),
        ('<xs:element name="a" type="xs:strin"/>', "a", "no complexType {http://www.w3.org/2001/XMLSchema}strin is"),
        ('<xs:element name="a" type="t:b"/>', "a", "the prefix of 't:b' is not declared, line 1"),
        ('<xs:element name="a"/>', "b", "there is no element 'b'; there are a"),
        ('<xs:element name="a" type="xs:int"/>', "a", "a has no inner elements; it is integer"),
        (
            f'{_A}<xs:sequence><xs:element name="b" type="xs:int"/></xs:sequence>{_END}',
            "a/c",
            "a has no element 'c'; it",
        ),
        ('<xs:redefine schemaLocation="x.xsd"/>', "a", "xs:redefine is not supported, line 1"),
        ('<xs:include schemaLocation="x.xsd"/>', "a", "cannot be read: No such file or directory"),
        (
            '<xs:include schemaLocation="ftp://x/x"/>',
            "a",
            "includes 'ftp://x/x', line 1, which is neither a relative path nor an http URL",
        ),
        (
            '<xs:import namespace="u" schemaLocation="http://x.invalid/x.xsd"/>'
            '<xs:element name="a" type="u:b" xmlns:u="u"/>',
            "a",
            "no complexType {u}b is declared, line 1; imported, and not read: http://x.invalid/x.xsd (not fetched",
        ),
        (
            f'{_A}<xs:complexContent><xs:extension base="T"/></xs:complexContent>{_END}',
            "a",
            "a complex type extends its",
        ),
        (
            '<xs:simpleType name="T"><xs:restriction base="T"/></xs:simpleType><xs:element name="a" type="T"/>',
            "a",
            "a simple type contains itself, line 1",
        ),
        (
            f'<xs:group name="G"><xs:all><xs:group ref="G"/></xs:all></xs:group>{_A}<xs:group ref="G"/>{_END}',
            "a",
            "a group is inside of itself, line 1",
        ),
        (
            f'{_A}<xs:sequence><xs:element name="b" maxOccurs="x"/></xs:sequence>{_END}',
            "a",
            "minOccurs and maxOccurs are '1' and 'x', line 1",
        ),
    ],
)
def test_schemas_that_are_wrong_are_one_line(tmp_path: Path, body: str, element: str, reason: str) -> None:
    path = _written(tmp_path, body)
    with pytest.raises(SchemaError) as caught:
        xsd(path, element=element)(None, "x")
    assert str(path.parent) in str(caught.value)
    assert reason in str(caught.value)


def test_types_that_double_with_each_step_are_refused(tmp_path: Path) -> None:
    steps = "".join(
        f'<xs:complexType name="T{n}"><xs:sequence><xs:element name="a" type="T{n + 1}"/>'
        f'<xs:element name="b" type="T{n + 1}"/></xs:sequence></xs:complexType>'
        for n in range(30)
    )
    path = _written(tmp_path, f'{steps}<xs:complexType name="T30"/>')
    with pytest.raises(SchemaError, match="more than 10000 schemas"):
        xsd(path, type="T0", levels=25)(None, "x")


@pytest.mark.parametrize(
    ("step", "last"),
    [
        (
            '<xs:group name="T{0}"><xs:sequence><xs:group ref="T{1}"/><xs:group ref="T{1}"/></xs:sequence></xs:group>',
            '<xs:group name="T30"><xs:all/></xs:group><xs:complexType name="R"><xs:group ref="T0"/></xs:complexType>',
        ),
        (
            '<xs:simpleType name="T{0}"><xs:union memberTypes="T{1} T{1}"/></xs:simpleType>',
            '<xs:simpleType name="T30"><xs:restriction base="xs:int"/></xs:simpleType>'
            '<xs:complexType name="R"><xs:attribute name="a" type="T0"/></xs:complexType>',
        ),
        (
            '<xs:attributeGroup name="T{0}"><xs:attributeGroup ref="T{1}"/><xs:attributeGroup ref="T{1}"/>'
            "</xs:attributeGroup>",
            '<xs:attributeGroup name="T30"/><xs:complexType name="R"><xs:attributeGroup ref="T0"/></xs:complexType>',
        ),
    ],
)
def test_groups_that_double_with_each_step_are_refused(tmp_path: Path, step: str, last: str) -> None:
    path = _written(tmp_path, "".join(step.format(n, n + 1) for n in range(30)) + last)
    with pytest.raises(SchemaError, match="has more than 100000 parts"):
        xsd(path, type="R")(None, "x")


@pytest.fixture
def server() -> Iterator[str]:
    pages = {
        "/a/main.xsd": '<xs:include schemaLocation="../part.xsd"/><xs:element name="a" type="T"/>',
        "/part.xsd": '<xs:complexType name="T"><xs:attribute name="b" type="xs:int"/></xs:complexType>',
        "/evil.xsd": '<xs:include schemaLocation="file:///etc/hostname"/>',
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{_OPEN}{pages[self.path]}</xs:schema>".encode())

        def log_message(self, *said: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        Thread(target=http_server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http_server.server_port}"
        http_server.shutdown()


def test_a_schema_at_a_web_address_is_fetched_with_those_that_it_includes(server: str, tmp_path: Path) -> None:
    schema = xsd(f"{server}/a/main.xsd", element="a")(None, "x")
    assert list(schema["properties"]) == ["b"]
    with pytest.raises(
        SchemaError, match="includes 'file:///etc/hostname', line 1, which is neither a relative path nor an http URL"
    ):
        xsd(f"{server}/evil.xsd", element="a")(None, "x")
    path = _written(tmp_path, f'<xs:include schemaLocation="{server}/part.xsd"/><xs:element name="a" type="T"/>')
    with pytest.raises(SchemaError, match=r"no complexType T is declared.*not fetched"):
        xsd(path, element="a")(None, "x")
    assert xsd(path, element="a", allow_remote=True)(None, "x") == schema


# Built-in types and facets: whatever the oracle takes, the schema takes.

_TEXTS = st.one_of(
    st.text(st.sampled_from("0123456789+-.eE:TZ "), max_size=12),
    st.integers(-(2**70), 2**70).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map("{:f}".format),
    st.floats().map(repr),
    st.datetimes().map(lambda time: time.isoformat()),
    st.datetimes().map(lambda time: time.isoformat(timespec="seconds") + "+14:00"),
    st.dates().map(lambda day: f" {day.isoformat()}Z"),
    st.sampled_from(
        ["true", "false", "1", "0", " 1 ", "INF", "-INF", "NaN", "", "a b", "aGk=", "0aFF", "P1D", "--02-28"]
    ),
)
_NAMES = sorted(BUILT_IN.keys() - {"anyType"})
_ORACLE = {
    name: element.type
    for name, element in xmlschema.XMLSchema11(
        "".join((_OPEN, *(f'<xs:element name="{name}" type="xs:{name}"/>' for name in _NAMES), "</xs:schema>"))
    ).elements.items()
}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(_NAMES), _TEXTS)
def test_what_is_valid_of_a_built_in_type_is_valid_json(name: str, text: str) -> None:
    try:
        if not _ORACLE[name].is_valid(text):
            return
    except OverflowError:  # years of many digits are beyond the oracle
        return
    value = scalar(text, BUILT_IN[name])
    if BUILT_IN[name].get("format") == "date-time" and "24:00:00" in text:
        return
    assert _is_valid(value, BUILT_IN[name]), (name, text, value)


def test_the_oracle_takes_some_of_each_built_in_type() -> None:
    texts = {
        "dateTime": "2026-11-22T08:00:00",
        "date": "2026-11-22Z",
        "boolean": "1",
        "decimal": "1.50",
        "byte": "-128",
    }
    assert all(_ORACLE[name].is_valid(text) for name, text in texts.items())
    assert scalar("1", BUILT_IN["boolean"]) is True
    assert scalar("1.50", BUILT_IN["decimal"]) == Decimal("1.50")


_FACETS = st.dictionaries(
    st.sampled_from(["minInclusive", "maxInclusive", "minExclusive", "maxExclusive", "totalDigits"]),
    st.integers(1, 9).map(str),
    max_size=3,
)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["decimal", "integer", "short", "double"]), _FACETS, st.integers(-20, 20).map(lambda n: str(n / 2))
)
def test_bounds_are_those_of_the_type(base: str, facets: dict[str, str], text: str) -> None:
    body = "".join(f'<xs:{name} value="{value}"/>' for name, value in facets.items())
    restriction = f'<xs:restriction base="xs:{base}">{body}</xs:restriction>'
    document = f'{_OPEN}<xs:simpleType name="T">{restriction}</xs:simpleType></xs:schema>'
    try:
        oracle = xmlschema.XMLSchema(document).types["T"]
    except xmlschema.XMLSchemaException:  # bounds that no value has
        return
    text = text.removesuffix(".0") if base in ("integer", "short") else text
    schema = restricted(BUILT_IN[base], next(parse(document.encode()).iter("restriction")))
    check(schema)
    if oracle.is_valid(text):
        assert _is_valid(scalar(text, schema), schema)
    elif not ("totalDigits" in facets and base != "integer"):
        assert not _is_valid(scalar(text, schema), schema)


# Content models: a schema and a document that is valid by it are drawn together.


@st.composite
def _particle(draw: Any, depth: int) -> tuple[str, list[str]]:
    """Draw a particle, and elements that it takes."""
    least = draw(st.integers(0, 2))
    most = draw(st.sampled_from([str(max(least, 1)), str(least + 1), "unbounded"]))
    occurs = f'minOccurs="{least}" maxOccurs="{most}"'
    times = least if most == str(least) else draw(st.integers(least, least + 1))
    if depth == 0 or draw(st.booleans()):
        name = draw(st.sampled_from("abc"))
        kind, text = draw(st.sampled_from([("xs:int", "5"), ("xs:string", "x<y"), ("xs:boolean", "true"), ("In", "")]))
        inner = f"<{name}>{escape(text) if kind != 'In' else '<v>1.5</v>'}</{name}>"
        return f'<xs:element name="{name}" type="{kind}" {occurs}/>', [inner] * times
    parts = draw(st.lists(_particle(depth - 1), min_size=1, max_size=3))
    if draw(st.booleans()):
        elements = [part for _ in range(times) for _, taken in parts for part in taken]
        return f"<xs:sequence {occurs}>{''.join(said for said, _ in parts)}</xs:sequence>", elements
    elements = [part for _ in range(times) for part in draw(st.sampled_from(parts))[1]]
    return f"<xs:choice {occurs}>{''.join(said for said, _ in parts)}</xs:choice>", elements


@settings(max_examples=100, deadline=None)
@given(_particle(3))
def test_what_a_content_model_takes_is_a_valid_record(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    model, elements = drawn
    body = (
        '<xs:complexType name="In"><xs:sequence><xs:element name="v" type="xs:decimal"/></xs:sequence></xs:complexType>'
        f'<xs:element name="root"><xs:complexType><xs:sequence>{model}</xs:sequence></xs:complexType></xs:element>'
    )
    path = _written(tmp_path_factory.getbasetemp(), body)
    schema = xsd(path, element="root")(None, "root")
    check(schema)
    record = from_xml(f"<root>{''.join(elements)}</root>".encode(), schema)
    assert _is_valid(record, schema), (record, schema)
    counts = {name: sum(element.startswith(f"<{name}>") for element in elements) for name in "abc"}
    for name, count in counts.items():
        values = record.get(name, [])
        assert (len(values) if isinstance(values, list) else 1) == count


@pytest.mark.parametrize(
    "body",
    [
        '<xs:element name="a" substitutionGroup="a"/>',
        '<xs:element name="a" substitutionGroup="b"/><xs:element name="b" substitutionGroup="a"/>',
        '<xs:element name="a" ref="a"/>',
        '<xs:attribute name="b" ref="b"/><xs:element name="a"><xs:complexType><xs:attribute ref="b"/></xs:complexType>'
        "</xs:element>",
        '<xs:include schemaLocation="http://["/><xs:element name="a"><xs:complexType/></xs:element>',
    ],
)
def test_what_is_made_of_itself_or_is_no_place_is_one_line(tmp_path: Path, body: str) -> None:
    with pytest.raises(SchemaError, match=r"contains itself, line|includes 'http://\['"):
        xsd(_written(tmp_path, body), element="a")(None, "a")


def test_a_long_chain_of_includes(tmp_path: Path) -> None:
    for at in range(450):
        _written(tmp_path, f'<xs:include schemaLocation="{at + 1}.xsd"/>').rename(tmp_path / f"{at}.xsd")
    _written(tmp_path, '<xs:element name="a"><xs:complexType/></xs:element>').rename(tmp_path / "450.xsd")
    assert xsd(tmp_path / "0.xsd")(None, "a") == {"type": "object"}


@pytest.mark.parametrize(
    ("base", "facet"),
    [("decimal", '<xs:maxInclusive value="1e999999999"/>'), ("integer", '<xs:totalDigits value="4999"/>')],
)
def test_bounds_beyond_all_numbers_are_left_out(tmp_path: Path, base: str, facet: str) -> None:
    body = f'<xs:simpleType name="n"><xs:restriction base="xs:{base}">{facet}</xs:restriction></xs:simpleType>'
    path = _written(tmp_path, f'{body}<xs:complexType name="t"><xs:attribute name="n" type="n"/></xs:complexType>')
    assert xsd(path, type="t")(None, "t")["properties"]["n"].keys() == {"type"}


ORDERS = (DATA / "orders.xsd").read_text()
TOKENS = sorted(set(re.findall(r'"[^"<>]*"|</?xs:\w+|/?>|\w+=', ORDERS)))


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_an_xml_schema_with_one_piece_out_of_place(tmp_path_factory: Any, data: Any) -> None:
    folder = tmp_path_factory.getbasetemp()
    for name in ("payments.xsd", "common.xsd"):
        (folder / name).write_bytes((DATA / name).read_bytes())
    text = ORDERS
    for _ in range(data.draw(st.integers(1, 2))):
        old, new = data.draw(st.sampled_from(TOKENS)), data.draw(st.sampled_from([*TOKENS, "", "&x;", '"-1"', "<"]))
        places = [match.start() for match in re.finditer(re.escape(old), text)]
        if places:
            at = data.draw(st.sampled_from(places))
            text = text[:at] + new + text[at + len(old) :]
    path = folder / "changed.xsd"
    path.write_text(text)
    try:
        schema = xsd(path, element="orders")(None, "x")
    except SchemaError as error:
        reason = str(error)
    else:
        reason = "none"
        check(schema)
        assert isinstance(from_xml((DATA / "orders.xml").read_bytes(), schema), dict)
    assert len(reason.splitlines()) == 1


README = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_blocks_of_the_readme_run(tmp_path: Path) -> None:
    blocks = re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    for _, name, text in blocks:
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
    path = os.pathsep.join(map(str, (FOLDER, FOLDER.parents[1])))
    done = subprocess.run(
        [sys.executable, "orders.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in [text for language, _, text in blocks if language == "text"]


def test_the_numbers_of_the_readme_are_the_code_s() -> None:
    words = " ".join(README.split())
    assert f"texts of {parser.MAX_ENTITY} characters" in words
    assert f"{parser.MAX_XML_BYTES >> 20} MiB, {parser.MAX_DEPTH} levels" in words
