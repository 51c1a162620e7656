"""New taps: the projects that ``balog tap new`` makes pass their own checks, whatever a document says."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from balog.cli import main
from balog.tap.endpoints import RestStream
from balog.tap.errors import SchemaError
from balog.tap.projects import describe, project_files
from balog.tap.projects.source_text import assigned, literal, pascal, quoted, sentence, snake
from tests.stand_ins.http_server import Answer, HttpStandIn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[3]
SHOP = ROOT / "tests" / "data" / "tap" / "openapi" / "shop.json"


def new(folder: Path, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["tap", "new", *arguments, "--into", str(folder)])
    return done.exit_code, done.output


def tool(project: Path, *command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=project, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def mypy_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder that all checks share, so that balog's own types are read once."""
    return tmp_path_factory.mktemp("mypy")


def check_style(project: Path, mypy_cache: Path) -> None:
    tool(project, "ruff", "check", ".")
    tool(project, "ruff", "format", "--check", ".")
    tool(project, "mypy", "--cache-dir", str(mypy_cache))


def plans(folder: Path, document: Any) -> Any:
    path = folder / "api.json"
    path.write_text(json.dumps(document))
    return describe(str(path))


def listing(schema: Any, *, path: str = "/things", parameters: Any = (), **answer: Any) -> dict[str, Any]:
    """Give a document with one list."""
    response = {"content": {"application/json": {"schema": schema}}, **answer}
    operation = {"parameters": list(parameters), "responses": {"200": response}}
    return {"openapi": "3.1.0", "paths": {path: {"get": operation}}}


THING = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("projects")
    code, output = new(folder, "tap-shop", "--openapi", str(SHOP))
    assert code == 0, output
    assert output == f"{folder / 'tap-shop'}: 3 streams\n"
    return folder / "tap-shop"


def test_a_project_from_openapi_passes_its_own_checks_and_scores_100(shop: Path, mypy_cache: Path) -> None:
    check_style(shop, mypy_cache)
    # A broken rule of any severity fails: the score is 100.
    tool(shop, "pytest", "-q", "-p", "no:cacheprovider", "-W", "error::balog.tap.verify.testing.TapWarning")


def test_the_streams_of_a_document(shop: Path) -> None:
    customers, orders, offers = describe(str(SHOP)).streams
    assert (customers.path, customers.items, customers.keys) == ("/customers", "data", ["id"])
    assert customers.paging == "cursor:next_cursor param=cursor size=100 size_param=limit"
    assert (customers.replication_key, customers.params) == ("updated_at", {"updated_since": "{bookmark}"})
    assert "password" not in customers.schema["properties"]
    assert customers.schema["properties"]["email"] == {"type": ["null", "string"]}
    assert orders.parent is customers
    assert (orders.path, orders.from_parent) == ("/customers/{id}/orders", {"customer_id": "id"})
    assert orders.schema["properties"].keys() == {"number", "total", "lines", "customer_id"}
    assert orders.paging == "page param=page first=1 size=50 size_param=per_page"
    assert offers.path == "/shops/{config.shop}/offers"
    assert offers.params == {"locale": "{config.locale}"}


def test_a_project_from_a_name_passes_its_own_tests(tmp_path: Path) -> None:
    assert new(tmp_path, "tap-cool")[0] == 0
    project = tmp_path / "tap-cool"
    tool(project, "pytest", "-q", "-p", "no:cacheprovider", "-k", "discovery or sync")
    with (project / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["scripts"] == {"tap-cool": "tap_cool:tap.run"}


@pytest.mark.parametrize(
    ("schema", "parameters", "answer", "paging"),
    [
        ({"type": "array", "items": THING}, [], {"headers": {"Link": {}}}, "link"),
        ({"type": "array", "items": THING}, ["skip", "top"], {}, "offset param=skip size=100 size_param=top"),
        ({"type": "array", "items": THING}, ["page"], {}, "page param=page first=1"),
        ({"properties": {"things": {"type": "array", "items": THING}, "links": {"properties": {
            "next": {"type": "string", "format": "uri"}}}}}, [], {}, "url:links.next"),
        ({"properties": {"data": {"type": "array", "items": THING}, "meta": {"properties": {
            "next_page_token": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}}}, ["pageToken", "pageSize"], {},
         "cursor:meta.next_page_token param=pageToken size=100 size_param=pageSize"),
        ({"type": "array", "items": THING}, ["q"], {}, ""),
    ],
)  # fmt: skip
def test_paging_as_documents_have_it(
    tmp_path: Path, schema: Any, parameters: list[str], answer: Any, paging: str
) -> None:
    given = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters]
    (stream,) = plans(tmp_path, listing(schema, parameters=given, **answer)).streams
    assert stream.paging == paging


def test_a_path_that_is_left_out_adds_no_setting_and_is_named(tmp_path: Path) -> None:
    paths = ("/orgs", "/orgs/{org_id}/repos", "/orgs/{org_id}/repos/{repo_id}/issues")
    things = {path: listing({"type": "array", "items": THING}, path=path)["paths"][path] for path in paths}
    project = plans(tmp_path, {"openapi": "3.1.0", "paths": {**things, "/search": {"post": {}}}})
    assert [stream.name for stream in project.streams] == ["orgs", "repos"]
    assert (project.settings, project.skipped[0].partition(":")[0]) == ({}, "POST /search is no stream")


def test_the_bookmark_is_sent_by_a_parameter_that_a_first_run_can_leave_out(tmp_path: Path) -> None:
    text, time = {"type": "string"}, {"type": "string", "format": "date-time"}
    given = [
        {"name": "from", "in": "query", "required": True, "schema": text},
        {"name": "since", "in": "query", "schema": text},
        {"name": "updated_since", "in": "query", "schema": time},
    ]
    record = {"type": "object", "properties": {"id": {"type": "integer"}, "updated_at": time}}
    (stream,) = plans(tmp_path, listing({"type": "array", "items": record}, parameters=given)).streams
    assert stream.params["updated_since"] == "{bookmark}"
    assert stream.params["from"].startswith("{config.")
    assert "since" not in stream.params


SIGN_INS = [
    ({"type": "http", "scheme": "bearer"}, 'bearer(config["token"])'),
    ({"type": "http", "scheme": "Basic"}, 'basic(config["username"], config["password"])'),
    ({"type": "http", "scheme": "digest"}, ""),
    ({"type": "apiKey", "in": "query", "name": 'k"]; import os #'}, ""),
    ({"type": "apiKey", "in": "query", "name": 'k"+x'}, 'query(\'k"+x\', config["api_key"])'),
    ({"type": "apiKey", "in": "cookie", "name": "sid"}, 'cookie("sid", config["api_key"])'),
    ({"type": "openIdConnect", "openIdConnectUrl": "https://x.example"}, 'bearer(config["token"])'),
    ({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://x.example/token"}}}, "ClientCredentials("),
    ({"type": "oauth2", "flows": {"password": {"tokenUrl": "javascript:alert(1)"}}}, "Password("),
    ({"type": "oauth2", "flows": {"authorizationCode": {"tokenUrl": "https://x.example/t"}}}, "RefreshToken("),
    ({"type": "mutualTLS"}, ""),
]


@pytest.mark.parametrize(("scheme", "expression"), SIGN_INS)
def test_the_sign_in_of_a_document(tmp_path: Path, scheme: Any, expression: str) -> None:
    document = {**listing({"type": "array", "items": THING}), "components": {"securitySchemes": {"s": scheme}}}
    found = plans(tmp_path, document)
    assert expression in found.sign_in.expression
    assert bool(found.sign_in.expression) == bool(expression)
    urls = [value.get("default", "https://") for value in found.sign_in.settings.values()]
    assert all(url.startswith("https://") for url in urls)
    assert_safe(project_files("tap-x", found))


@pytest.mark.parametrize("name", ["client", "bearer", "tap"])
def test_a_class_has_no_name_of_what_its_file_imports(tmp_path: Path, name: str) -> None:
    (stream,) = plans(tmp_path, listing({"type": "array", "items": THING}, path=f"/{name}")).streams
    assert stream.class_name == f"{name.capitalize()}_2"


def test_a_list_at_the_root_of_a_document_is_a_stream_of_a_tap_that_can_be_imported(tmp_path: Path) -> None:
    found = plans(tmp_path, listing({"type": "array", "items": THING}, path="/"))
    source = project_files("tap-x", found)["tap_x/streams.py"]
    (path,) = re.findall(r'path = "(.*)"', source)
    assert RestStream("things", path=path).path == "/"


def test_version_2_is_refused_with_the_way_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"not an OpenAPI document of version 3; convert one of Swagger 2\.0 first"):
        plans(tmp_path, {"swagger": "2.0", "paths": {}})


# -- hostile documents ------------------------------------------------------------------------------------------------

CALLS = {"Tap", "json_folder", "Client", "bearer", "basic", "header", "query", "cookie"}
CALLS |= {"ClientCredentials", "Password", "RefreshToken"}
METHODS = {"client", "stream", "schema", "get", "run"}


def assert_safe(files: dict[str, str]) -> None:
    """Check what a project's code does: names and calls are those of the generator, texts are constants."""
    tomllib.loads(files["pyproject.toml"])
    for path, text in files.items():
        assert not path.startswith("/")
        assert ".." not in path
        assert path.isascii()
        if path.endswith(".json"):
            json.loads(text)
        if not path.endswith(".py"):
            continue
        tree = ast.parse(text)
        if path.startswith("tests/"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                function = node.func
                name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
                assert name in (CALLS if isinstance(function, ast.Name) else METHODS), (path, name)
            if isinstance(node, ast.Name | ast.FunctionDef | ast.ClassDef | ast.arg):
                name = getattr(node, "id", getattr(node, "name", getattr(node, "arg", "")))
                assert name.isascii()
                assert name.isidentifier()
            assert not isinstance(node, ast.Lambda | ast.Global | ast.Delete | ast.Await | ast.While)
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = getattr(node, "module", "") or node.names[0].name
                assert module.split(".")[0] in ("__future__", "typing", "balog", "tap_x")


EVIL = [
    '"""\nimport os; os.system("id")\n"""', "\\", '"', "'", "{__import__('os')}", "{0.__class__}", "../../etc/passwd",
    "class", "def", "__init__", "self", "None", "Ünïcode", "日本", "\u202eevil\u202c", "a\x00b", "x" * 300, "", "1st",
    "%s", "*/ # \n", "get", "request", "close", "str", "list", "Any", "$(id)", "`id`", "<script>", "|", "tap", "config",
    "client",
]  # fmt: skip
texts = st.sampled_from(EVIL) | st.text(max_size=12)


def hostile(a: str, b: str, c: str) -> dict[str, Any]:
    """Give a document with texts in each place."""
    thing = {
        "type": "object",
        "description": a,
        "properties": {
            "id": {"type": "string"},
            a: {"type": "integer"},
            b: {"type": "string", "format": "date-time", "description": c},
            c: {"$ref": "#/components/schemas/Self"},
        },
    }
    several = {"type": "object", "properties": {a: {"type": "array", "items": thing}, b: {"type": "string"}}}
    parameters = [
        {"name": name, "in": place, "required": name == a, "description": b, "schema": {"type": c}}
        for name in (a, b, "limit", "since")
        for place in ("query", "header", "cookie")
    ]
    get = listing(several, parameters=parameters, headers={a: {}})["paths"]["/things"]["get"]
    get |= {"operationId": b, "summary": c, "description": a}
    plain = listing({"type": "array", "items": {"$ref": "#/components/schemas/Self"}})["paths"]["/things"]["get"]
    return {
        "openapi": "3.0.0",
        "info": {"title": a, "description": b},
        "servers": [{"url": c, "variables": {a: {"default": b}}}],
        "components": {
            "schemas": {"Self": thing, a: thing, b: {"properties": {c: {"type": [a, "string"]}}}},
            "securitySchemes": {a: {"type": "apiKey", "in": "header", "name": b}},
        },
        "paths": {
            f"/{a}": {"get": get},
            f"/{a}/{{{b}}}/{c}": {"get": get, "post": plain},
            f"/x/{{{c}}}": {"get": plain},
            f"/things/{b}": {"get": plain},
            a: {"get": get},
        },
    }


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, texts, texts)
@example('"""', "\\", '"')
@example("{", "}", "{{}}")
def test_no_text_of_a_document_becomes_code(tmp_path: Path, a: str, b: str, c: str) -> None:
    try:
        found = plans(tmp_path, hostile(a, b, c))
    except UnicodeEncodeError:
        return  # half a surrogate pair, which is no JSON
    except SchemaError:
        return
    assert_safe(project_files("tap-x", found))


def test_hostile_names_pass_the_checks_of_style(tmp_path: Path, mypy_cache: Path) -> None:
    document = hostile("class", "list", "self")
    for number in range(0, len(EVIL), 3):
        more = hostile(*(EVIL[(number + step) % len(EVIL)] for step in range(3)))
        document["paths"] |= {f"/n{number}{path}": item for path, item in more["paths"].items()}
        document["components"]["schemas"] |= more["components"]["schemas"]
    found = plans(tmp_path, document)
    assert len(found.streams) > 10
    (tmp_path / "api.json").unlink()
    for path, text in project_files("tap-x", found).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    check_style(tmp_path, mypy_cache)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "it has no paths"),
        ("[]", "it has no paths"),
        ('{"paths": {}}', "not an OpenAPI document of version"),
        ('{"openapi": "4.0", "paths": {}}', "not an OpenAPI document of version"),
        ("{", "not JSON"),
        ("[" * 5000, "nested too deep"),
        ('{"openapi": "3.0.0", "paths": ' + '{"a":' * 200 + "1" + "}" * 200 + "}", "nested deeper than 100"),
        ("a: [", "not JSON, and as YAML: "),
        ("a: !!python/object/apply:os.system [id]", "not JSON, and as YAML: "),
        (None, "cannot be read: No such file"),
    ],
)
def test_documents_that_are_none(tmp_path: Path, text: str | None, reason: str) -> None:
    path = tmp_path / "api.yaml"
    if text is not None:
        path.write_text(text)
    code, output = new(tmp_path, "tap-x", "--openapi", str(path))
    assert code == 1
    assert reason in output
    assert output.count("\n") == 1
    assert not (tmp_path / "tap-x").exists()


@pytest.mark.parametrize("paths", [{}, {"/a": {"get": {"responses": {"204": {"description": "nothing"}}}}}])
def test_a_document_without_a_list_is_refused(tmp_path: Path, paths: Any) -> None:
    path = tmp_path / "api.json"
    path.write_text(json.dumps({"openapi": "3.0.0", "info": {}, "paths": paths}))
    code, output = new(tmp_path, "tap-x", "--openapi", str(path))
    assert code == 2
    assert "no GET of it returns a list that could be a stream" in output
    assert not (tmp_path / "tap-x").exists()


def test_long_texts_are_broken_as_ruff_breaks_them() -> None:
    text = "\n\n".join(f"class A{length}:\n{assigned('path', 'x' * length)}\n" for length in range(100, 120))
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--line-length", "120", "--isolated", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    assert formatted.stdout == text


def test_yaml(tmp_path: Path) -> None:
    text = """
openapi: 3.1.0
info: {title: Shop, version: 1.0}
components:
  schemas:
    Thing: &thing
      type: object
      properties: {id: {type: integer}, no: {type: string}, at: {type: string, format: date-time, example: 2026-01-01}}
paths:
  /things:
    get:
      responses:
        200: {description: ok, content: {application/json: {schema: {type: array, items: *thing}}}}
"""
    (tmp_path / "api.yaml").write_text(text)
    (stream,) = describe(str(tmp_path / "api.yaml")).streams
    assert stream.schema["properties"].keys() == {"id", "no", "at"}


def test_references_outside_of_the_document_s_folder_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(json.dumps(THING))
    folder = tmp_path / "api"
    folder.mkdir()
    (folder / "near.json").write_text(json.dumps(THING))
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    with HttpStandIn(lambda request: Answer(200, json.dumps(THING).encode())) as server:
        for reference in ("../secret.json", str(tmp_path / "secret.json"), "link.json", f"{server.url}/thing.json"):
            found = plans(folder, listing({"type": "array", "items": {"$ref": reference}}))
            assert found.streams == []
            assert len(found.skipped) == 1
        assert server.requests == []
        assert [
            stream.name for stream in plans(folder, listing({"type": "array", "items": {"$ref": "near.json"}})).streams
        ]
        # A document from the net reads no file at all.
        server.respond = lambda request: Answer(200, (folder / "api.json").read_bytes())
        assert describe(f"{server.url}/api.json").streams == []


@pytest.mark.parametrize("reference", ["#/components/schemas/A", "#/nowhere", "#/paths", 7])
def test_references_that_lead_nowhere_leave_the_stream_out(tmp_path: Path, reference: Any) -> None:
    document = listing({"type": "array", "items": {"$ref": reference}})
    document["components"] = {
        "schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    }
    found = plans(tmp_path, document)
    assert found.streams == []
    assert_safe(project_files("tap-x", found))


@pytest.mark.parametrize(
    "name", ["cool", "tap_cool", "tap-", "tap-Cool", "../tap-x", "tap-x/../y", "tap-ü", "tap-" + "x" * 99, ""]
)
def test_names_of_taps_are_checked(tmp_path: Path, name: str) -> None:
    code, output = new(tmp_path, name)
    assert code == 2
    assert "is not a tap's name; expected tap- and lower-case characters" in output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tap-x").mkdir()
    (tmp_path / "tap-y").symlink_to("nowhere")
    for name in ("tap-x", "tap-y"):
        code, output = new(tmp_path, name)
        assert code == 2
        assert "exists already" in output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tap-x", "tap-y"]
    assert new(tmp_path / "none" / "deep", "tap-x")[0] == 0


@settings(max_examples=100, deadline=None)
@given(st.text(), st.recursive(st.text() | st.integers() | st.booleans() | st.none(), lambda inner: st.lists(inner)
       | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_texts_and_literals(text: str, value: Any) -> None:
    assert ast.literal_eval(quoted(text)) == text
    assert ast.literal_eval(literal(value)) == value
    shown = sentence(text, "x")
    assert ast.parse(f'"""{shown}"""').body
    assert "\n" not in shown
    for name in (snake(text, "x"), pascal(text, "X")):
        assert name.isidentifier()
        assert name.isascii()
