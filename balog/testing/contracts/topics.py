"""The contract of a topic backend."""

from balog.testing.contracts.topic_engine import EngineContract, SharingContract
from balog.testing.contracts.topic_leases import DeadLetterContract, LeaseContract
from balog.testing.contracts.topic_messages import MessageContract, StateContract


class TopicContract(MessageContract, LeaseContract, DeadLetterContract, EngineContract, StateContract, SharingContract):
    """Tests that every topic backend passes.

    Inherit it in a test module and define the fixture ``url``. Set the attributes of ``TopicFixtures`` to what the
    backend can do; tests of other abilities are left out::

        class TestRedisTopic(TopicContract):
            keeps_ids = False

            @pytest.fixture
            def url(self, redis_server):
                return redis_server.url
    """
