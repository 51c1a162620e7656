"""Every sink of balog keeps the contract of sinks."""

from typing import ClassVar

import msgspec
import pytest

from balog.common.config.tagged_config import decode_tagged
from balog.sinks import AnySinkConfig, Batching, Retrying
from balog.testing.contracts import SinkContract
from tests.contracts.sink_peers import PEERS, Peer


def test_every_sink_has_a_peer():
    assert set(AnySinkConfig.known_tags()) == {name.split()[0] for name in PEERS}


class BuiltInSinkContract(SinkContract):
    peer_type: ClassVar[type[Peer]]

    @pytest.fixture
    def peer(self, tmp_path):
        made = self.peer_type(tmp_path)
        yield made
        made.close()

    def test_the_name_has_the_type_and_the_place(self, peer):
        kind, place = peer.config.name.split()
        assert type(peer) in [made for name, made in PEERS.items() if name.split()[0] == kind]
        assert place

    def test_a_config_is_recognized_by_its_type(self, peer):
        config = msgspec.structs.replace(
            peer.config,
            where="level = 'ERROR'",
            batch=Batching(events=10, bytes=2048, age=1.5),
            retry=Retrying(first=0.5, longest=2.0),
        )
        assert msgspec.json.decode(msgspec.json.encode(config), type=AnySinkConfig, dec_hook=decode_tagged) == config


def _contract_of(name: str, peer: type[Peer]) -> type[BuiltInSinkContract]:
    title = "Test" + "".join(word.capitalize() for word in name.split())
    abilities = {"peer_type": peer, "refuses": peer.refuses, "has_secret": peer.has_secret}
    return type(title, (BuiltInSinkContract,), {**abilities, "__module__": __name__})


globals().update({made.__name__: made for made in (_contract_of(name, peer) for name, peer in PEERS.items())})
