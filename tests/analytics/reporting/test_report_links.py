"""Templates of links: what they accept, and what they make of hostile values."""

from datetime import timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from handmade import NOW, failure, report, run

from balog.analytics.reporting.links import links_of_failure, links_of_run, links_of_stream, parse_link
from balog.common.errors import ConfigError

HOSTILE = ["../../admin", "a/b?c=d#e", "é\u2028&x=1", '"><script>', "%2e%2e", "javascript:alert(1)", " ", "\ud800"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("https://x.example/{run}", "unknown field {run}; did you mean 'run_id'?"),
        ("https://x.example/{run_id.__class__}", "unknown field {run_id.__class__"),
        ("https://x.example/{run_id!r}", "unknown field {run_id!r}"),
        ("https://x.example/{run_id:>9}", "unknown field {run_id:>9}"),
        ("https://x.example/{}", "unknown field {}"),
        ("https://x.example/{run_id", "is not a URL with fields in braces"),
        ("https://x.example/", "needs one of {run_id}, {fingerprint} and {stream}"),
        ("https://x.example/{run_id}/{stream}", "needs one of"),
        ("https://x.example/{run_id}/{channel}", "{channel} is not a field of links with {run_id}"),
        ("javascript:alert('{run_id}')", "is not a URL of http or https"),
        ("logs=javascript:alert('{run_id}')", "is not a URL of http or https"),
        ("file:///tmp/{run_id}", "is not a URL of http or https"),
        ("/{run_id}", "is not a URL of http or https"),
        ("https:///{run_id}", "is not a URL of http or https"),
        ("https://x.example/{run_id} b", "is not a URL of http or https"),
        ("https://{run_id}.example/", "has a field or a password before its path"),
        ("https://me:secret@x.example/{run_id}", "has a field or a password before its path"),
        ("", "is not a URL of http or https"),
    ],
)
def test_a_template_that_cannot_work_is_refused_in_one_line(text: str, why: str) -> None:
    """The error names the option, the part that is wrong, and what to give."""
    with pytest.raises(ConfigError) as refused:
        parse_link(text)
    assert why in str(refused.value)
    assert "--link" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", HOSTILE)
def test_values_are_encoded_so_that_they_stay_one_part_of_the_url(value: str) -> None:
    """Neither the host nor the path nor other parameters change."""
    template = parse_link("https://x.example/logs/{run_id}?q={run_id}&y=2")
    (link,) = links_of_run([template], run(run_id=value))
    parts = urlsplit(link.url)
    expected = value.encode("utf-8", "replace").decode()
    assert (parts.scheme, parts.netloc, parts.fragment) == ("https", "x.example", "")
    assert [unquote(part) for part in parts.path.split("/")] == ["", "logs", expected]
    assert parse_qs(parts.query, keep_blank_values=True) == {"q": [expected], "y": ["2"]}


@pytest.mark.parametrize("value", [".", "..", ""])
def test_a_value_that_would_change_the_path_has_no_link(value: str) -> None:
    """Browsers resolve dots even if they are encoded."""
    assert links_of_run([parse_link("https://x.example/a/{run_id}")], run(run_id=value)) == []


def test_a_run_knows_its_application_and_its_time() -> None:
    """The broker's own name is not the application; times are RFC 3339 or milliseconds."""
    one = run(applications=["balog", "tap_x"], started=NOW, ended=NOW + timedelta(seconds=90))
    template = parse_link(
        "Grafana=https://x.example/{run_id}/{application}?a={since}&b={until}&c={since_ms}&d={until_ms}"
    )
    (link,) = links_of_run([template], one)
    since = int(NOW.timestamp() * 1000)
    assert link.label == "Grafana"
    assert unquote(link.url) == (
        "https://x.example/r0/tap_x?a=2026-11-20T12:00:00.000000Z&b=2026-11-20T12:01:30.000000Z"
        f"&c={since}&d={since + 90_000}"
    )


def test_failures_and_streams_have_links_of_their_own() -> None:
    """A template belongs to what its field names; without a label, the host is the text."""
    templates = [parse_link("https://x.example/f/{fingerprint}?{channel}"), parse_link("http://y.example/{stream}")]
    assert links_of_run(templates, run()) == []
    (of_failure,) = links_of_failure(templates, failure(7))
    assert (of_failure.label, of_failure.url) == ("x.example", f"https://x.example/f/{7:016x}?a.b")
    (of_stream,) = links_of_stream(templates, report().streams[0], report())
    assert of_stream.url == "http://y.example/users"
