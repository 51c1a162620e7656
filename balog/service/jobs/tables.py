"""Tables that the service writes to ClickHouse or YTsaurus, with each event once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import asdict

from balog.common.errors import ConfigError
from balog.common.http import check_url
from balog.common.http.addresses import ANYWHERE, Networks
from balog.common.http.guarded_pool import Cutter, open_guarded_pool
from balog.consumers.forwarder import SinkConsumer
from balog.service.document import AnyTable, ClickHouseTable, LoadedTable, YTsaurusTable
from balog.service.jobs.engine_job import EngineJob
from balog.sinks.base import AnySinkConfig, Sink, SinkConfig


def make_table_sink(
    config: ClickHouseTable | YTsaurusTable, registry: str | None = None, options: Mapping[str, Any] | None = None
) -> SinkConfig:
    """Return the sink of a table.

    Args:
        registry: the registry whose schemas determine the columns in ClickHouse; None for balog's own types.
        options: options of the registry.

    Raises:
        BalogError: the package of the sink is not installed.
    """
    given = asdict(config)
    for member in ("name", "sources"):
        del given[member]
    if isinstance(config, ClickHouseTable):
        given |= {"registry": registry, "registry_options": dict(options or {})}
    sink: Any = AnySinkConfig.struct_of(str(config.__struct_config__.tag))
    table_sink: SinkConfig = sink(**given)
    return table_sink


def check_table(config: AnyTable) -> None:
    """Check a table, except for its ``where`` and what only a service knows, such as secrets.

    Raises:
        ConfigError: ``path`` is the table's member.
    """
    if isinstance(config, LoadedTable):
        return
    if isinstance(config, ClickHouseTable):
        check_url(config.url)
    elif "@" in config.proxy:
        raise ConfigError("has credentials in it; give a token", path="proxy")


class _GuardedClickHouse:
    """A ClickHouse sink that connects only to public addresses and listed networks; see ``SinkConfig``."""

    def __init__(self, config: Any, networks: Networks) -> None:
        self.name, self.where, self.batch, self.retry = config.name, config.where, config.batch, config.retry
        self._config = config
        self._networks = networks

    def build(self) -> Sink:
        config = self._config
        check_url(config.url)
        pool = open_guarded_pool(config.url, config.timeout, config.ca_file, networks=self._networks, cutter=Cutter())
        sink: Sink = config.build(pool)
        return sink


class TableJob(EngineJob):
    """A job that writes a table.

    The consumer group is ``table.NAME``. An event is acknowledged once its row is stored. An event that the database
    rejects becomes a dead letter of the topic. While the database is unreachable, events wait in the topic.

    Args:
        config: the table.
        topics_url: URL of its topics.
        say: prints one line for the operator.
        registry: the registry whose schemas determine the columns in ClickHouse.
        registry_options: options of the registry.
        networks: private networks that the sink may connect to.

    Raises:
        ConfigError: the sink cannot be built; ``path`` is the table's member.
        BalogError: packages for the sink are not installed.
    """

    def __init__(
        self,
        config: ClickHouseTable | YTsaurusTable,
        topics_url: str,
        say: Callable[[str], None],
        registry: str | None = None,
        registry_options: Mapping[str, Any] | None = None,
        networks: Networks = ANYWHERE,
    ) -> None:
        # The client of YTsaurus connects to addresses that its proxy returns, so the operator lists allowed proxies.
        sink = make_table_sink(config, registry, registry_options)
        self._sink = _GuardedClickHouse(sink, networks) if isinstance(config, ClickHouseTable) else sink
        super().__init__("table", config.name, topics_url, say, batch=self._sink.batch.events)
        self._sources = config.sources

    def consumers(self) -> list[SinkConsumer]:
        """Return a consumer for each topic, with the topic's name."""
        return [SinkConsumer(self._sink, topic, topic, self.report) for topic in self._sources]
