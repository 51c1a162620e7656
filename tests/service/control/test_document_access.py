"""What a pushed document reaches: nothing of this machine and its networks that the operator did not list."""

import msgspec
import pytest

from balog.common.errors import BalogError
from balog.event import Event
from balog.service.micro import Micro
from balog.service.settings import DocumentAccess
from tests.stand_ins.clickhouse import ClickHouseStandIn
from tests.stand_ins.http_server import HttpStandIn

pytestmark = pytest.mark.usefixtures("sink_packages")

CALLBACK = {"name": "crm", "source": "order", "retry": {"first": 0.05, "longest": 0.1}}
TABLE = {"name": "live", "type": "clickhouse", "sources": ["order"], "retry": {"first": 0.05, "longest": 0.1}}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "host" / "shadow"
    path.parent.mkdir()
    path.write_text("root:secret")
    return path


@pytest.fixture
def start(tmp_path, make_controlled, make_api):
    running = []

    def start(**access):
        controlled = make_controlled(tmp_path)
        controlled.config = msgspec.structs.replace(controlled.config, document_access=DocumentAccess(**access))
        running.append(controlled.running())
        running[-1].__enter__()
        return controlled, make_api(controlled.url)

    yield start
    for one in running:
        one.__exit__(None, None, None)


def push(api, **document):
    status, answer = api("POST", "/v1/config", document)
    assert status == 201
    return answer["applied"]["state"], answer["applied"]["reason"]


class TestSecrets:
    def test_a_table_with_a_file_of_the_host_is_not_applied_and_asks_nobody(self, start, file):
        controlled, api = start(networks=("127.0.0.0/8",))
        with ClickHouseStandIn() as server:
            state, reason = push(api, tables=[{**TABLE, "url": server.url, "password": {"file": str(file)}}])
            controlled.send_orders(3)
            assert (state, list(server.requests)) == ("refused", [])
        assert "$.tables[0].password: the service's settings list no folder with this file" in reason
        assert "document_access.folders" in reason

    def test_a_path_with_a_nul_is_in_no_folder(self, start, file):
        _, api = start(folders=(str(file.parent),))

        state, reason = push(
            api, callbacks=[{**CALLBACK, "url": "https://x.example", "headers": {"X": {"file": "/a\0b"}}}]
        )

        assert state == "refused"
        assert "$.callbacks[0].headers.X: the service's settings list no folder with this file" in reason

    def test_a_callback_with_a_variable_of_the_host_is_not_applied(self, start, monkeypatch):
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "only-of-this-test")
        _, api = start(networks=("127.0.0.0/8",), variables=("CRM_*",))
        headers = {"X-Key": {"env": "AWS_SECRET_ACCESS_KEY"}}
        state, reason = push(api, callbacks=[{**CALLBACK, "url": "https://example.com/", "headers": headers}])
        assert state == "refused"
        assert "$.callbacks[0].headers.X-Key: the service's settings do not list the variable" in reason
        assert "only-of-this-test" not in reason

    def test_what_is_listed_is_used(self, start, file, until, monkeypatch):
        monkeypatch.setenv("CRM_KEY", "in-the-header")
        controlled, api = start(networks=("127.0.0.0/8",), variables=("CRM_*",), folders=(str(file.parent),))
        with HttpStandIn() as server, ClickHouseStandIn() as database:
            callback = {**CALLBACK, "url": server.url, "private": True, "headers": {"X-Key": {"env": "CRM_KEY"}}}
            table = {**TABLE, "url": database.url, "password": {"file": str(file)}}
            assert push(api, callbacks=[callback], tables=[table])[0] == "applied"
            controlled.send_orders(1)
            assert until(lambda: list(server.requests))[0].headers["X-Key"] == "in-the-header"
            assert until(lambda: list(database.requests))


class TestAddresses:
    @pytest.mark.parametrize("is_name", [False, True], ids=["an address", "a name"])
    def test_a_table_at_an_unlisted_private_address_gets_no_connection(self, start, until, is_name):
        controlled, api = start()
        with ClickHouseStandIn() as server:
            url = server.url.replace("127.0.0.1", "localhost") if is_name else server.url
            state, reason = push(api, tables=[{**TABLE, "url": url}])
            assert state == ("applied" if is_name else "refused")
            if is_name:
                controlled.send_orders(1)
                until(lambda: any("this machine" in job.error for job in controlled.jobs))
                reason = next(job.error for job in controlled.jobs)
            assert "document_access.networks" in reason
            assert list(server.requests) == []

    def test_a_private_callback_is_called_in_listed_networks_only(self, start, until):
        controlled, api = start(networks=("10.0.0.0/8",))
        with HttpStandIn() as server:
            url = server.url.replace("127.0.0.1", "localhost")
            assert push(api, callbacks=[{**CALLBACK, "url": url, "private": True}])[0] == "applied"
            controlled.send_orders(1)
            until(lambda: any("document_access.networks" in job.error for job in controlled.jobs))
            assert list(server.requests) == []

    def test_a_cluster_that_is_not_listed_is_not_applied(self, start):
        _, api = start(variables=("T",))
        table = {"name": "y", "type": "ytsaurus", "sources": ["a"], "proxy": "yt", "path": "//x", "token": {"env": "T"}}
        state, reason = push(api, tables=[table])
        assert state == "refused"
        assert "document_access.clusters" in reason


def test_a_setting_that_is_no_network_is_found_before_the_service_runs(make_controlled, tmp_path):
    controlled = make_controlled(tmp_path)
    controlled.config = msgspec.structs.replace(
        controlled.config, document_access=DocumentAccess(networks=("10.0.0.0/99",))
    )
    with pytest.raises(BalogError, match=r"\$\.document_access\.networks\[0\]"), controlled.running():
        pass


def test_a_document_with_a_key_twice_is_refused_at_the_push(start):
    _, api = start()
    status, answer = api("POST", "/v1/config", b'{"streams":[],"str\\u0065ams":[]}')
    assert (status, answer["path"]) == (422, "$.streams")


def test_micro_lists_what_its_own_document_names(tmp_path, until, monkeypatch):
    with HttpStandIn() as server:
        monkeypatch.setenv("CRM_URL_OF_TEST", server.url)
        callback = {**CALLBACK, "url": {"env": "CRM_URL_OF_TEST"}, "private": True}
        path = tmp_path / "document.json"
        path.write_bytes(msgspec.json.encode({"callbacks": [callback]}))
        with Micro(document=path) as micro:
            micro.client.send([Event.new("shop", {"cls_type": "order"})])
            assert until(lambda: list(server.requests))
