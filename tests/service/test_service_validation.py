"""What is wrong with a service's config is told with its place in it, before anything is opened for good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from balog.service.settings import ServiceConfig
from balog.service.validation import service_problems


@pytest.mark.parametrize("part", ["registry", "control"])
@pytest.mark.parametrize(
    ("place", "options", "said"),
    [
        ("s3://a?b", {}, "$.{}: is not a place to write to"),
        ("schemas", {"a": "b"}, "$.{}_options: are for a URL such as s3://"),
        (None, {"a": "b"}, "$.{}_options: are for a store; give {}"),
        ("s3://a/b", {"secret": "hunter2"}, "$.{}_options.secret: holds a secret"),
    ],
)
def test_a_place_and_its_options_are_told_by_their_names(
    part: str, place: str | None, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {part: place, f"{part}_options": options}

    (problem,) = service_problems(ServiceConfig(topics=f"local:{tmp_path}", listen=":0", **given))

    assert str(problem).startswith(said.format(part, part))
    assert "hunter2" not in str(problem)


def test_a_service_s_registry_takes_no_options(tmp_path: Path) -> None:
    config = ServiceConfig(
        topics=f"local:{tmp_path}", listen=":0", registry="http://localhost:1", registry_options={"a": "b"}
    )

    (problem,) = service_problems(config)

    assert str(problem) == "$.registry_options: are for a store; for a service, set BALOG_TOKEN"
