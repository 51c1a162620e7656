"""SOAP: the client, and the projects that ``balog tap new --wsdl`` makes. The oracle of requests is xmlschema."""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
from click.testing import CliRunner

from balog.cli import main
from balog.projects import describe, project_files
from balog.tap.errors import SchemaError, SourceError
from balog.tap.schema import wsdl
from balog.tap.schema.xml.soap import SoapClient
from tests.stand_ins.http_server import Answer, HttpStandIn, Request

DATA = Path(__file__).parents[1] / "data" / "tap"
OFFERS = DATA / "offers.wsdl"
ENVELOPE = '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>%s</s:Body></s:Envelope>'
ANSWER = ENVELOPE % (
    '<o:ListOffersResponse xmlns:o="urn:offers"><o:result><o:offer id="7"><o:title>A &amp; B</o:title>'
    "<o:price>9.90</o:price><o:valid>2026-01-02</o:valid><o:tag>x</o:tag></o:offer></o:result></o:ListOffersResponse>"
)


@pytest.fixture
def server() -> Iterator[HttpStandIn]:
    with HttpStandIn(lambda request: Answer(200, ANSWER.encode(), {"Content-Type": "text/xml"})) as server:
        yield server


@pytest.fixture
def client(server: HttpStandIn) -> Iterator[SoapClient]:
    with SoapClient(server.url) as client:
        yield client


def call(client: SoapClient, arguments: dict[str, Any], **options: Any) -> Any:
    schema = wsdl(OFFERS, operation="ListOffers")(None, "offers")
    return client.call("ListOffers", arguments, schema, namespace="urn:offers", **options)


def sent(request: Request) -> ElementTree.Element:
    return ElementTree.fromstring(request.body)[0][0]


def test_requests_are_valid_by_their_schema(server: HttpStandIn, client: SoapClient, tmp_path: Path) -> None:
    found = call(client, {"shop": "<a>\x00&", "limit": 3, "class": True}, action="urn:offers#list")
    offer = {"id": 7, "title": "A & B", "price": Decimal("9.90"), "valid": "2026-01-02", "tag": ["x"]}
    assert found == {"result": {"offer": [offer]}}
    (request,) = server.requests
    assert request.headers["soapaction"] == '"urn:offers#list"'
    text = OFFERS.read_text()
    (tmp_path / "offers.xsd").write_text(
        re.search(r"<xs:schema.*</xs:schema>", text, re.DOTALL)[0].replace(  # type: ignore[index]
            "<xs:schema ", '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:tns="urn:offers" ', 1
        )
    )
    schema = xmlschema.XMLSchema(str(tmp_path / "offers.xsd"))
    schema.validate(sent(request))
    assert [each.text for each in sent(request)] == ["<a>&", "3", "true"]


def test_arguments_of_all_kinds(server: HttpStandIn, client: SoapClient) -> None:
    call(
        client,
        {"a": None, "b": [1, 2], "c": {"d": date(2026, 1, 2), "e": False}},
        element="Other",
        is_qualified=False,
        is_soap_12=True,
    )
    request = server.requests[0]
    outer = sent(request)
    assert outer.tag == "{urn:offers}Other"
    assert [(each.tag, each.text) for each in outer.iter()][1:] == [
        ("b", "1"), ("b", "2"), ("c", None), ("d", "2026-01-02"), ("e", "false"),
    ]  # fmt: skip
    assert request.headers["content-type"].startswith("application/soap+xml")
    assert b"http://www.w3.org/2003/05/soap-envelope" in request.body


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (ENVELOPE % "<s:Fault><faultcode>s:Client</faultcode><faultstring>no s3cret-shop\nhere</faultstring></s:Fault>",
         "ListOffers: the service answered with a fault: s:Client no … here"),
        (ENVELOPE % "", "not a SOAP envelope"),
        ("<html/>", "not a SOAP envelope"),
    ],
)  # fmt: skip
def test_faults(server: HttpStandIn, client: SoapClient, body: str, reason: str) -> None:
    server.respond = lambda request: Answer(500, body.encode())
    with pytest.raises(SourceError, match=re.escape(reason)) as caught:
        call(client, {"shop": "s3cret-shop"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("body", [b"{}", b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'])
def test_answers_that_are_no_safe_xml(server: HttpStandIn, client: SoapClient, body: bytes) -> None:
    server.respond = lambda request: Answer(200, body)
    with pytest.raises(SourceError, match="ListOffers: the answer is not XML"):
        call(client, {})


def test_the_description_of_a_service() -> None:
    api = describe(str(OFFERS), is_wsdl=True)
    assert (api.title, api.base_url) == ("OfferService", "https://soap.example.com/offers")
    first, second = api.operations
    assert first.soap is not None
    assert (first.name, first.soap.namespace, first.soap.action) == ("list_offers", "urn:offers", "urn:offers#list")
    assert [(each.name, each.argument, each.annotation, each.is_required) for each in first.parameters] == [
        ("shop", "shop", "str", True), ("limit", "limit", "int", False), ("class", "class_2", "bool", False),
    ]  # fmt: skip
    assert second.parameters == []
    (stream,) = api.streams
    assert (stream.name, stream.items, stream.keys) == ("offer", "result.offer", ["id"])
    assert stream.params == {"shop": "list_offers_shop"}


def test_a_project_from_a_wsdl_passes_its_own_checks_and_tests(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["tap", "new", "tap-soap", "--wsdl", str(OFFERS), "--into", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for tool in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"],
                 ["pytest", "-q", "-p", "no:cacheprovider", "-k", "not Practices"]):  # fmt: skip
        ran = subprocess.run(
            [sys.executable, "-m", *tool], cwd=tmp_path / "tap-soap", capture_output=True, text=True, timeout=500
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("text", ['"""', "a'b", "\\", "{x}", "class", "日本", "x" * 300, "list", "call"])
def test_names_of_a_hostile_wsdl_reach_code_as_texts_only(tmp_path: Path, text: str) -> None:
    from tests.projects.test_projects import CALLS, METHODS, assert_safe

    CALLS.add("RESPONSES")
    METHODS.update(["call"])
    quoted = text.replace('"', "&quot;")
    path = tmp_path / "evil.wsdl"
    path.write_text(OFFERS.read_text().replace("ListOffers", f"List{quoted}").replace("urn:offers", f"urn:{quoted}")
                    .replace('name="shop"', f'name="{quoted}"').replace("OfferService", quoted))  # fmt: skip
    try:
        api = describe(str(path), is_wsdl=True)
    except SchemaError:
        return
    METHODS.update(each.name for each in api.operations)  # which are made of ASCII characters
    assert all(each.name.isascii() and each.name.isidentifier() for each in api.operations)
    assert_safe(project_files("tap-x", api))


def test_options_that_exclude_each_other(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["tap", "new", "tap-x", "--openapi", "a", "--wsdl", "b", "--into", str(tmp_path)])
    assert (done.exit_code, "exclude each other" in done.output) == (2, True)
    done = CliRunner().invoke(main, ["tap", "new", "tap-x", "--wsdl", __file__, "--into", str(tmp_path)])
    assert done.exit_code == 1
    assert done.output.count("\n") == 1
