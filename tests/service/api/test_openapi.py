"""The API is what its OpenAPI document says: held against a running service by schemathesis."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.routing import Route

from balog.service.api import control_api, schemas_api
from balog.service.api.app import openapi_document
from tests.service.serving import serving


@schemathesis.serializer("application/x-ndjson")
def lines(context: object, value: object) -> bytes:
    return str(value).encode("utf-8", "replace")


api = schemathesis.openapi.from_dict(json.loads(openapi_document()))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    with serving(folder, unknown_types="accept", control=str(folder / "control")) as asked:
        yield asked


@api.parametrize()
@settings(
    max_examples=20,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_each_answer_is_as_the_document_says(service, case):
    # What an event's type, a schema or a configuration may be, this document can't say: those may be refused.
    judged = case.method == "POST"
    case.call_and_validate(base_url=service.service.url, excluded_checks=[positive_data_acceptance] if judged else [])


def test_every_route_is_in_the_document(service):
    routes = [*schemas_api.routes(service.service), *control_api.routes(service.service)]
    paths = json.loads(openapi_document())["paths"]

    for route in routes:
        assert isinstance(route, Route)
        path = route.path.replace(":int}", "}")
        assert path in paths
        assert {method.lower() for method in route.methods or ()} - {"head"} <= paths[path].keys()


def test_it_is_served(service):
    assert service.ask("GET", "/openapi.json").json() == json.loads(openapi_document())
