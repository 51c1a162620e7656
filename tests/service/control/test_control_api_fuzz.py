"""Whatever is asked of ``/v1/config``, the answer has one form and no version comes of nonsense."""

import json
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

paths = st.sampled_from(["", "/history", "/rollback", "/services", "/documents/x"]) | st.builds(
    lambda rest: "/" + quote_from_bytes(rest), st.binary(min_size=1, max_size=12)
)
values = st.builds(quote_from_bytes, st.binary(max_size=12)) | st.sampled_from(["-1", "1e3", "%C2%B2", "9" * 30, "0x1"])
queries = st.lists(st.tuples(st.sampled_from(["base", "number", "limit", "message", "old", "new"]), values), max_size=3)
bodies = st.binary(max_size=60) | st.recursive(
    st.none() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: (
        st.dictionaries(st.sampled_from(["streams", "filters", "watch", "name", "x"]), inner, max_size=2)
        | st.lists(inner, max_size=2)
    ),
).map(lambda value: json.dumps(value).encode())


@pytest.fixture
def answers(controlled, make_api):
    return make_api(controlled.url)


@example(method="GET", path="//", query=[], body=b"")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(method=st.sampled_from(["GET", "POST", "PUT"]), path=paths, query=queries, body=bodies)
def test_every_answer_is_of_the_one_form(answers, method, path, query, body):
    text = "&".join(f"{name}={value}" for name, value in query)
    status, said = answers(method, f"/v1/config{path}?{text}", None if method == "GET" else body)

    assert status in (200, 201, 404, 405, 409, 422)
    if status >= 400:
        assert isinstance(said["problem"], str)
        assert "\n" not in said["problem"]
