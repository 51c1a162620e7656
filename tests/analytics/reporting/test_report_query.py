from datetime import datetime, timezone

import pytest

from balog.analytics.reporting.query import moment, parse_query
from balog.common.errors import ConfigError

NOW = datetime(2026, 11, 20, 14, 37, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("asked", "since", "until", "earliest"),
    [
        # a length means up to now, with the hour that runs; the time before is read too
        ({"since": "24h"}, "2026-11-19T14Z", "2026-11-20T15Z", "2026-11-18T13Z"),
        ({"since": "24h", "compare": "7d"}, "2026-11-19T14Z", "2026-11-20T15Z", "2026-11-12T14Z"),
        ({"since": "24h", "compare": "none"}, "2026-11-19T14Z", "2026-11-20T15Z", "2026-11-19T14Z"),
        ({}, None, None, None),
        # times are extended to whole hours, by which events are counted
        ({"since": "2026-11-20T07:10Z", "until": "2026-11-20T08:00:01Z", "compare": "none"},
         "2026-11-20T07Z", "2026-11-20T09Z", "2026-11-20T07Z"),
        ({"since": "460m", "until": "330m", "compare": "none"}, "2026-11-20T06Z", "2026-11-20T10Z", "2026-11-20T06Z"),
    ],
)  # fmt: skip
def test_a_query_means_whole_hours(
    asked: dict[str, str], since: str | None, until: str | None, earliest: str | None
) -> None:
    query = parse_query(**asked, now=NOW)  # type: ignore[arg-type]
    expected = [moment(text.replace("Z", ":00Z"), NOW, "") if text else None for text in (since, until, earliest)]
    assert [query.since, query.until, query.earliest] == expected


def test_without_an_end_as_much_is_read_before_as_there_can_be_until_now() -> None:
    asked = parse_query(since="2026-11-20", now=NOW)
    assert asked.earliest is not None
    assert asked.earliest <= datetime(2026, 11, 19, 9, 23, tzinfo=timezone.utc)
    assert asked.earliest >= datetime(2026, 11, 18, tzinfo=timezone.utc)


def test_a_condition_is_asked_of_events() -> None:
    asked = parse_query(where="level = 'ERROR'", now=NOW)
    assert (asked.of_rollups, asked.conditions) == (False, ["where level = 'ERROR'"])
    assert parse_query(now=NOW).of_rollups


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"since": "soon"}, "--since: 'soon' is not a time"),
        ({"since": "2026-11-20", "until": "2026-11-19"}, "--until: .* is not after"),
        ({"compare": "last week"}, "--compare: .* is not a duration"),
        ({"compare": "90m"}, "--compare: .* whole hours"),
        ({"where": "levl = 'ERROR'"}, "--where: .*levl"),
        ({"where": "level = "}, "--where: "),
    ],
)
def test_what_cannot_be_understood_is_refused_before_spark_starts(asked: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        parse_query(**asked, now=NOW)
    assert "\n" not in str(refused.value)
