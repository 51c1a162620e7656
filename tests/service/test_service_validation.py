"""What is wrong with a service's config is told with its place in it, before anything is opened for good."""

from __future__ import annotations

import pytest

from balog.service.settings import ServiceConfig
from balog.service.validation import service_problems

PLACES = [
    ("s3://a?b", {}, "$.{}: is not a place to write to"),
    ("schemas", {"a": "b"}, "$.{}_options: are for a URL such as s3://"),
    (None, {"a": "b"}, "$.{}_options: are for a store; give {}"),
    ("s3://a/b", {"secret": "hunter2"}, "$.{}_options.secret: holds a secret"),
]


@pytest.mark.parametrize(
    ("part", "place", "options", "said"),
    [
        *((part, *one) for part in ("registry", "control") for one in PLACES),
        ("registry", "http://localhost:1", {"a": "b"}, "$.{}_options: are for a store; for a service, set BALOG_TOKEN"),
    ],
)
def test_a_place_and_its_options_are_told_by_their_names(part, place, options, said, tmp_path):
    given = {part: place, f"{part}_options": options}

    (problem,) = service_problems(ServiceConfig(topics=f"local:{tmp_path}", listen=":0", **given))

    assert str(problem).startswith(said.format(part, part))
    assert "hunter2" not in str(problem)
