"""``/v1/config`` and ``/v1/status``, on a real server."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from balog.cli import main
from balog.common.errors import ConfigError
from balog.service.control import ControlError, VersionConflict, open_control
from balog.service.control.store import DocumentVersion
from balog.sinks import SinkError

ONE = {"streams": [{"name": "orders", "types": ["order*"], "topic": "all_orders"}]}
TWO = {"streams": [{"name": "orders", "types": ["order*"], "rate": 500.0}]}
BAD = {"filters": [{"name": "f", "sources": ["a"], "to": "a"}], "streams": [{"name": "s", "where": "("}]}

CALLBACK = {"name": "crm", "source": "a", "url": "https://example.com/", "secrets": [{"env": "NO_SUCH_SECRET"}]}
SECRETLESS = {"callbacks": [CALLBACK]}


def test_what_is_pushed_is_applied_when_the_answer_comes(controlled, api):
    status, said = api("POST", "/v1/config?message=first&base=0", ONE)

    assert status == 201
    assert said["applied"] == {"number": 1, "state": "applied", "reason": ""}
    assert (said["number"], said["message"], said["who"]) == (1, "first", "an unnamed caller on this machine")
    controlled.send_orders(1)
    assert controlled.topics.names() == ["all_orders"]
    assert api("GET", "/v1/config") == (200, {"number": 1, "document": ONE})


def test_a_bad_document_is_refused_with_all_that_is_wrong_and_nothing_is_written(controlled, api):
    status, said = api("POST", "/v1/config", BAD)

    assert status == 422
    assert [problem["path"] for problem in said["problems"]] == ["$.streams[0].where", "$.filters[0].to"]
    assert said["path"] == "$.streams[0].where"
    assert api("GET", "/v1/config") == (200, {"number": 0, "document": {}})
    assert api("GET", "/v1/config/history") == (200, [])


def test_a_version_that_this_service_can_not_apply_is_told_in_the_answer(controlled, api):
    status, said = api("POST", "/v1/config", SECRETLESS)

    assert status == 201
    assert said["applied"]["number"] == 0
    assert said["applied"]["state"] == "refused"
    assert "NO_SUCH_SECRET" in said["applied"]["reason"]


@pytest.mark.parametrize("base", [0, 2, 99])
def test_who_knew_another_version_is_told(api, base):
    api("POST", "/v1/config", ONE)
    status, said = api("POST", f"/v1/config?base={base}", TWO)

    assert (status, said["head"], said["base"]) == (409, 1, base)
    assert "version 1 was pushed meanwhile" in said["problem"]


def test_versions_are_listed_and_taken_back(api):
    for document in (ONE, TWO):
        api("POST", "/v1/config", document)
    _, entries = api("GET", "/v1/config/history?limit=1")
    assert [entry["number"] for entry in entries] == [2]
    assert api("GET", "/v1/config/history/2") == (200, entries[0])
    assert api("GET", f"/v1/config/documents/{entries[0]['sha']}") == (200, TWO)
    status, said = api("POST", "/v1/config/rollback?message=no")
    assert (status, said["number"], said["from"], said["applied"]["number"]) == (201, 3, 1, 3)
    assert api("GET", "/v1/config")[1]["document"] == ONE


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/config/history/7", 404),
        ("GET", "/v1/config/history?limit=0", 422),
        ("GET", "/v1/config/history?limit=x", 422),
        ("GET", "/v1/config/documents/..secret", 404),
        ("GET", "/v1/config/documents/" + "0" * 64, 404),
        ("POST", "/v1/config/rollback", 404),
        ("POST", "/v1/config?base=x", 422),
        ("POST", "/v1/config?base=999999999999", 422),
        ("POST", "/v1/config?message=" + "x" * 3000, 422),
    ],
)
def test_what_is_asked_wrongly_is_one_line(api, method, path, status):
    found, said = api(method, path, {} if method == "POST" else None)

    assert found == status
    assert "\n" not in said["problem"]


@pytest.mark.parametrize(
    ("body", "status"), [(b"", 422), (b"{", 422), (b"[" * 99_999, 422), (b"\xff", 422), (b" " * (5 << 20), 413)]
)
def test_what_is_no_document_is_refused(api, body, status):
    assert api("POST", "/v1/config", body)[0] == status


def test_rights_are_kept(guarded, make_api):
    controlled, tokens = guarded
    assert make_api(controlled.url)("GET", "/v1/status")[0] == 401
    assert make_api(controlled.url, "nonsense")("GET", "/v1/status")[0] == 401
    assert make_api(controlled.url, tokens["send"])("GET", "/v1/status")[0] == 403
    for path in ("", "/history", "/history/1", "/documents/x", "/services"):
        assert make_api(controlled.url, tokens["send"])("GET", "/v1/config" + path)[0] == 403
    for path in ("", "/rollback"):
        assert make_api(controlled.url, tokens["read"])("POST", "/v1/config" + path, {})[0] == 403
    assert controlled.control.head() is None
    status, said = make_api(controlled.url, tokens["configure"])("POST", "/v1/config", ONE)
    assert (status, said["who"]) == (201, "who-may-configure")
    assert make_api(controlled.url, tokens["read"])("GET", "/v1/config/history")[0] == 200


def test_a_service_without_versions_says_so(tmp_path, make_controlled, make_api):
    with make_controlled(tmp_path, control=False).running() as controlled:
        api = make_api(controlled.url)
        assert api("GET", "/v1/config")[0] == 404
        assert api("POST", "/v1/config", ONE)[0] == 404
        status, said = api("GET", "/v1/status")
        assert (status, said["document"], said["history"]) == (200, None, [])


def test_the_status_has_what_is_going_on(controlled, api, until):
    api("POST", "/v1/config", ONE)
    controlled.send_orders(30)
    topics = until(lambda: api("GET", "/v1/status")[1]["topics"])
    until(lambda: api("GET", "/v1/status")[1]["services"])
    _, said = api("GET", "/v1/status")

    assert said["service"] == "service one"
    assert said["events"] == [{"stream": "orders", "status": "202", "store": "topics", "count": 30}]
    assert said["intake"]["stored"] == {"topics": 30, "fallback": 0}
    assert said["document"]["number"] == 1
    assert [entry["number"] for entry in said["history"]] == [1]
    assert [topic["name"] for topic in topics] == ["all_orders"]
    until(lambda: api("GET", "/v1/status")[1]["topics"][0]["messages"] == 30)


def entry_of(pushed):
    return msgspec.convert(msgspec.to_builtins(pushed), DocumentVersion)


class TestRemote:
    """The same versions through the API, as ``balog config --control http://…`` has them."""

    @pytest.fixture
    def remote(self, guarded):
        controlled, tokens = guarded
        add = open_control(controlled.url, token=tokens["configure"])
        look = open_control(controlled.url, token=tokens["read"])
        yield add, look
        add.close()
        look.close()

    def test_it_pushes_lists_and_takes_back(self, remote):
        add, look = remote
        assert look.head() is None
        first = add.push(b'{"streams": []}', who="ignored", message="a b&c", base=0)
        assert (first.number, first.who, first.message) == (1, "who-may-configure", "a b&c")
        assert look.head() == entry_of(first)
        second = add.push(b"{}", who="", message="")
        assert look.entries() == [entry_of(second), entry_of(first)]
        assert look.document(first.sha) == b'{"streams":[]}'
        third = add.rollback(1, who="", message="")
        assert (third.origin, look.entry(3)) == (1, entry_of(third))
        assert [status.service for status in look.services()] == ["service one"]

    def test_it_says_what_the_service_says(self, remote):
        add, look = remote
        add.push(b'{"streams": []}', who="", message="")
        with pytest.raises(VersionConflict, match="version 1 was pushed meanwhile") as caught:
            add.push(b"{}", who="", message="", base=0)
        assert caught.value.head == 1
        with pytest.raises(ConfigError, match=r"\$\.stream|no field 'stream'"):
            add.push(b'{"stream": 1}', who="", message="")
        with pytest.raises(ControlError, match="no version 9"):
            look.entry(9)
        with pytest.raises(ControlError, match=r"403: .*may not configure"):
            look.push(b"{}", who="", message="")

    def test_a_server_that_is_none_is_one_line(self):
        control = open_control("http://127.0.0.1:9")
        with pytest.raises(SinkError):
            control.head()
        control.close()


def test_the_command_pushes_through_a_service(guarded, tmp_path, monkeypatch):
    controlled, tokens = guarded
    path = tmp_path / "doc.json"
    path.write_text(json.dumps(ONE))

    def balog(*arguments):
        return CliRunner().invoke(main, ["config", *arguments, "--control", controlled.url])

    assert "401" in balog("history").output
    monkeypatch.setenv("BALOG_TOKEN", tokens["read"])
    assert "may not configure" in balog("push", str(path)).output
    monkeypatch.setenv("BALOG_TOKEN", tokens["configure"])
    assert balog("push", str(path), "-m", "by hand").output == "version 1: 1 change\n"
    path.write_text(json.dumps(SECRETLESS))
    pushed = balog("push", str(path))
    assert pushed.exit_code == 1
    assert "version 2: 2 changes\nthe service keeps version 1: version 2: " in pushed.output
    assert "NO_SUCH_SECRET" in pushed.output
    assert balog("rollback", "0").output == "version 3: the document of version 0 again\n"
    assert "who-may-configure" in balog("history").output
    status = balog("status")
    assert status.exit_code == 0, status.output
    assert "service one" in status.output
    assert tokens["configure"] not in balog("diff").output + status.output
