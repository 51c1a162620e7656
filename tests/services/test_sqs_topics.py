"""SQS topics on a real server: what every topic must do, on standard and FIFO queues."""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from balog.testing.contracts import TopicContract
from tests.services.servers.elasticmq import SqsServer, is_at_hand, set_credentials
from tests.services.servers.moto import running_moto

pytestmark = pytest.mark.service


@pytest.fixture(scope="session")
def server(elasticmq: SqsServer) -> SqsServer:
    return elasticmq


@pytest.fixture(scope="module")
def moto_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_moto(tmp_path_factory.mktemp("moto")) as server:
        yield server.url


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)


class SqsContract(TopicContract):
    keeps_groups: ClassVar[bool] = False
    keeps_order: ClassVar[bool] = False
    keeps_ids: ClassVar[bool] = False
    counts_attempts: ClassVar[bool] = False
    lease: ClassVar[float] = 1.0
    delay: ClassVar[float] = 1.0
    large_body: ClassVar[int] = 150_000
    shared_messages: ClassVar[int] = 100
    longest_name: ClassVar[int] = 80
    name_suffixes: ClassVar[tuple[str, ...]] = ("", "_x", "-X0")
    counts_exactly: ClassVar[bool] = False
    can_seek: ClassVar[bool] = False

    @pytest.fixture
    def url(self, server: SqsServer) -> str:
        return server.url


class TestStandard(SqsContract):
    keeps_key_order: ClassVar[bool] = False


class TestFifo(SqsContract):
    """All that has no key is one group here, and a message in hand holds up those behind it in its group."""

    longest_name: ClassVar[int] = 75  # and .fifo
    name_suffixes: ClassVar[tuple[str, ...]] = (".fifo", "_x.fifo", "-X0.fifo")
    detects_stale_receipts: ClassVar[bool] = False  # ElasticMQ takes any receipt of a message; what AWS does is below

    def valid_names(self) -> list[str]:
        return [
            *(self.new_name() + end for end in self.name_suffixes),
            self.new_name().ljust(self.longest_name, "x") + ".fifo",
        ]

    def key_of(self, id: str) -> str:
        return id

    @pytest.fixture
    def name(self) -> str:
        return f"{self.new_name()}.fifo"


class TestOnMoto(SqsContract):
    """What there is where there is no ElasticMQ. As AWS does, it takes any receipt of a message."""

    __test__ = not is_at_hand()
    keeps_key_order: ClassVar[bool] = False
    delivers_once: ClassVar[bool] = False  # its threads look and take without a lock
    detects_stale_receipts: ClassVar[bool] = False

    @pytest.fixture
    def url(self, moto_url: str) -> str:
        return moto_url
