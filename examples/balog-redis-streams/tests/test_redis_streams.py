"""Redis Streams keep the contract of topic backends. ``BALOG_REDIS_URL`` names a server, such as redis://HOST:PORT/0."""

import os
from typing import ClassVar

import pytest

from balog.testing.contracts import TopicContract


class TestRedisTopic(TopicContract):
    """Redis Streams do not recognize known ids; they have all other abilities."""

    keeps_ids: ClassVar[bool] = False

    @pytest.fixture
    def url(self) -> str:
        """The URL of the server."""
        return os.environ["BALOG_REDIS_URL"]
